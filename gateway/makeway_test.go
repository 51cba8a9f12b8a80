package gateway_test

import (
	"context"
	"strings"
	"testing"

	"parley/agentcore/llm"
	"parley/gateway"
	"parley/gateway/gatewaytest"
)

// held is a model that is silent until it is let go, and then echoes.
func held(on <-chan struct{}) func(context.Context, *llm.Request, func(llm.Event) bool) error {
	return func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		select {
		case <-on:
			return echo(ctx, r, say)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A command that changes nothing (it lists, or is not right) is answered at once and
// the running turn goes on, also with a message queued before it.
func TestACommandThatChangesNothingEndsNothing(t *testing.T) {
	on := make(chan struct{})
	m := gatewaytest.NewModel(held(on))
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Conversations.Busy = gateway.BusyQueue }})
	h.Say(owner, "work")
	awaitRequests(t, m, 1)
	for _, c := range []struct{ command, answer string }{
		{"/resume", "Sessions of this chat"},
		{"/resume 99", "There is no session"},
		{"/undo x", "takes back that many"},
		{"/undo 99", "can be taken back here"},
	} {
		h.Say(owner, c.command)
		h.Platform.Await(t, gatewaytest.Direct(owner).Chat, c.command, func(ps []gatewaytest.Post) bool {
			return len(ps) > 0 && strings.Contains(ps[len(ps)-1].Out.Text, c.answer)
		})
	}
	close(on)
	h.Final(owner, "echo: work")
}

// Whoever may not stop a turn cannot end it by another command either (CMD-004, KEY-002).
func TestOnlyWhoMayStopMakesWay(t *testing.T) {
	on := make(chan struct{})
	m := gatewaytest.NewModel(held(on))
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Access.Allow = append(c.Access.Allow, string(user.ID)) }})
	h.SayIn("room", owner, "work")
	awaitRequests(t, m, 1)
	for i, command := range []string{"/new yes", "/undo", "/branch", "/compress", "/retry"} {
		h.SayIn("room", user, command)
		h.Platform.Await(t, "room", command, func(ps []gatewaytest.Post) bool {
			return len(ps) == i+1 && strings.Contains(ps[i].Out.Text, "at work for somebody else")
		})
	}
	close(on)
	h.Platform.Await(t, "room", "the answer", func(ps []gatewaytest.Post) bool {
		return strings.HasSuffix(ps[len(ps)-1].Out.Text, "echo: work")
	})
	h.SayIn("room", user, "/new yes")
	h.Platform.Await(t, "room", "a new session", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "A new session")
	})
}

// An unsuccessful /compress offers no summary.
func TestNoSummaryIsOfferedWhereThereIsNone(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	h.Say(owner, "one")
	h.Final(owner, "echo: one")
	h.Say(owner, "/compress")
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "nothing to do", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "Nothing was compressed")
	})
	if b := ps[len(ps)-1].Out.Buttons; len(b) != 0 {
		t.Errorf("it has the buttons %v", b)
	}
}
