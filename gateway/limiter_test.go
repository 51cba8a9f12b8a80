package gateway

import (
	"testing"
	"time"

	"parley/gateway/chat"
)

// TestLimiterHoldsTheAccountOnceRefused: a server that takes more than the platform
// promises is not held back; after a refusal interim edits give way and finals take
// their places one after the other.
func TestLimiterHoldsTheAccountOnceRefused(t *testing.T) {
	l := newLimiter(chat.Limits{EditInterval: time.Second, AccountPerSecond: 10})
	now := time.Now()
	chatOf := func(i int) chat.ChatID { return chat.ChatID([]string{"a", "b", "c", "d", "e"}[i%5]) }
	for i := range 5 {
		l.enter(chatOf(i), chat.Direct)
	}
	for range 100 {
		for i := range 5 {
			if w := l.interim(chatOf(i), now); w != 0 {
				t.Fatalf("an account that was never refused waits %s", w)
			}
		}
		now = now.Add(time.Second)
	}

	if w := l.final("e", now.Add(time.Second), new(bool)); w != 0 {
		t.Errorf("a final waits %s", w)
	}
	if w := l.interim("e", now.Add(time.Second)); w != 0 {
		t.Errorf("the first text of the next answer waits %s for the distance between two edits", w)
	}

	l.pause("a", &chat.RateLimitError{RetryAfter: 3 * time.Second}, now)
	if w := l.final("a", now, new(bool)); w != 3*time.Second {
		t.Errorf("the refused chat waits %s, not 3s", w)
	}
	for i := 1; i <= 3; i++ {
		placed := false
		want := time.Duration(i) * 100 * time.Millisecond
		if w := l.final("b", now, &placed); w.Round(time.Millisecond) != want || !placed {
			t.Errorf("final %d waits %s (placed: %v), not %s", i, w, placed, want)
		}
		if w := l.final("b", now.Add(want), &placed); w != 0 || placed {
			t.Errorf("final %d waits %s more when its time has come", i, w)
		}
	}
	if w := l.interim("c", now); w == 0 {
		t.Error("an interim edit went before finals that wait")
	}
	if w := l.interim("c", now.Add(heldFor)); w != 0 {
		t.Errorf("an interim edit waits %s long after the last refusal", w)
	}
}
