// Package healing is what every adapter needs to keep its link to a platform alive: it
// guarantees waits that grow with each failure in a row and are spread, so that
// processes do not come back all at once, and tells the gateway of each change once.
package healing

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// Link is a connection to a platform that heals itself. It is for one goroutine; the
// exported fields are set before its first use.
type Link struct {
	Account chat.AccountID
	Sink    chat.Sink
	// First is the wait after the first failure; the longest is 30 times as long.
	First time.Duration
	Log   *zap.Logger

	failed  int
	reason  string
	healthy bool
}

// Begin tells that the link is being made. Its error is the sink's.
func (l *Link) Begin(ctx context.Context) error {
	return l.Sink(ctx, l.event(chat.Connecting, ""))
}

// Healthy says that the last thing told was a success.
func (l *Link) Healthy() bool { return l.healthy }

// Wait tells what is wrong, if that is news, and waits: longer with each failure in a
// row, and at least as long as the platform asked. It returns early when ctx ends.
func (l *Link) Wait(ctx context.Context, reason string, asked time.Duration) {
	if ctx.Err() != nil {
		return
	}
	d := Growing(l.First, l.failed)
	d = time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
	l.failed++
	if l.healthy || reason != l.reason {
		l.healthy, l.reason = false, reason
		l.tell(ctx, chat.Reconnecting, reason)
	}
	Pause(ctx, max(d, asked))
}

// Connected tells that events flow, if that is news, and forgets the failures.
func (l *Link) Connected(ctx context.Context) {
	if !l.healthy {
		l.healthy = true
		l.tell(ctx, chat.Connected, "")
	}
	l.failed = 0
}

func (l *Link) tell(ctx context.Context, s chat.ConnectionState, reason string) {
	if err := l.Sink(ctx, l.event(s, reason)); err != nil {
		l.Log.Debug("connection state", zap.Error(err))
	}
}

func (l *Link) event(s chat.ConnectionState, reason string) chat.ConnectionChanged {
	return chat.ConnectionChanged{
		Origin: chat.Origin{Address: chat.Address{Account: l.Account}, At: time.Now()}, State: s, Reason: reason,
	}
}

// Growing is the wait after so many failures before this one: it doubles, up to 30
// times the first.
func Growing(first time.Duration, failed int) time.Duration {
	return min(first<<min(failed, 5), 30*first)
}

// Pause waits, or less if ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
