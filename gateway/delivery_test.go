package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// eventually waits for what another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// explained is what the database knows of a message.
func explained(t *testing.T, h *gatewaytest.Harness, id chat.MessageID) record.Why {
	t.Helper()
	why, err := h.Store.Explain(t.Context(), "test/main", "", id)
	if err != nil {
		t.Fatal(err)
	}
	return why
}

// pieces is a model that says one piece for each that comes through the channel, and
// ends when it is closed.
func pieces(ch <-chan string) func(context.Context, *llm.Request, func(llm.Event) bool) error {
	return func(ctx context.Context, _ *llm.Request, say func(llm.Event) bool) error {
		for {
			select {
			case s, ok := <-ch:
				if !ok {
					return nil
				}
				say(llm.TextDelta{Text: s})
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// awaitLive waits until the owner's chat shows one growing message with the text.
func awaitLive(t *testing.T, h *gatewaytest.Harness, text string) gatewaytest.Post {
	t.Helper()
	return h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "live text "+text, func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && ps[0].Out.Live && ps[0].Out.Text == text
	})[0]
}

// SPL-003, STR-019: the parts of a long answer stay in order whatever happens to one
// of them, also when all of it came at once; the next answer comes behind them.
func TestPartsStayInOrder(t *testing.T) {
	var words []string
	for i := range 200 {
		words = append(words, fmt.Sprintf("word%03d", i))
	}
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if strings.Contains(gatewaytest.LastUser(r), "next") {
			return echo(ctx, r, say)
		}
		say(llm.TextDelta{Text: strings.Join(words, " ")})
		return nil
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Limits: chat.Limits{Text: 300}})
	var sends atomic.Int32
	h.Platform.Fail(func(op string, _ chat.Outgoing) error {
		switch {
		case op == "send" && sends.Add(1) == 2:
			return &chat.RateLimitError{RetryAfter: 50 * time.Millisecond}
		case op == "send" && sends.Load() == 4:
			return errTransient
		}
		return nil
	})
	h.SayIn("room", owner, "all of it")
	awaitRequests(t, m, 1)
	h.SayIn("room", user, "next")
	ps := h.Platform.Await(t, "room", "both answers", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && !ps[len(ps)-1].Out.Live && ps[len(ps)-1].Out.Text == "echo: next"
	})
	var got []string
	for _, p := range ps[:len(ps)-1] {
		if len(p.Out.Text) > 300 || p.Out.Live {
			t.Errorf("a part of %d bytes, live: %v", len(p.Out.Text), p.Out.Live)
		}
		got = append(got, strings.Fields(p.Out.Text)...)
	}
	if strings.Join(got, " ") != strings.Join(words, " ") {
		t.Errorf("the parts say %q", got)
	}
}

// STR-008: the last edit is refused for a while: it is made later, in the same
// message.
func TestRateLimitedLastEdit(t *testing.T) {
	ch := make(chan string)
	h := gatewaytest.New(t, gatewaytest.NewModel(pieces(ch)), gatewaytest.Options{})
	h.Say(owner, "go")
	ch <- "all of it"
	awaitLive(t, h, "all of it")
	var refused atomic.Int32
	h.Platform.Fail(func(_ string, m chat.Outgoing) error {
		if !m.Live && refused.Add(1) <= 2 {
			return &chat.RateLimitError{RetryAfter: 50 * time.Millisecond}
		}
		return nil
	})
	close(ch)
	if ps := h.Final(owner, "all of it"); len(ps) != 1 || refused.Load() < 3 {
		t.Errorf("refused %d times, the chat shows %+v", refused.Load(), ps)
	}
}

// STR-013: after a wait that the platform asked for only the newest text is shown,
// and /stop does not wait for it.
func TestOnlyTheNewestTextFollowsAWait(t *testing.T) {
	ch := make(chan string)
	h := gatewaytest.New(t, gatewaytest.NewModel(pieces(ch)), gatewaytest.Options{})
	id := h.Say(owner, "go")
	ch <- "a"
	awaitLive(t, h, "a")
	limit := func(d time.Duration) *atomic.Int32 {
		var n atomic.Int32
		h.Platform.Fail(func(op string, _ chat.Outgoing) error {
			if op == "edit" && n.Add(1) == 1 {
				return &chat.RateLimitError{RetryAfter: d}
			}
			return nil
		})
		return &n
	}
	n := limit(500 * time.Millisecond)
	ch <- "b"
	eventually(t, "the refusal", func() bool { return n.Load() == 1 })
	for _, s := range []string{"c", "d", "e"} {
		ch <- s
	}
	if p := awaitLive(t, h, "abcde"); p.Edits != 1 {
		t.Errorf("%d edits, want one with the newest text", p.Edits)
	}
	n = limit(3 * time.Second)
	ch <- "f"
	eventually(t, "the refusal", func() bool { return n.Load() == 1 })
	stopped := time.Now()
	h.Say(owner, "/stop")
	eventually(t, "the stop", func() bool { return explained(t, h, id).Turn.State == record.TurnInterrupted })
	if d := time.Since(stopped); d > time.Second {
		t.Errorf("/stop waited %s for the platform", d)
	}
}

// STR-014: somebody deletes the message while it grows: the answer comes once, in a
// new one.
func TestPreviewIsDeletedWhileItGrows(t *testing.T) {
	for _, more := range []string{" second", ""} { // an interim edit finds out, or the last one
		ch := make(chan string)
		h := gatewaytest.New(t, gatewaytest.NewModel(pieces(ch)), gatewaytest.Options{})
		h.Say(owner, "go")
		ch <- "first"
		p := awaitLive(t, h, "first")
		if err := h.Platform.Delete(t.Context(), gatewaytest.Direct(owner), p.ID); err != nil {
			t.Fatal(err)
		}
		if more != "" {
			ch <- more
		}
		close(ch)
		if ps := h.Final(owner, "first"+more); len(ps) != 1 || ps[0].ID == p.ID {
			t.Errorf("the chat shows %+v", ps)
		}
		if f := h.Platform.Posts(""); len(f) != 1 {
			t.Errorf("%d messages are visible", len(f))
		}
	}
}

// STR-004: the text before a tool is in the chat although its message was still
// being sent when the tool began, and the answer takes its place.
func TestTextBeforeAToolIsNotOvertaken(t *testing.T) {
	goOn := make(chan struct{})
	spec := tool.Spec{ToolSpec: llm.ToolSpec{Name: "act", Description: "acts"}}
	act := tool.Must(tool.New(spec, func(ctx context.Context, _ tool.Call, _ struct{}) (tool.Result, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return tool.Result{Text: "done"}, nil
	}))
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if last := r.Messages[len(r.Messages)-1]; last.Role != llm.ToolRole {
			say(llm.TextDelta{Text: "Let me check."})
		}
		return callOnce(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Tools: []tool.Tool{act}})
	var sends atomic.Int32
	h.Platform.Fail(func(op string, _ chat.Outgoing) error {
		if op == "send" && sends.Add(1) == 1 {
			<-time.After(300 * time.Millisecond)
		}
		return nil
	})
	h.Say(owner, "go")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the text and the tool", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && len(ps[0].Out.Progress) == 2 && ps[0].Out.Progress[0] == "💬 Let me check." && strings.HasPrefix(ps[0].Out.Progress[1], "⚙ ")
	})
	close(goOn)
	if ps := h.Final(owner, "result: done"); len(ps) != 1 {
		t.Errorf("the chat shows %+v", ps)
	}
}

// DEL-010: what the platform refuses for good is kept as failed, with the reason, and
// holds nothing up.
func TestRefusedDeliveryIsFailed(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	h.Platform.Fail(func(op string, _ chat.Outgoing) error {
		if op == "send" {
			return &chat.RejectedError{Reason: "not this"}
		}
		return nil
	})
	id := h.Say(owner, "hello")
	eventually(t, "the delivery's end", func() bool {
		ds := explained(t, h, id).Deliveries
		return len(ds) > 0 && ds[len(ds)-1].Kind == record.DeliverFinal && ds[len(ds)-1].State.Settled()
	})
	for _, d := range explained(t, h, id).Deliveries {
		if d.State != record.DeliveryFailed || d.Message != "" || !strings.Contains(d.Error, "not this") {
			t.Errorf("delivery %+v", d)
		}
	}
	h.Platform.Fail(nil)
	h.Say(owner, "again")
	if ps := h.Final(owner, "echo: again"); len(ps) != 1 {
		t.Errorf("the chat shows %+v", ps)
	}
}

// DEL-005: typing ends with the turn, however that ends, and although the notice
// itself fails.
func TestTypingEndsWithTheTurn(t *testing.T) {
	const ttl = 25 * time.Millisecond
	for name, end := range map[string]func(*gatewaytest.Harness, chan<- error){
		"answer": func(_ *gatewaytest.Harness, end chan<- error) { end <- nil },
		"error":  func(_ *gatewaytest.Harness, end chan<- error) { end <- &llm.Error{Kind: llm.KindAuth} },
		"stop":   func(h *gatewaytest.Harness, _ chan<- error) { h.Say(owner, "/stop") },
	} {
		t.Run(name, func(t *testing.T) {
			result := make(chan error, 1)
			m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
				select {
				case err := <-result:
					if err != nil {
						return err
					}
					return echo(ctx, r, say)
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			h := gatewaytest.New(t, m, gatewaytest.Options{Limits: chat.Limits{TypingTTL: ttl}})
			h.Platform.Fail(func(op string, _ chat.Outgoing) error {
				if op == "typing" {
					return errTransient
				}
				return nil
			})
			id := h.Say(owner, "go")
			eventually(t, "typing goes on", func() bool { return h.Platform.Typings() > 2 })
			end(h, result)
			eventually(t, "the turn's end", func() bool { return !explained(t, h, id).Turn.EndedAt.IsZero() })
			h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "a last word", func(ps []gatewaytest.Post) bool {
				return len(ps) > 0 && !ps[len(ps)-1].Out.Live
			})
			n := h.Platform.Typings()
			<-time.After(5 * ttl)
			if more := h.Platform.Typings(); more > n {
				t.Errorf("%d typing notices after the end", more-n)
			}
		})
	}
}

// SHD-002: an answer that is being sent when the signal comes, or that the platform
// lets wait, is waited for, and for no longer than that.
func TestShutdownWaitsForTheLastDelivery(t *testing.T) {
	for name, first := range map[string]error{"slow": nil, "rate limited": &chat.RateLimitError{RetryAfter: 500 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{Config: func(c *gateway.Config) { c.Streaming = gateway.StreamOff }})
			sending := make(chan struct{})
			var sends atomic.Int32
			h.Platform.Fail(func(op string, _ chat.Outgoing) error {
				if op != "send" || sends.Add(1) > 1 {
					return nil
				}
				close(sending)
				if first == nil {
					<-time.After(500 * time.Millisecond)
				}
				return first
			})
			id := h.Say(owner, "hello")
			<-sending
			begun := time.Now()
			h.Stop()
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("the shutdown took %s", d)
			}
			if ps := h.Platform.Posts(gatewaytest.Direct(owner).Chat); len(ps) != 1 || ps[0].Out.Text != "echo: hello" {
				t.Errorf("after the shutdown the chat shows %+v", ps)
			}
			if ds := explained(t, h, id).Deliveries; len(ds) != 1 || ds[0].State != record.DeliverySent {
				t.Errorf("deliveries %+v", ds)
			}
		})
	}
}
