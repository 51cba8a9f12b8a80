package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// edit delivers the change of a message in a chat of the owner's.
func edit(h *gatewaytest.Harness, kind chat.Kind, in chat.ChatID, id chat.MessageID, text string) {
	h.T.Helper()
	h.Deliver(chat.MessageEdited{Text: text, ForBot: true, Origin: chat.Origin{
		Key: chat.EventKey("edit/" + string(id) + "/" + text), Message: id, From: owner, Kind: kind, At: time.Now(),
		Address: chat.Address{Account: "test/main", Chat: in},
	}})
}

// awaitEdit waits until the newest change of a message has ended for a reason.
func awaitEdit(t *testing.T, h *gatewaytest.Harness, id chat.MessageID, reason string) {
	t.Helper()
	eventually(t, "an edit that is "+reason, func() bool {
		w, err := h.Store.Explain(t.Context(), "test/main", "", id)
		if err != nil {
			return false
		}
		it, err := h.Store.LastEdit(t.Context(), w.Item.Conversation, id)
		return err == nil && strings.HasPrefix(it.Reason, reason)
	})
}

// MEN-002: the change of a message that is being answered does what the busy mode says.
func TestEditWhileTheTurnRuns(t *testing.T) {
	for _, mode := range []gateway.BusyMode{gateway.BusyInterrupt, gateway.BusyQueue} {
		t.Run(string(mode), func(t *testing.T) {
			goOn := make(chan struct{})
			m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
				if strings.Contains(gatewaytest.LastUser(r), "Venus") {
					return echo(ctx, r, say)
				}
				return looking(`{"path":"/mars"}`)(ctx, r, say)
			})
			h := gatewaytest.New(t, m, gatewaytest.Options{
				Tools: []tool.Tool{lookTool(t, goOn)}, Config: func(c *gateway.Config) { c.Conversations.Busy = mode },
			})
			room := gatewaytest.Direct(owner).Chat
			id := h.Say(owner, "look at Mars")
			h.Platform.Await(t, room, "the tool", func(ps []gatewaytest.Post) bool { return len(ps) == 1 && len(ps[0].Out.Progress) == 2 })
			edit(h, chat.Direct, room, id, "look at Venus")
			if mode == gateway.BusyQueue {
				eventually(t, "the sign that it waits", func() bool { return slices.Contains(h.Platform.Reactions(id), chat.ReactSeen) })
				close(goOn)
				h.Platform.Await(t, room, "the first answer", func(ps []gatewaytest.Post) bool { return ps[0].Out.Text == "There are three files." })
			}
			h.Final(owner, "echo: look at Venus")
			last := m.Requests()[len(m.Requests())-1]
			if got := gatewaytest.LastUser(&last); !strings.Contains(got, "I have changed my message") {
				t.Errorf("the model is told %q", got)
			}
		})
	}
}

// What was answered can be answered again as it was changed, in a branch, once, by its
// sender or an admin; further changes find the same offer.
func TestEditAfterTheAnswer(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.SayIn("room", owner, "before")
	id := h.SayIn("room", owner, "look at Mars")
	await := func(text string) []gatewaytest.Post {
		return h.Platform.Await(t, "room", text, func(ps []gatewaytest.Post) bool {
			return len(ps) > 0 && !newest(ps).Live && strings.HasPrefix(newest(ps).Text, text)
		})
	}
	await("echo: look at Mars")
	h.SayIn("room", owner, "after")
	await("echo: after")
	edit(h, chat.Group, "room", id, "look at Mars")
	awaitEdit(t, h, id, "edited without a change")
	edit(h, chat.Group, "room", id, "look at Venys")
	ps := await("✏️ You have changed a message")
	offer := ps[len(ps)-1]
	edit(h, chat.Group, "room", id, "look at Venus")
	h.Platform.Await(t, "room", "the offer again", func(now []gatewaytest.Post) bool {
		return len(now) == len(ps) && now[len(now)-1].Edits > offer.Edits
	})
	press := offer.Out.Buttons[0][0].Data
	h.Press(user, offer, press)
	awaitAck(t, h, 1, "Only the person who changed the message, or an admin, may do this.")
	h.Press(owner, offer, press)
	await("echo: look at Venus")
	for _, msg := range m.Requests()[len(m.Requests())-1].Messages {
		if s := msg.Text(); strings.Contains(s, "Mars") || strings.Contains(s, "after") {
			t.Errorf("what the branch is not about is still sent: %q", s)
		}
	}
	h.Press(owner, offer, press)
	awaitAck(t, h, 3, "I have answered that already.")
	for _, p := range h.Platform.Posts("room") {
		if p.ID == offer.ID && (len(p.Out.Buttons) > 0 || !strings.HasPrefix(p.Out.Text, "🌿")) {
			t.Errorf("the offer still says %q", p.Out.Text)
		}
	}
}

// MEN-015: a mention that is added by an edit starts one turn; another edit starts none.
func TestMentionAddedByAnEdit(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	o := chat.Origin{Key: "message/77", Message: "77", Address: chat.Address{Account: "test/main", Chat: "room"}, Kind: chat.Group, From: owner, At: time.Now()}
	h.Deliver(chat.MessageReceived{Origin: o, Text: "hello"})
	edit(h, chat.Group, "room", "77", "hello you")
	h.Platform.Await(t, "room", "the answer", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && !ps[0].Out.Live && ps[0].Out.Text == "echo: hello you"
	})
	edit(h, chat.Group, "room", "77", "hello, you")
	awaitEdit(t, h, "77", "edited after it was answered: offered")
	if n := len(m.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	edit(h, chat.Group, "room", "78", "/new") // of a message that nobody told of
	awaitEdit(t, h, "78", "edited, and not known")
}

// A deleted question is not answered any more where people may interrupt.
func TestDeletedWhileTheTurnRuns(t *testing.T) {
	m := gatewaytest.NewModel(silent)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	id := h.Say(owner, "never mind")
	awaitRequests(t, m, 1)
	h.Deliver(chat.MessageDeleted{Origin: chat.Origin{
		Key: "delete/1", Message: id, Address: gatewaytest.Direct(owner), Kind: chat.Direct, From: owner, At: time.Now(),
	}})
	eventually(t, "the end of the turn", func() bool { w := explained(t, h, id); return w.Turn != nil && !w.Turn.EndedAt.IsZero() })
	m.Answer(echo)
	h.Say(owner, "next")
	if ps := h.Final(owner, "echo: next"); len(ps) != 1 {
		t.Errorf("the chat shows %+v", ps)
	}
}
