package gateway_test

import (
	"context"
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
		last := newest(ps)
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
	cardSays(t, h, card, "Allowed by Olga")
	if ran.Load() != 1 {
		t.Errorf("the tool ran %d times", ran.Load())
	}
}

// asking asks which colour, and answers with what it was told.
func asking(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
	if last := r.Messages[len(r.Messages)-1]; last.Role == llm.ToolRole {
		say(llm.TextDelta{Text: "result: " + last.Text()})
		return nil
	}
	say(llm.ToolCallDelta{ID: "c1", Name: "clarify", Arguments: `{"question":"Which colour?","options":["red","dark blue"]}`})
	return nil
}

// APR-001, APR-010: a question's buttons are for the person who was asked and admins;
// their data tells nothing and is too short to be refused; what is pressed a second time
// changes nothing, and made-up data decides nothing.
func TestClarifyByButton(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(asking), gatewaytest.Options{})
	h.SayIn("room", owner, "paint it")
	ps := h.Platform.Await(t, "room", "the card", func(ps []gatewaytest.Post) bool { return len(ps) > 0 && isCard(ps[len(ps)-1]) })
	card := ps[len(ps)-1]
	red, blue := card.Out.Buttons[0][0].Data, card.Out.Buttons[1][0].Data
	if len(blue) > 64 || strings.Contains(blue, "blue") {
		t.Errorf("a button's data is %q", blue)
	}
	if !strings.HasSuffix(card.Out.Text, "reply to this message with your own answer.*") {
		t.Errorf("in a group, where only replies are heard, the card says %q", card.Out.Text)
	}
	h.Press(user, card, blue)
	awaitAck(t, h, 1, "Only the person who was asked, or an admin, may answer.")
	h.Press(owner, card, strings.TrimSuffix(blue, "1")+"7")
	awaitAck(t, h, 2, "This button is no longer used.")
	h.Press(owner, card, blue)
	h.Press(owner, card, red)
	awaitAck(t, h, 4, "This question is no longer open.")
	h.Platform.Await(t, "room", "the answer", func(ps []gatewaytest.Post) bool {
		return newest(ps).Text == "result: The user answered: dark blue"
	})
	cardSays(t, h, card, "💬 Olga: dark blue")
}

// Where there are no buttons the options are numbered, and a number answers.
func TestClarifyInText(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(asking), gatewaytest.Options{Limits: chat.Limits{NoButtons: true}})
	h.Say(owner, "paint it")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the question", func(ps []gatewaytest.Post) bool {
		last := ps[max(0, len(ps)-1):]
		return len(last) == 1 && strings.Contains(last[0].Out.Text, "1. red\n2. dark blue\n") && len(last[0].Out.Buttons) == 0
	})
	h.Say(owner, "2")
	h.Final(owner, "result: The user answered: dark blue")
}

// A file answers a question, too.
func TestClarifyByAFile(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(asking), gatewaytest.Options{})
	h.Platform.Hold(holding("swatch"))
	h.Say(owner, "paint it")
	awaitCard(t, h)
	attach(h, "7", "", chat.File{ID: "f", Name: "swatch.txt"})
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the answer", func(ps []gatewaytest.Post) bool {
		last := newest(ps).Text
		return strings.HasPrefix(last, "result: The user answered: (attached: files/") && strings.HasSuffix(last, "-swatch.txt)")
	})
}

// A press after a restart decides what was asked before it, and the answer comes below
// the question, which stood below what was live then (STR-004).
func TestPressAfterARestart(t *testing.T) {
	o := gatewaytest.Options{Config: func(c *gateway.Config) { c.Shutdown.Grace = 1 }}
	h := gatewaytest.New(t, gatewaytest.NewModel(asking), o)
	h.Say(owner, "paint it")
	card := awaitCard(t, h)
	h.Stop()
	o.Store, o.Platform = h.Store, h.Platform
	h = gatewaytest.New(t, gatewaytest.NewModel(asking), o)
	h.Press(owner, card, card.Out.Buttons[0][0].Data)
	h.Platform.Await(t, card.Chat, "question and answer alone", func(ps []gatewaytest.Post) bool {
		return len(ps) == 2 && ps[0].ID == card.ID && !ps[1].Out.Live && ps[1].Out.Text == "result: The user answered: red"
	})
	cardSays(t, h, card, "💬 Olga: red")
}
