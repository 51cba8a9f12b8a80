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
			if w := l.interim(chatOf(i), now, false); w != 0 {
				t.Fatalf("an account that was never refused waits %s", w)
			}
		}
		now = now.Add(time.Second)
	}

	if w := l.interim("a", now, false); w != 0 {
		t.Errorf("an interim edit waits %s", w)
	}
	if w := l.interim("a", now, false); w != time.Second {
		t.Errorf("the next one waits %s, not 1s", w)
	}
	if w := l.interim("a", now, true); w != 0 {
		t.Errorf("the first text of the next answer waits %s for the distance between two edits", w)
	}
	if w := l.final("e", now.Add(time.Second), new(bool)); w != 0 {
		t.Errorf("a final waits %s", w)
	}
	if w := l.interim("e", now.Add(time.Second), false); w != 0 {
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
	if w := l.interim("c", now, false); w == 0 {
		t.Error("an interim edit went before finals that wait")
	}
	if w := l.interim("d", now.Add(2*time.Second), false); w != 0 {
		t.Errorf("an interim edit waits %s although there is room", w)
	}
	if w := l.interim("d", now.Add(2500*time.Millisecond), true); w != 500*time.Millisecond {
		t.Errorf("the first text of the next answer waits %s while the account is held, not 0.5s", w)
	}
	if w := l.interim("c", now.Add(heldFor), false); w != 0 {
		t.Errorf("an interim edit waits %s long after the last refusal", w)
	}
}

// TestLimiterOfEdits: where edits are counted apart, a refusal holds edits alone. An
// answer whose last edit would be due only after patience takes none, and interim
// edits give way to those that wait.
func TestLimiterOfEdits(t *testing.T) {
	l := newLimiter(chat.Limits{EditInterval: time.Second, EditsPerMinute: 60})
	now := time.Now()
	if !l.ending(1000, now) {
		t.Error("edits are counted before a refusal")
	}
	l.pause("b", &chat.RateLimitError{RetryAfter: time.Second, Edits: true}, now)
	for i := range 100 {
		if w := l.final("b", now, new(bool)); w != 0 {
			t.Fatalf("new message %d waits %s for edits", i, w)
		}
	}
	for i := range 5 {
		if !l.ending(1, now) {
			t.Errorf("edit %d is due in %d s and was not taken", i, i+1)
		}
	}
	for range 3 {
		if l.ending(1, now) {
			t.Error("an edit was taken that is due in 6 s")
		}
	}
	if l.ending(61, now.Add(9*time.Minute)) {
		t.Error("more edits were taken than a minute has")
	}
	if w := l.interim("c", now.Add(time.Second), false); w == 0 {
		t.Error("an interim edit went before those that wait")
	}
	if w := l.interim("c", now.Add(7*time.Second), false); w != 0 {
		t.Errorf("an interim edit waits %s although there is room", w)
	}
	if !l.ending(1000, now.Add(heldFor)) {
		t.Error("edits are counted long after the last refusal")
	}
	if w := l.removal("b", now, new(bool)); w != 0 {
		t.Errorf("a removal waits %s for edits", w)
	}
	l.pauseRemoval("b", &chat.RateLimitError{RetryAfter: time.Second, Edits: true}, now)
	for i := 1; i <= 100; i++ {
		placed, want := false, time.Duration(i)*time.Second
		if w := l.removal("b", now, &placed); w.Round(time.Millisecond) != want || !placed {
			t.Errorf("removal %d waits %s (placed: %v), not %s", i, w, placed, want)
		}
		if w := l.removal("b", now.Add(want), &placed); w != 0 {
			t.Errorf("removal %d waits %s more when its time has come", i, w)
		}
	}
	l.pause("b", &chat.RateLimitError{RetryAfter: time.Minute, Edits: true}, now.Add(20*time.Minute))
	if l.ending(1, now.Add(20*time.Minute+50*time.Second)) {
		t.Error("an edit was taken that the platform refuses for 10 s more")
	}
}
