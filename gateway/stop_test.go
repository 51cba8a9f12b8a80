package gateway_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// awaitStop waits for a live message of a chat with its stop button.
func awaitStop(t *testing.T, h *gatewaytest.Harness, of chat.ChatID) gatewaytest.Post {
	t.Helper()
	ps := h.Platform.Await(t, of, "a stop button", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && newest(ps).Live && len(newest(ps).Buttons) == 1
	})
	return ps[len(ps)-1]
}

// awaitAck waits for the n-th notice to somebody who pressed.
func awaitAck(t *testing.T, h *gatewaytest.Harness, n int, want string) {
	t.Helper()
	h.Platform.Await(t, "", fmt.Sprintf("notice %d", n), func([]gatewaytest.Post) bool { return len(h.Platform.Acks()) >= n })
	if got := h.Platform.Acks()[n-1]; got != want {
		t.Errorf("notice %d is %q, want %q", n, got, want)
	}
}

// The stop button of a live message is /stop for the turn's person and admins; a press
// that comes twice or too late is told so, and ends no later turn (APR-001, APR-010).
func TestStopButton(t *testing.T) {
	ch := make(chan string)
	m := gatewaytest.NewModel(pieces(ch))
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.SayIn("room", owner, "go")
	ch <- "so far"
	live := awaitStop(t, h, "room")
	stop := live.Out.Buttons[0][0].Data
	if len(stop) > 64 {
		t.Errorf("the button's data is %d bytes", len(stop))
	}
	h.Press(user, live, stop)
	awaitAck(t, h, 1, "Only the person whose question this is, or an admin, may stop it.")
	h.Press(owner, live, stop)
	ps := h.Platform.Await(t, "room", "the end", func(ps []gatewaytest.Post) bool {
		return len(ps) == 2 && ps[0].Out.Text == "so far\n\n⏹ *Stopped here.*" && ps[1].Out.Text == "⏹ Stopped."
	})
	for _, p := range ps {
		if len(p.Out.Buttons) > 0 {
			t.Errorf("a button is left below %q", p.Out.Text)
		}
	}
	m.Answer(pieces(ch))
	h.SayIn("room", owner, "again")
	ch <- "more"
	awaitStop(t, h, "room")
	h.Press(owner, live, stop)
	awaitAck(t, h, 3, "This has ended already.")
	close(ch)
	h.Platform.Await(t, "room", "the second answer", func(ps []gatewaytest.Post) bool {
		last := newest(ps)
		return last.Text == "more" && !last.Live && len(last.Buttons) == 0
	})
}

// A press that comes after a restart stops the turn that goes on then.
func TestStopButtonAfterARestart(t *testing.T) {
	ch := make(chan string)
	m := gatewaytest.NewModel(pieces(ch))
	o := gatewaytest.Options{Config: func(c *gateway.Config) { c.Shutdown.Grace = 1 }}
	h := gatewaytest.New(t, m, o)
	h.Say(owner, "go")
	ch <- "so far"
	live := awaitStop(t, h, gatewaytest.Direct(owner).Chat)
	h.Stop()
	o.Store, o.Platform = h.Store, gatewaytest.NewPlatform(chat.Limits{})
	h = gatewaytest.New(t, m, o)
	awaitRequests(t, m, 2)
	h.Press(owner, live, live.Out.Buttons[0][0].Data)
	h.Platform.Await(t, live.Chat, "the word about it", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && newest(ps).Text == "⏹ Stopped."
	})
}

// Where the client has a stop of its own, or no buttons, none is shown.
func TestNoStopButton(t *testing.T) {
	for _, l := range []chat.Limits{{OwnStop: true}, {NoButtons: true}} {
		ch := make(chan string)
		h := gatewaytest.New(t, gatewaytest.NewModel(pieces(ch)), gatewaytest.Options{Limits: l})
		h.Say(owner, "go")
		ch <- "so far"
		if p := awaitLive(t, h, "so far"); len(p.Out.Buttons) > 0 {
			t.Errorf("%+v: %v", l, p.Out.Buttons)
		}
		close(ch)
		h.Final(owner, "so far")
	}
}

// One reaction says that a message is worked on and one how it ended; only one that
// has to wait shows before that it was seen, and loses that with the others.
func TestReactions(t *testing.T) {
	ch := make(chan string)
	m := gatewaytest.NewModel(pieces(ch))
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Conversations.Busy = gateway.BusyQueue }})
	first := h.SayIn("room", owner, "one")
	awaitRequests(t, m, 1)
	second, third := h.SayIn("room", user, "two"), h.SayIn("room", user, "three")
	h.Platform.AwaitReaction(t, third, chat.ReactSeen)
	m.Answer(echo)
	close(ch)
	h.Platform.AwaitReaction(t, third, chat.ReactDone)
	got := [][]chat.Reaction{h.Platform.Reactions(first), h.Platform.Reactions(second), h.Platform.Reactions(third)}
	want := [][]chat.Reaction{
		{chat.ReactWorking, chat.ReactDone},
		{chat.ReactSeen, chat.ReactNone},
		{chat.ReactSeen, chat.ReactWorking, chat.ReactDone},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("reactions (-want +got):\n%s", d)
	}
	m.Answer(func(_ context.Context, r *llm.Request, _ func(llm.Event) bool) error {
		return &llm.Error{Kind: llm.KindBilling, Message: "no money", Model: r.Model}
	})
	failed := h.Say(owner, "fail")
	h.Platform.AwaitReaction(t, failed, chat.ReactFailed)
	if d := cmp.Diff([]chat.Reaction{chat.ReactWorking, chat.ReactFailed}, h.Platform.Reactions(failed)); d != "" {
		t.Error(d)
	}
}

// newest is what a chat showed last; the zero value if it shows nothing.
func newest(ps []gatewaytest.Post) chat.Outgoing {
	if len(ps) == 0 {
		return chat.Outgoing{}
	}
	return ps[len(ps)-1].Out
}
