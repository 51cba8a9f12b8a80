package faketelegram

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// update waits to be confirmed by the bot.
type update struct {
	id      int64
	kind    string
	chat    int64
	message int64
	raw     json.RawMessage
}

// unasked are the kinds that come only to a bot that asked for them by name.
var unasked = []string{"chat_member", "message_reaction", "message_reaction_count"}

// queue holds the updates and whoever gets them. The server's lock guards it.
type queue struct {
	pending []update
	lastID  int64
	allowed []string    // empty: all but the unasked ones; remembered between calls
	poller  chan string // of the poll under way; takes the reason to end it
	wake    signal
	webhook webhook
}

func newQueue() queue { return queue{lastID: 700_000_000} }

// enqueue adds an update and returns its id, or 0 when the bot did not ask for its
// kind. The lock is held.
func (s *Server) enqueue(u update, payload any) int64 {
	q := &s.queue
	wanted := slices.Contains(q.allowed, u.kind) || len(q.allowed) == 0 && !slices.Contains(unasked, u.kind)
	if !wanted {
		return 0
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic("faketelegram: update: " + err.Error())
	}
	q.lastID++
	u.id = q.lastID
	u.raw = fmt.Appendf(nil, `{"update_id":%d,%q:%s}`, u.id, u.kind, body)
	q.pending = append(q.pending, u)
	q.wake.fire()
	return u.id
}

// confirm drops the updates below offset for good. A negative offset keeps that many
// from the end.
func (q *queue) confirm(offset int64) []update {
	n := 0
	if offset < 0 {
		n = max(0, len(q.pending)+int(offset))
	} else {
		for n < len(q.pending) && q.pending[n].id < offset {
			n++
		}
	}
	done := q.pending[:n:n]
	q.pending = q.pending[n:]
	return done
}

// end makes the poll under way answer 409.
func (q *queue) end(reason string) {
	if q.poller != nil {
		q.poller <- reason // has room for it, and is left at once
		q.poller = nil
	}
}

func conflict(reason string) error {
	return refuse(http.StatusConflict, "Conflict: "+reason, 0, 0)
}

// allow remembers allowed_updates when the call carries a list that can be read.
func (q *queue) allow(r *request) {
	var list []string
	if raw := r.params["allowed_updates"]; raw != "" && json.Unmarshal([]byte(raw), &list) == nil && list != nil {
		q.allowed = list
	}
}

func (s *Server) getUpdates(r *request) (any, error) {
	limit := int(r.int("limit"))
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	me, err := s.startPoll(r)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(time.Duration(min(r.int("timeout"), 50)) * time.Second)
	defer timeout.Stop()
	waiting := false
	for {
		s.mu.Lock()
		wake := s.queue.wake.wait()
		batch := slices.Clone(s.queue.pending[:min(limit, len(s.queue.pending))])
		idle := len(batch) == 0 && r.int("timeout") > 0
		if !idle {
			s.leave(me)
			s.record.counters.Taken += len(batch)
		}
		s.mu.Unlock()
		if !idle {
			return s.handOut(batch), nil
		}
		if !waiting {
			waiting = true
			s.notify(Change{Kind: PollStarted})
		}
		select {
		case <-wake:
			continue
		case reason := <-me:
			s.mu.Lock()
			s.record.counters.Conflicts++
			s.mu.Unlock()
			return nil, conflict(reason)
		case <-timeout.C:
		case <-r.Context().Done():
		case <-s.closing:
		}
		s.mu.Lock()
		s.leave(me)
		s.mu.Unlock()
		s.notify(Change{Kind: PollEnded})
		return []json.RawMessage{}, nil
	}
}

// startPoll confirms, remembers what is asked for and takes the place of an older
// poll.
func (s *Server) startPoll(r *request) (chan string, error) {
	s.mu.Lock()
	q := &s.queue
	if q.webhook.url != "" {
		s.record.counters.Conflicts++
		s.mu.Unlock()
		return nil, conflict("can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	}
	q.allow(r)
	done := q.confirm(r.int("offset"))
	s.record.counters.Confirmed += len(done)
	q.end("terminated by other getUpdates request; make sure that only one bot instance is running")
	me := make(chan string, 1)
	q.poller = me
	s.mu.Unlock()
	s.confirmed(done)
	return me, nil
}

func (s *Server) confirmed(done []update) {
	for _, u := range done {
		s.notify(Change{Kind: UpdateConfirmed, Chat: u.chat, Message: u.message, Update: u.id})
	}
}

func (s *Server) leave(me chan string) {
	if s.queue.poller == me {
		s.queue.poller = nil
	}
}

func (s *Server) handOut(batch []update) []json.RawMessage {
	list := make([]json.RawMessage, len(batch))
	for i, u := range batch {
		list[i] = u.raw
		s.notify(Change{Kind: UpdateTaken, Chat: u.chat, Message: u.message, Update: u.id})
	}
	return list
}

// Polling says whether a getUpdates call is under way.
func (s *Server) Polling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.poller != nil
}

// RememberAllowed sets the list of update kinds as an earlier client left it
// (CFG-002).
func (s *Server) RememberAllowed(kinds ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.allowed = kinds
}

// Pending lists the updates that are not confirmed, as JSON.
func (s *Server) Pending() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]json.RawMessage, len(s.queue.pending))
	for i, u := range s.queue.pending {
		list[i] = u.raw
	}
	return list
}
