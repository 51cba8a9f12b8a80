package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/storetest"
)

var (
	owner = gatewaytest.Owner
	user  = gatewaytest.User
)

// echo answers with what was asked.
func echo(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
	say(llm.TextDelta{Text: "echo: " + lastLine(gatewaytest.LastUser(r))})
	return nil
}

// lastLine is the last line without the time that stands before what was said.
func lastLine(s string) string {
	s = s[strings.LastIndexByte(s, '\n')+1:]
	if _, said, ok := strings.Cut(s, "] "); ok && strings.HasPrefix(s, "[") {
		return said
	}
	return s
}

// silent waits until the call is abandoned.
func silent(ctx context.Context, _ *llm.Request, _ func(llm.Event) bool) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAMessageIsAnsweredOnce(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	id := h.Say(owner, "hello")
	h.Final(owner, "echo: hello")
	h.Platform.AwaitReaction(t, id, chat.ReactDone)
	h.Say(owner, "again")
	ps := h.Final(owner, "echo: again")
	if len(ps) != 2 {
		t.Errorf("the chat shows %d messages, want 2: %+v", len(ps), ps)
	}
}

// DUP-001, DUP-004, DUP-010: one event, many deliveries, in parallel.
func TestRedeliveryIsAnsweredOnce(t *testing.T) {
	var calls atomic.Int32
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		calls.Add(1)
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	ev := chat.MessageReceived{
		Origin: chat.Origin{Key: "message/1", Message: "1", Address: gatewaytest.Direct(owner), Kind: chat.Direct, From: owner, At: time.Now()},
		Text:   "once", ForBot: true,
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { h.Deliver(ev) })
	}
	wg.Wait()
	h.Final(owner, "echo: once")
	h.Say(owner, "next")
	ps := h.Final(owner, "echo: next")
	if len(ps) != 2 || calls.Load() != 2 {
		t.Errorf("%d posts, %d model calls; want 2 and 2", len(ps), calls.Load())
	}
}

func TestStreamIsOneMessageThatBecomesTheAnswer(t *testing.T) {
	goOn := make(chan struct{})
	m := gatewaytest.NewModel(func(ctx context.Context, _ *llm.Request, say func(llm.Event) bool) error {
		say(llm.TextDelta{Text: "first"})
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		say(llm.TextDelta{Text: " second"})
		return nil
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "go")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "live text", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && ps[0].Out.Live && ps[0].Out.Text == "first"
	})
	close(goOn)
	if ps := h.Final(owner, "first second"); len(ps) != 1 || ps[0].Edits == 0 {
		t.Errorf("want one message that was edited, got %+v", ps)
	}
}

// STP-002, STP-003: released in under a second, the next message works.
func TestStopWhileTheModelIsSilent(t *testing.T) {
	m := gatewaytest.NewModel(silent)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "wait for ever")
	awaitRequests(t, m, 1)
	begun := time.Now()
	h.Say(owner, "/stop")
	h.Final(owner, "⏹ Stopped.")
	m.Answer(echo)
	h.Say(owner, "next")
	h.Final(owner, "echo: next")
	if d := time.Since(begun); d > 3*time.Second {
		t.Errorf("stop and the next answer took %s", d)
	}
}

func awaitRequests(t *testing.T, m *gatewaytest.Model, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for len(m.Requests()) < n {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("the model was asked %d times, want %d", len(m.Requests()), n)
		}
	}
}

// CON-001, CON-004, CON-016: in queue mode everything is answered, in order.
func TestQueueModeAnswersEverything(t *testing.T) {
	release := make(chan struct{})
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		select {
		case <-release:
		case <-ctx.Done():
			return ctx.Err()
		}
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Conversations.Busy = gateway.BusyQueue }})
	h.SayIn("room", owner, "one")
	awaitRequests(t, m, 1)
	for i := range 3 {
		h.SayIn("room", user, fmt.Sprintf("more %d", i))
	}
	close(release)
	h.Platform.Await(t, "room", "the queued messages", func(ps []gatewaytest.Post) bool {
		return len(ps) == 2 && !ps[1].Out.Live && strings.HasSuffix(ps[1].Out.Text, "more 2")
	})
	last := m.Requests()[len(m.Requests())-1]
	text := gatewaytest.LastUser(&last)
	for i := range 3 {
		if strings.Count(text, fmt.Sprintf("more %d", i)) != 1 {
			t.Errorf("the request lacks message %d, or has it twice:\n%s", i, text)
		}
	}
}

// MEN-002: the change of a message that waits is what is answered, also when the
// inbox is read anew before that.
func TestAQueuedMessageMayBeChanged(t *testing.T) {
	release := make(chan struct{})
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		select {
		case <-release:
		case <-ctx.Done():
			return ctx.Err()
		}
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Conversations.Busy = gateway.BusyQueue }})
	h.SayIn("room", owner, "one")
	awaitRequests(t, m, 1)
	id := h.SayIn("room", user, "the first version")
	h.Deliver(chat.MessageEdited{Text: "the second version", ForBot: true, Origin: chat.Origin{
		Key: "edit/1", Message: id, Address: chat.Address{Account: "test/main", Chat: "room"}, Kind: chat.Group, From: user, At: time.Now(),
	}})
	h.SayIn("room", user, "/status") // is answered after the change was seen
	h.Platform.Await(t, "room", "the status", func(ps []gatewaytest.Post) bool { return len(ps) == 1 })
	close(release)
	h.Platform.Await(t, "room", "the answer to the second version", func(ps []gatewaytest.Post) bool {
		return len(ps) == 3 && ps[2].Out.Text == "echo: the second version"
	})
}

// A quick follow-up of the same person joins the turn silently.
func TestQuickFollowUpJoinsTheTurn(t *testing.T) {
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if !strings.Contains(gatewaytest.LastUser(r), "second") {
			return silent(ctx, r, say)
		}
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "first")
	awaitRequests(t, m, 1)
	h.Say(owner, "second")
	if ps := h.Final(owner, "echo: second"); len(ps) != 1 {
		t.Errorf("want one answer, got %+v", ps)
	}
	if last := m.Requests()[len(m.Requests())-1]; !strings.Contains(gatewaytest.LastUser(&last), "first") {
		t.Error("the first message is missing from the request")
	}
}

// DEL-004: an unknown outcome is shown once more with a mark, never more often.
func TestUnknownDeliveryIsShownOnceMoreWithAMark(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	var once sync.Once
	h.Platform.After(func(op string, m chat.Outgoing) (err error) {
		if op == "send" && strings.Contains(m.Text, "echo") {
			once.Do(func() { err = chat.ErrAmbiguous })
		}
		return err
	})
	h.Say(owner, "hello")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the marked repeat", func(ps []gatewaytest.Post) bool {
		return len(ps) == 2 && !ps[1].Out.Live && strings.Contains(ps[1].Out.Text, "Possibly a repeat") && strings.HasSuffix(ps[1].Out.Text, "echo: hello")
	})
	h.Platform.After(nil)
	h.Say(owner, "bye")
	if ps := h.Final(owner, "echo: bye"); len(ps) != 3 {
		t.Errorf("want three messages, got %d", len(ps))
	}
}

func TestRateLimitedFinalArrivesOnce(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	var n atomic.Int32
	h.Platform.Fail(func(op string, m chat.Outgoing) error {
		if n.Add(1) <= 3 {
			return &chat.RateLimitError{RetryAfter: 50 * time.Millisecond}
		}
		return nil
	})
	h.Say(owner, "hello")
	if ps := h.Final(owner, "echo: hello"); len(ps) != 1 {
		t.Errorf("want one message, got %+v", ps)
	}
}

// terminalLike is a tool that needs a person's consent.
func terminalLike(t *testing.T, run func(ctx context.Context) string) tool.Tool {
	t.Helper()
	spec := tool.Spec{ToolSpec: llm.ToolSpec{Name: "act", Description: "acts"}, Needs: tool.Exec}
	tl, err := tool.New(spec, func(ctx context.Context, _ tool.Call, _ struct{}) (tool.Result, error) {
		return tool.Result{Text: run(ctx)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// callOnce asks for the tool first and answers with its result then.
func callOnce(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
	if last := r.Messages[len(r.Messages)-1]; last.Role == llm.ToolRole {
		say(llm.TextDelta{Text: "result: " + last.Text()})
		return nil
	}
	say(llm.ToolCallDelta{ID: "c1", Name: "act", Arguments: "{}"})
	return nil
}

func TestApprovalByButton(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(callOnce), gatewaytest.Options{
		Tools: []tool.Tool{terminalLike(t, func(context.Context) string { return "done it" })},
	})
	h.Say(user, "do it")
	ps := h.Platform.Await(t, gatewaytest.Direct(user).Chat, "the card", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && isCard(ps[len(ps)-1])
	})
	card := ps[len(ps)-1]
	stranger := chat.User{ID: "test:2", Name: "Udo"}
	h.Press(stranger, card, card.Out.Buttons[0][0].Data)
	ps = h.Final(user, "result: done it")
	for _, p := range ps {
		if len(p.Out.Buttons) > 0 {
			t.Errorf("buttons are left: %+v", p)
		}
	}
}

// APR: an approval may not be given by somebody who was not asked.
func TestApprovalOnlyByTheRightPeople(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(callOnce), gatewaytest.Options{
		Tools: []tool.Tool{terminalLike(t, func(context.Context) string { return "done it" })},
	})
	h.SayIn("room", owner, "do it")
	ps := h.Platform.Await(t, "room", "the card", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && isCard(ps[len(ps)-1])
	})
	card := ps[len(ps)-1]
	press := func(u chat.User, key string) {
		h.Deliver(chat.ButtonPressed{
			Origin: chat.Origin{Key: chat.EventKey(key), Kind: chat.Group, From: u, Address: chat.Address{Account: "test/main", Chat: "room"}},
			Data:   card.Out.Buttons[0][0].Data,
		})
	}
	press(user, "p1")
	h.Platform.Await(t, "room", "the refusal", func([]gatewaytest.Post) bool { return len(h.Platform.Acks()) == 1 })
	if a := h.Platform.Acks()[0]; !strings.Contains(a, "Only the person") {
		t.Errorf("refusal is %q", a)
	}
	press(owner, "p2")
	h.Platform.Await(t, "room", "the result", func(ps []gatewaytest.Post) bool {
		return ps[len(ps)-1].Out.Text == "result: done it"
	})
}

// STP-001, STP-007: stop while an approval is open; the history stays legal.
func TestStopWhileAnApprovalIsOpen(t *testing.T) {
	m := gatewaytest.NewModel(callOnce)
	h := gatewaytest.New(t, m, gatewaytest.Options{Tools: []tool.Tool{terminalLike(t, func(context.Context) string { return "no" })}})
	h.Say(owner, "do it")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the card", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && isCard(ps[len(ps)-1])
	})
	h.Say(owner, "/stop")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "stopped", func(ps []gatewaytest.Post) bool {
		for _, p := range ps {
			if len(p.Out.Buttons) > 0 {
				return false
			}
		}
		return ps[len(ps)-1].Out.Text == "⏹ Stopped."
	})
	m.Answer(echo)
	h.Say(owner, "next")
	h.Final(owner, "echo: next")
}

func TestSessionsAndResume(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "alpha fact")
	h.Final(owner, "echo: alpha fact")
	h.Say(owner, "/new Second")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "new session", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "A new session")
	})
	h.Say(owner, "beta")
	h.Final(owner, "echo: beta")
	if last := m.Requests()[1]; len(last.Messages) != 1 {
		t.Errorf("after /new the request has %d messages, want 1", len(last.Messages))
	}
	h.Say(owner, "/resume 2")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "resumed", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "Back in")
	})
	h.Say(owner, "gamma")
	h.Final(owner, "echo: gamma")
	last := m.Requests()[2]
	if !strings.Contains(last.Messages[0].Text(), "alpha fact") {
		t.Errorf("after /resume the history is not there: %+v", last.Messages)
	}
}

// ACC-008, ACC-009: closed by default; a stranger's message is kept and answered
// once the owner allows them.
func TestStrangerIsPairedAndAnswered(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	h.Say(owner, "hello")
	h.Final(owner, "echo: hello")
	stranger := chat.User{ID: "test:99", Name: "Sam"}
	h.Say(stranger, "let me in")
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the request", func(ps []gatewaytest.Post) bool {
		return len(ps[len(ps)-1].Out.Buttons) > 0
	})
	h.Press(owner, ps[len(ps)-1], ps[len(ps)-1].Out.Buttons[0][0].Data)
	h.Final(stranger, "echo: let me in")
}

// A second gateway on the same database takes over when the first is gone.
func TestRestartGoesOn(t *testing.T) {
	db := storetest.New(t)
	m := gatewaytest.NewModel(silent)
	p := gatewaytest.NewPlatform(chat.Limits{})
	h := gatewaytest.New(t, m, gatewaytest.Options{Store: db, Platform: p, Config: func(c *gateway.Config) { c.Shutdown.Grace = 10 * time.Millisecond }})
	h.Say(owner, "survive")
	awaitRequests(t, m, 1)
	h.Stop()
	m.Answer(echo)
	h = gatewaytest.New(t, m, gatewaytest.Options{Store: db, Platform: p})
	if ps := h.Final(owner, "echo: survive"); len(ps) != 1 {
		t.Errorf("want one answer, got %+v", ps)
	}
}

func TestFailedModelIsToldToThePerson(t *testing.T) {
	m := gatewaytest.NewModel(func(context.Context, *llm.Request, func(llm.Event) bool) error {
		return &llm.Error{Kind: llm.KindAuth, Status: 401, Message: "bad key"}
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	id := h.Say(owner, "hello")
	h.Platform.AwaitReaction(t, id, chat.ReactFailed)
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "a word about it", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && ps[0].Out.Text != ""
	})
}

// CMP: between turns a full conversation moves to a compressed child.
func TestCompressionBetweenTurns(t *testing.T) {
	var summaries atomic.Int32
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if len(r.Tools) == 0 {
			summaries.Add(1)
			say(llm.TextDelta{Text: "Summary: they counted."})
			return nil
		}
		say(llm.TextDelta{Text: strings.Repeat("many words here ", 300)})
		return nil
	})
	cfg := engine.DefaultConfig()
	cfg.ProtectLastN = 4
	h := gatewaytest.New(t, m, gatewaytest.Options{Window: 8000, Engine: cfg})
	for i := range 8 {
		id := h.Say(owner, fmt.Sprintf("message %d", i))
		h.Platform.AwaitReaction(t, id, chat.ReactDone)
	}
	if summaries.Load() == 0 {
		t.Error("nothing was compressed")
	}
	h.Say(owner, "/sessions")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the list", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "(current)")
	})
}

// TestWhoamiWithoutAName: the built-in chats know no name of the person.
func TestWhoamiWithoutAName(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	nameless := chat.User{ID: owner.ID}
	h.Say(nameless, "/whoami")
	h.Final(nameless, "You are `"+string(owner.ID)+"`, role **admin**.")
}

func TestUnknownCommandIsAnswered(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	h.Say(owner, "/frobnicate now")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "help", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && strings.Contains(ps[0].Out.Text, "/help")
	})
}

var errTransient = errors.New("connection refused")

// Every transient failure of the platform heals.
func TestTransientFailuresHeal(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	var n atomic.Int32
	h.Platform.Fail(func(string, chat.Outgoing) error {
		if n.Add(1) <= 2 {
			return errTransient
		}
		return nil
	})
	h.Say(owner, "hello")
	if ps := h.Final(owner, "echo: hello"); len(ps) != 1 {
		t.Errorf("want one message, got %+v", ps)
	}
}

// streaming: off shows nothing before it is final.
func TestStreamingOff(t *testing.T) {
	m := gatewaytest.NewModel(gatewaytest.Say("one two three four"))
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Streaming = gateway.StreamOff }})
	h.Say(owner, "go")
	if ps := h.Final(owner, "one two three four"); len(ps) != 1 || ps[0].Edits != 0 {
		t.Errorf("want one message that was never edited, got %+v", ps)
	}
}
