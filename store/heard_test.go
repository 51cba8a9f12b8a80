package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/gateway/chat"
)

// What was heard last is told by the order in which it was stored, refused messages
// too, and only of the account that asks.
func TestHeard(t *testing.T) {
	w := newWorld(t)
	say := func(account chat.AccountID, in chat.ChatID, id chat.MessageID) {
		ev := said(string(account)+string(id), "hello")
		ev.Address.Account, ev.Address.Chat, ev.Message = account, in, id
		w.receive(ev)
	}
	say("x/a", "1", "m1")
	say("x/a", "2", "m2")
	say("x/b", "3", "m3")
	say("x/a", "1", "m4")
	newest, chats, err := w.Heard(t.Context(), "x/a")
	w.check(err)
	if d := cmp.Diff([]chat.MessageID{"m4", "m2", "m1"}, newest); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]chat.ChatID{"1", "2"}, chats); d != "" {
		t.Error(d)
	}
}
