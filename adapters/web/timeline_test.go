package web_test

import (
	"context"
	"strconv"
	"sync"
	"time"

	"parley/gateway/chat"
)

// timeline is a Timeline and Directory in memory that outlives adapters and counts
// writes.
type timeline struct {
	mu       sync.Mutex
	entries  []chat.Entry
	next     int
	writes   int
	fail     error
	changed  chan struct{}
	sessions []chat.SessionInfo
}

func newTimeline() *timeline { return &timeline{changed: make(chan struct{})} }

func (t *timeline) write() {
	t.writes++
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *timeline) setFail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail = err
}

func (t *timeline) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

func (t *timeline) Append(_ context.Context, _ chat.Address, e chat.Entry) (chat.MessageID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail != nil {
		return "", t.fail
	}
	for _, have := range t.entries {
		if have.Key == e.Key {
			return have.ID, nil
		}
	}
	t.next++
	e.ID = chat.MessageID(strconv.Itoa(t.next))
	if e.At.IsZero() {
		e.At = time.Now()
	}
	t.entries = append(t.entries, e)
	t.write()
	return e.ID, nil
}

func (t *timeline) Replace(_ context.Context, _ chat.Address, id chat.MessageID, e chat.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail != nil {
		return t.fail
	}
	for i, have := range t.entries {
		if have.ID == id {
			have.Text, have.Progress, have.Buttons, have.Live = e.Text, e.Progress, e.Buttons, e.Live
			t.entries[i] = have
			t.write()
			return nil
		}
	}
	return chat.ErrGone
}

func (t *timeline) Remove(_ context.Context, _ chat.Address, id chat.MessageID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, have := range t.entries {
		if have.ID == id {
			t.entries = append(t.entries[:i:i], t.entries[i+1:]...)
			t.write()
			return nil
		}
	}
	return chat.ErrGone
}

func (t *timeline) List(_ context.Context, _ chat.Address, limit int) ([]chat.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail != nil {
		return nil, t.fail
	}
	return append([]chat.Entry{}, t.entries[max(0, len(t.entries)-limit):]...), nil
}

func (t *timeline) Watch(ctx context.Context, _ chat.Address, changed func()) error {
	for {
		t.mu.Lock()
		next := t.changed
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-next:
			changed()
		}
	}
}

func (t *timeline) Sessions(_ context.Context, of chat.ConversationKey, _ int) ([]chat.SessionInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of.Participant != "web:local" {
		return nil, nil
	}
	return append([]chat.SessionInfo(nil), t.sessions...), nil
}

func (t *timeline) setSessions(list ...chat.SessionInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions = list
}
