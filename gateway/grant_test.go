package gateway_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agentcore/tool"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// press finds the button of that label on the newest card and presses it.
func press(t *testing.T, h *gatewaytest.Harness, u chat.User, label string) {
	t.Helper()
	var card gatewaytest.Post
	h.Platform.Await(t, gatewaytest.Direct(user).Chat, "a card with "+label, func(ps []gatewaytest.Post) bool {
		if len(ps) == 0 {
			return false
		}
		card = ps[len(ps)-1]
		return isCard(card)
	})
	for _, row := range card.Out.Buttons {
		for _, b := range row {
			if b.Label == label {
				h.Press(u, card, b.Data)
				return
			}
		}
	}
	t.Fatalf("no button %s on %+v", label, card.Out.Buttons)
}

// A consent for the session is asked for once in it; always is for admins; what
// stands can be listed and revoked, and is asked for again then.
func TestLastingConsent(t *testing.T) {
	var ran atomic.Int32
	h := gatewaytest.New(t, gatewaytest.NewModel(callOnce), gatewaytest.Options{
		Tools: []tool.Tool{terminalLike(t, func(context.Context) string { ran.Add(1); return "done it" })},
	})
	times := func(n int32) {
		t.Helper()
		eventually(t, "the tool's run", func() bool { return ran.Load() == n })
	}
	said := func(what string) {
		t.Helper()
		h.Platform.Await(t, gatewaytest.Direct(user).Chat, what, func(ps []gatewaytest.Post) bool {
			return len(ps) > 0 && strings.Contains(ps[len(ps)-1].Out.Text, what)
		})
	}
	h.Say(user, "do it")
	press(t, h, user, "Always")
	eventually(t, "the refusal", func() bool { a := h.Platform.Acks(); return len(a) == 1 && strings.Contains(a[0], "Only an admin") })
	press(t, h, user, "Allow for this session")
	h.Final(user, "result: done it")
	h.Say(user, "do it again")
	times(2)
	h.Final(user, "result: done it")
	h.Say(user, "/approve list")
	said("in this session, until")
	h.Say(user, "/approve revoke 2")
	said("no such number")
	h.Say(user, "/approve revoke 1")
	said("asked for again")
	h.Say(user, "/approve list")
	said("Nothing is allowed")
	h.Say(user, "do it")
	press(t, h, user, "Deny")
	said("denied it")
	if ran.Load() != 2 {
		t.Errorf("ran %d times", ran.Load())
	}
}
