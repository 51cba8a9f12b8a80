package discord

import (
	"sync"

	"parley/gateway/chat"
)

// seen is what is remembered of a person's message, for when it is changed or
// removed.
type seen struct {
	from    chat.User
	address chat.Address
	// mark is the reaction that the bot has set on it, if marked says that it is known.
	mark   string
	marked bool
}

// recentLimit is how many messages are remembered.
const recentLimit = 4096

// recent remembers the messages that came last. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	byID  map[string]seen
	order []string
	next  int
}

func (r *recent) put(id string, s seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]seen{}
	}
	was, known := r.byID[id]
	switch {
	case known:
		s.mark, s.marked = was.mark, was.marked
	case len(r.order) < recentLimit:
		r.order = append(r.order, id)
	default:
		delete(r.byID, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % recentLimit
	}
	r.byID[id] = s
}

// mark remembers which reaction of the bot's is on a message, "" for none; known is
// false where that cannot be told.
func (r *recent) mark(id, emoji string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.byID[id]; ok {
		s.mark, s.marked = emoji, known
		r.byID[id] = s
	}
}

func (r *recent) get(id string) (seen, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.byID[id]
	return s, ok
}
