package web_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"parley/gateway/chat"
	"parley/store"
	"parley/store/storetest"
)

// timeline is a real timeline that counts writes, can be away and can look older
// than it is; and a directory
// that says what the test wants.
type timeline struct {
	store.Timeline

	mu       sync.Mutex
	writes   int
	fail     error
	age      time.Duration
	sessions []chat.SessionInfo
}

func newTimeline(t *testing.T) *timeline {
	t.Helper()
	return &timeline{Timeline: storetest.New(t).Timeline()}
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

func (t *timeline) write() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	return t.fail
}

func (t *timeline) Append(ctx context.Context, to chat.Address, e chat.Entry) (chat.MessageID, error) {
	if err := t.write(); err != nil {
		return "", err
	}
	return t.Timeline.Append(ctx, to, e)
}

func (t *timeline) Replace(ctx context.Context, to chat.Address, id chat.MessageID, e chat.Entry) error {
	if err := t.write(); err != nil {
		return err
	}
	return t.Timeline.Replace(ctx, to, id, e)
}

func (t *timeline) List(ctx context.Context, of chat.Address, limit int) ([]chat.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, err := t.Timeline.List(ctx, of, limit)
	for i := range list {
		list[i].At = list[i].At.Add(-t.age)
	}
	return list, err
}

func (t *timeline) setAge(age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.age = age
}

func (t *timeline) Sessions(_ context.Context, of chat.ConversationKey, _ int) ([]chat.SessionInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of.Participant != "web:local" {
		return nil, nil
	}
	return t.sessions, nil
}

func (t *timeline) setSessions(list ...chat.SessionInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions = list
}
