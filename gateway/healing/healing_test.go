package healing_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

// REC-003: the waits grow, are spread, last as long as the platform asks, and begin
// anew after a success; each change is told once.
func TestHealing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		h := &healing.Link{Account: "x/main", First: time.Second, Log: zap.NewNop(), Sink: func(_ context.Context, ev chat.Event) error {
			c := ev.(chat.ConnectionChanged)
			told = append(told, string(c.State)+" "+c.Reason)
			return nil
		}}
		wait := func(reason string, asked, least, most time.Duration) {
			t.Helper()
			begun := time.Now()
			h.Wait(t.Context(), reason, asked)
			if d := time.Since(begun); d < least || d > most {
				t.Errorf("it waited %v, want %v to %v", d, least, most)
			}
		}
		h.Connected(t.Context())
		for i := range 8 {
			d := healing.Growing(time.Second, i)
			wait("away", 0, d*8/10, d*12/10)
		}
		wait("busy", time.Minute, time.Minute, time.Minute)
		h.Connected(t.Context())
		h.Connected(t.Context())
		wait("away", 0, 800*time.Millisecond, 1200*time.Millisecond)
		want := []string{"connected ", "reconnecting away", "reconnecting busy", "connected ", "reconnecting away"}
		if len(told) != len(want) {
			t.Fatalf("told %q", told)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("told %q, want %q", told[i], want[i])
			}
		}
		if healing.Growing(time.Second, 100) != 30*time.Second {
			t.Error("the waits grow for ever")
		}
	})
}

// A wait ends with its context, and tells nothing after it.
func TestHealingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		told := 0
		h := &healing.Link{First: time.Hour, Log: zap.NewNop(), Sink: func(context.Context, chat.Event) error { told++; return nil }}
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		h.Wait(ctx, "away", 0)
		h.Wait(ctx, "still away", 0)
		if d := time.Since(begun); d != time.Second || told != 1 {
			t.Errorf("it waited %v and told %d times", d, told)
		}
	})
}
