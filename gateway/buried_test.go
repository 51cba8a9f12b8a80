package gateway_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// TestABuriedLiveMessageGoesOnAsAnother: below a card the live message goes on in
// a new message, and so does the answer, with a key of its own: a platform that
// knows a key would hand out the message above the card, which is then removed,
// and the answer with it.
func TestABuriedLiveMessageGoesOnAsAnother(t *testing.T) {
	shown := make(chan struct{})
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if r.Messages[len(r.Messages)-1].Role != llm.ToolRole {
			say(llm.TextDelta{Text: "I look."})
			select {
			case <-shown:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return callOnce(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{
		Tools: []tool.Tool{terminalLike(t, func(context.Context) string { return "done it" })},
	})
	var mu sync.Mutex
	var keys []string
	h.Platform.Fail(func(op string, out chat.Outgoing) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "send" {
			if len(keys) == 0 {
				close(shown)
			}
			keys = append(keys, out.Key)
		}
		return nil
	})
	h.Say(owner, "do it")
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the live message below the card", func(ps []gatewaytest.Post) bool {
		return len(ps) == 2 && len(ps[0].Out.Buttons) > 0 && len(ps[1].Out.Progress) > 0
	})
	h.Press(owner, ps[0], ps[0].Out.Buttons[0][0].Data)
	h.Final(owner, "result: done it")
	mu.Lock()
	defer mu.Unlock()
	all := slices.Clone(keys)
	slices.Sort(keys)
	if len(slices.Compact(keys)) != len(all) {
		t.Errorf("messages share a key: %q", all)
	}
}

// TestAnAnswerDoesNotWaitForEdits: where the platform takes no more edits for an hour
// the answer is posted whole, as a new message, and takes the live one's place.
func TestAnAnswerDoesNotWaitForEdits(t *testing.T) {
	shown, refused := make(chan struct{}), make(chan struct{})
	m := gatewaytest.NewModel(func(_ context.Context, _ *llm.Request, say func(llm.Event) bool) error {
		say(llm.TextDelta{Text: "one "})
		<-shown
		say(llm.TextDelta{Text: "two "})
		<-refused
		say(llm.TextDelta{Text: "three"})
		return nil
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Limits: chat.Limits{EditsPerMinute: 50}})
	var once sync.Once
	h.Platform.Fail(func(op string, _ chat.Outgoing) error {
		if op != "edit" {
			return nil
		}
		once.Do(func() { close(refused) })
		return &chat.RateLimitError{RetryAfter: time.Hour, Edits: true}
	})
	var first sync.Once
	h.Platform.After(func(op string, _ chat.Outgoing) error {
		if op == "send" {
			first.Do(func() { close(shown) })
		}
		return nil
	})
	h.Say(owner, "count")
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the answer alone", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && ps[0].Out.Text == "one two three"
	})
	if ps[0].Edits != 0 {
		t.Errorf("the answer was edited in: %+v", ps[0])
	}
}

// TestWhatIsSaidOfAStopStandsBelowTheTurn: the live message of a turn that was
// stopped does not go on below the words that say so.
func TestWhatIsSaidOfAStopStandsBelowTheTurn(t *testing.T) {
	stopping := make(chan struct{})
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		say(llm.TextDelta{Text: "I look."})
		return callOnce(ctx, r, say)
	})
	replied := make(chan struct{})
	h := gatewaytest.New(t, m, gatewaytest.Options{
		// The tool ends only once the words stand there, and a little later.
		Tools: []tool.Tool{terminalLike(t, func(ctx context.Context) string {
			close(stopping)
			<-ctx.Done()
			<-replied
			return "ended"
		})},
		Policy: tool.Policy{Mode: tool.Allow},
	})
	h.Platform.After(func(op string, out chat.Outgoing) error {
		if out.Text == "⏹ Stopped." {
			close(replied)
		}
		return nil
	})
	h.Say(owner, "do it")
	<-stopping
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "progress", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && len(ps[0].Out.Progress) > 1
	})
	h.Say(owner, "/stop")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the turn's end above the words", func(ps []gatewaytest.Post) bool {
		return len(ps) == 2 && ps[0].Out.Text == "⏹ *Stopped.*" && ps[1].Out.Text == "⏹ Stopped."
	})
}

// TestTheAnswerStandsBelowWhatItAnswers: what a person says to a running turn stands
// below its live message. The answer that heeds it is a new message below that, and the
// one above goes.
func TestTheAnswerStandsBelowWhatItAnswers(t *testing.T) {
	t.Run("a quick follow-up", func(t *testing.T) {
		m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
			if !strings.Contains(gatewaytest.LastUser(r), "and that") {
				say(llm.TextDelta{Text: "So far"})
				<-ctx.Done()
				return ctx.Err()
			}
			say(llm.TextDelta{Text: "Both."})
			return nil
		})
		h := gatewaytest.New(t, m, gatewaytest.Options{})
		h.Say(owner, "this")
		above := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the live message", func(ps []gatewaytest.Post) bool {
			return len(ps) == 1 && ps[0].Out.Text == "So far"
		})
		h.Say(owner, "and that")
		standsBelow(t, h, above[0], "Both.")
	})
	t.Run("a typed answer to a question", func(t *testing.T) {
		m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
			say(llm.TextDelta{Text: "I look."})
			return callOnce(ctx, r, say)
		})
		h := gatewaytest.New(t, m, gatewaytest.Options{Tools: []tool.Tool{terminalLike(t, func(context.Context) string { return "done it" })}})
		h.Say(owner, "do it")
		above := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the live message below the card", func(ps []gatewaytest.Post) bool {
			return len(ps) == 2 && isCard(ps[0]) && len(ps[1].Out.Progress) > 0
		})
		h.Say(owner, "yes")
		standsBelow(t, h, above[1], "I look.result: done it")
	})
}

// standsBelow waits for an answer in a message of its own, and for the one above to go.
func standsBelow(t *testing.T, h *gatewaytest.Harness, above gatewaytest.Post, answer string) {
	t.Helper()
	h.Platform.Await(t, above.Chat, "the answer below", func(ps []gatewaytest.Post) bool {
		last := ps[len(ps)-1]
		return last.ID != above.ID && last.Out.Text == answer && !last.Out.Live &&
			!slices.ContainsFunc(ps, func(p gatewaytest.Post) bool { return p.ID == above.ID })
	})
}
