package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// message is a direct message of the owner.
func message(id, text string, more func(*chat.MessageReceived)) chat.MessageReceived {
	ev := chat.MessageReceived{
		Origin: chat.Origin{Key: chat.EventKey("message/" + id), Message: chat.MessageID(id), Address: gatewaytest.Direct(owner), Kind: chat.Direct, From: owner, At: time.Now()},
		Text:   text, ForBot: true,
	}
	if more != nil {
		more(&ev)
	}
	return ev
}

// CON-011: what somebody sends at once makes one turn with one answer.
func TestBurstIsOneTurn(t *testing.T) {
	const n = 8
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		for i := range n {
			if !strings.Contains(gatewaytest.LastUser(r), fmt.Sprintf("[sticker %d]", i)) {
				return silent(ctx, r, say)
			}
		}
		say(llm.TextDelta{Text: "all of them"})
		return nil
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { h.Deliver(message(fmt.Sprint(i), fmt.Sprintf("[sticker %d]", i), nil)) })
	}
	wg.Wait()
	if ps := h.Final(owner, "all of them"); len(ps) != 1 {
		t.Errorf("the chat shows %+v", ps)
	}
	turns := map[record.TurnID]bool{}
	for i := range n {
		turns[explained(t, h, chat.MessageID(fmt.Sprint(i))).Turn.ID] = true
	}
	if len(turns) != 1 {
		t.Errorf("%d turns, want one", len(turns))
	}
}

// ATT-009, ATT-012: an album comes as several messages and makes one turn with all
// its files and captions, in order.
func TestAlbumIsOneTurn(t *testing.T) {
	m := gatewaytest.NewModel(gatewaytest.Say("nice"))
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Platform.Hold(holding("a picture"))
	for i, caption := range []string{"before", "", "after"} {
		h.Deliver(message(fmt.Sprint(i), caption, func(ev *chat.MessageReceived) {
			ev.Group, ev.Files = "album", []chat.File{{ID: fmt.Sprint(i), Name: fmt.Sprintf("photo%d.jpg", i), MIME: "image/jpeg", Size: 9}}
		}))
	}
	if ps := h.Final(owner, "nice"); len(ps) != 1 || len(m.Requests()) != 1 {
		t.Fatalf("%d requests, the chat shows %+v", len(m.Requests()), ps)
	}
	r := m.Requests()[0]
	text, at := gatewaytest.LastUser(&r), 0
	for _, want := range []string{"before", "photo0.jpg", "photo1.jpg", "after", "photo2.jpg"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%s is missing or in another place:\n%s", want, text)
		}
		at += i
	}
}

// MEN-011: the edit of a message that was dealt with runs no command, neither the
// same again nor another one.
func TestEditRunsNoCommand(t *testing.T) {
	m := gatewaytest.NewModel(silent)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	working := h.Say(owner, "wait for ever")
	awaitRequests(t, m, 1)
	id := h.Say(owner, "/status")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the status", func(ps []gatewaytest.Post) bool { return len(ps) == 1 })
	for i, text := range []string{"/status", "/stop"} {
		h.Deliver(chat.MessageEdited{Text: text, ForBot: true, Origin: chat.Origin{
			Key: chat.EventKey(fmt.Sprint("edit/", i)), Message: id, Address: gatewaytest.Direct(owner), Kind: chat.Direct, From: owner, At: time.Now(),
		}})
	}
	h.Say(owner, "/whoami")
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "who it is", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "You are Olga")
	})
	if len(ps) != 2 {
		t.Errorf("the edits were answered: %+v", ps)
	}
	if turn := explained(t, h, working).Turn; !turn.EndedAt.IsZero() {
		t.Errorf("an edit ended the turn: %s", turn.State)
	}
	h.Say(owner, "/stop")
}

// ACC-005: what is known about one person is not in the requests of another.
func TestMemoryStaysWithItsPerson(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	const canary = "keeps a canary"
	if err := h.Store.SetDocument(t.Context(), "person:"+string(owner.ID), "USER.md", canary); err != nil {
		t.Fatal(err)
	}
	if err := h.Store.SetFact(t.Context(), record.Fact{Scope: "person:" + string(owner.ID), Category: "pet", Key: "bird", Value: canary}); err != nil {
		t.Fatal(err)
	}
	h.Say(owner, "hello")
	h.Final(owner, "echo: hello")
	h.Say(user, "who am I?")
	h.Final(user, "echo: who am I?")
	for i, want := range []int{2, 0} {
		r := m.Requests()[i]
		text := r.System
		for _, msg := range r.Messages {
			text += msg.Text()
		}
		if n := strings.Count(text, canary); n != want {
			t.Errorf("request %d knows it %d times, want %d", i, n, want)
		}
	}
}
