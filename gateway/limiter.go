package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/chat"
)

// limiter paces the calls to one account. Every outbound message and edit passes
// it: interim edits wait for their turn, everything else waits only when the
// platform said so. It is safe for concurrent use.
type limiter struct {
	limits  chat.Limits
	account *rate.Limiter // nil: unlimited

	mu     sync.Mutex
	paused time.Time // the whole account
	chats  map[chat.ChatID]*chatPace
}

// chatPace is what is known of one chat.
type chatPace struct {
	paused  time.Time
	edited  time.Time
	minute  *rate.Limiter // nil: unlimited
	holders int           // conversations that post there
}

func newLimiter(l chat.Limits) *limiter {
	lim := &limiter{limits: l, chats: map[chat.ChatID]*chatPace{}}
	if n := l.AccountPerSecond; n > 0 {
		lim.account = rate.NewLimiter(rate.Limit(n), n)
	}
	return lim
}

// enter and leave count the conversations of a chat, so that its state goes with
// the last one.
func (l *limiter) enter(id chat.ChatID, kind chat.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.chats[id]
	if p == nil {
		p = &chatPace{}
		if n := l.limits.ChatPerMinute; n > 0 && kind == chat.Group {
			p.minute = rate.NewLimiter(rate.Limit(float64(n)/60), n)
		}
		l.chats[id] = p
	}
	p.holders++
}

func (l *limiter) leave(id chat.ChatID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.chats[id]; p != nil {
		if p.holders--; p.holders <= 0 {
			delete(l.chats, id)
		}
	}
}

// final counts a call that does not wait by itself and returns how long the
// platform has told us to keep still; after a wait it must be asked again.
func (l *limiter) final(id chat.ChatID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pace(id)
	if w := max(p.paused.Sub(now), l.paused.Sub(now)); w > 0 {
		return w
	}
	if l.account != nil {
		l.account.ReserveN(now, 1)
	}
	if p.minute != nil {
		p.minute.ReserveN(now, 1)
	}
	p.edited = now
	return 0
}

// interim returns how long an interim edit has to wait; at 0 it is counted.
func (l *limiter) interim(id chat.ChatID, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pace(id)
	w := max(p.paused.Sub(now), l.paused.Sub(now), p.edited.Add(l.limits.EditInterval).Sub(now))
	if w > 0 {
		return w
	}
	// Finals take from the same buckets without waiting, so interim edits give way.
	for _, b := range []*rate.Limiter{l.account, p.minute} {
		if b == nil {
			continue
		}
		r := b.ReserveN(now, 1)
		if d := r.DelayFrom(now); d > 0 {
			r.CancelAt(now)
			return max(d, l.limits.EditInterval)
		}
	}
	p.edited = now
	return 0
}

// pause obeys a platform's "retry after".
func (l *limiter) pause(id chat.ChatID, e *chat.RateLimitError, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := now.Add(e.RetryAfter)
	if e.Account {
		l.paused = until
		return
	}
	l.pace(id).paused = until
}

// pace finds a chat's state, also for calls outside a conversation.
func (l *limiter) pace(id chat.ChatID) *chatPace {
	if p := l.chats[id]; p != nil {
		return p
	}
	return &chatPace{}
}
