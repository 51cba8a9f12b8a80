package gateway_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentcore/tool"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// isCard says whether a post asks something; a live message has a stop button only.
func isCard(p gatewaytest.Post) bool { return len(p.Out.Buttons) > 0 && !p.Out.Live }

// awaitCard waits for a message with buttons in the owner's chat.
func awaitCard(t *testing.T, h *gatewaytest.Harness) gatewaytest.Post {
	t.Helper()
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the card", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && isCard(ps[len(ps)-1])
	})
	return ps[len(ps)-1]
}

// cardSays waits until the card has no buttons and says what became of it.
func cardSays(t *testing.T, h *gatewaytest.Harness, card gatewaytest.Post, want string) {
	t.Helper()
	h.Platform.Await(t, card.Chat, "the card's end", func(ps []gatewaytest.Post) bool {
		for _, p := range ps {
			if p.ID == card.ID {
				return len(p.Out.Buttons) == 0 && strings.Contains(p.Out.Text, want)
			}
		}
		return false
	})
}

// APR-008, APR-009, APR-010: there is one time limit. When it is over the card says
// so and has no buttons, nothing was run, the record says expired and not denied, and
// a press that comes later is told.
func TestExpiredApproval(t *testing.T) {
	var ran atomic.Int32
	h := gatewaytest.New(t, gatewaytest.NewModel(callOnce), gatewaytest.Options{
		Tools:  []tool.Tool{terminalLike(t, func(context.Context) string { ran.Add(1); return "done it" })},
		Config: func(c *gateway.Config) { c.Approvals.Timeout = 300 * time.Millisecond },
	})
	h.Say(owner, "do it")
	card := awaitCard(t, h)
	cardSays(t, h, card, "Nobody answered in time")
	h.Platform.Await(t, card.Chat, "the answer", func(ps []gatewaytest.Post) bool {
		last := ps[len(ps)-1].Out
		return !last.Live && strings.HasPrefix(last.Text, "result: ") && strings.Contains(last.Text, "not consent")
	})
	allow := card.Out.Buttons[0][0].Data
	h.Press(owner, card, allow)
	eventually(t, "a word about the late press", func() bool {
		acks := h.Platform.Acks()
		return len(acks) == 1 && strings.Contains(acks[0], "no longer open")
	})
	cardSays(t, h, card, "Nobody answered in time")
	a, _, err := h.Store.ApprovalCard(t.Context(), record.ApprovalID(strings.Split(allow, ":")[1]))
	if err != nil || a.State != record.ApprovalExpired || a.DecidedBy != "" {
		t.Errorf("the record says %s by %q, %v", a.State, a.DecidedBy, err)
	}
	if ran.Load() != 0 {
		t.Error("the tool ran without consent")
	}
}

// APR-011: the acknowledgement of a press is lost, the decision is not, and a second
// press changes nothing.
func TestDecisionDoesNotNeedItsAcknowledgement(t *testing.T) {
	var ran atomic.Int32
	h := gatewaytest.New(t, gatewaytest.NewModel(callOnce), gatewaytest.Options{
		Tools: []tool.Tool{terminalLike(t, func(context.Context) string { ran.Add(1); return "done it" })},
	})
	h.Platform.Fail(func(op string, _ chat.Outgoing) error {
		if op == "ack" {
			return errTransient
		}
		return nil
	})
	h.Say(owner, "do it")
	card := awaitCard(t, h)
	h.Press(owner, card, card.Out.Buttons[0][0].Data)
	cardSays(t, h, card, "Allowed by Olga")
	h.Final(owner, "result: done it")
	h.Platform.Fail(nil)
	h.Press(owner, card, card.Out.Buttons[0][1].Data)
	eventually(t, "a word about the second press", func() bool { return len(h.Platform.Acks()) == 1 })
	cardSays(t, h, card, "Allowed")
	if ran.Load() != 1 {
		t.Errorf("the tool ran %d times", ran.Load())
	}
}
