package discord

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/gateway/chat"
)

// nonceLife is how long Discord surely remembers a nonce; it promises "the past few
// minutes".
const nonceLife = 2 * time.Minute

// Find implements chat.Finder. Discord keeps nonces for minutes only and does not show
// them, but a message that is sent again under the same one is not made again: so
// within that time nothing has to be found. What this process tried longer ago
// cannot be told (ErrAmbiguous); what an earlier process tried is taken to be recent,
// since a crash is followed by a start.
func (a *Adapter) Find(_ context.Context, _ chat.Address, key string) (chat.MessageID, bool, error) {
	if at, ok := a.attempts.when(key); ok && a.now().Sub(at) > nonceLife {
		return "", false, fmt.Errorf("%w: it was tried %s ago", chat.ErrAmbiguous, a.now().Sub(at).Round(time.Second))
	}
	return "", false, nil
}

// attempts remembers when keys were first sent. It is safe for concurrent use.
type attempts struct {
	mu    sync.Mutex
	first map[string]time.Time
}

// attemptsLimit bounds what is remembered; after it everything is forgotten.
const attemptsLimit = 10_000

func (t *attempts) note(key string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil || len(t.first) >= attemptsLimit {
		t.first = map[string]time.Time{}
	}
	if _, known := t.first[key]; !known {
		t.first[key] = now
	}
}

func (t *attempts) when(key string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.first[key]
	return at, ok
}
