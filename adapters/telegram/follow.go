package telegram

import (
	"sync"

	"parley/gateway/chat"
)

// followLimit bounds what is remembered of groups that moved; a group moves once, and
// its conversation has the new id soon after.
const followLimit = 256

// placed is a message by the chat that it was meant for.
type placed struct {
	chat chat.ChatID
	id   chat.MessageID
}

// follows knows the messages that were meant for a group and stand in the supergroup
// that it had become: they are edited and removed there.
type follows struct {
	mu    sync.Mutex
	where map[placed]chat.ChatID
}

func (f *follows) add(m placed, now chat.ChatID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.where == nil || len(f.where) >= followLimit {
		f.where = map[placed]chat.ChatID{}
	}
	f.where[m] = now
}

// chatOf is where a message stands.
func (f *follows) chatOf(to chat.Address, id chat.MessageID) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now, ok := f.where[placed{to.Chat, id}]; ok {
		return string(now)
	}
	return string(to.Chat)
}
