package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/chat"
)

// heldFor is how long an account is held to its documented rate after a refusal.
const heldFor = 10 * time.Minute

// limiter paces the calls to one account. Every outbound message and edit passes
// it. The time between two interim edits in a chat is always kept, and they give way
// to everything else, which waits only when the platform has said so.
//
// The rate over all chats is what a platform promises everybody. Servers of one's
// own and paid accounts take more, so it is not kept before the first refusal; from
// then on, finals included, for heldFor. As long an interim edit also keeps its
// distance from the final before it. It is safe for concurrent use.
type limiter struct {
	limits chat.Limits

	mu      sync.Mutex
	paused  time.Time // the whole account
	held    time.Time // until when the account's rate is kept
	account *rate.Limiter
	chats   map[chat.ChatID]*chatPace
}

// chatPace is what is known of one chat.
type chatPace struct {
	paused  time.Time
	edited  time.Time
	minute  *rate.Limiter // nil: unlimited
	holders int           // conversations that post there
}

func newLimiter(l chat.Limits) *limiter {
	return &limiter{limits: l, chats: map[chat.ChatID]*chatPace{}}
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

// final counts a call that does not wait by itself and returns how long it has to
// keep still because of what the platform has said; after a wait it must be asked
// again. placed remembers between the two that the call has its place in the
// account's queue.
func (l *limiter) final(id chat.ChatID, now time.Time, placed *bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pace(id)
	if w := max(p.paused.Sub(now), l.paused.Sub(now)); w > 0 {
		return w
	}
	if now.Before(l.held) {
		if !*placed {
			if w := l.account.ReserveN(now, 1).DelayFrom(now); w > 0 {
				*placed = true
				return w
			}
		}
		p.edited = now
	}
	*placed = false
	if p.minute != nil {
		p.minute.ReserveN(now, 1)
	}
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
	var account *rate.Limiter
	if now.Before(l.held) {
		account = l.account
	}
	// Finals take their places in the same buckets first, so interim edits give way.
	for _, b := range []*rate.Limiter{account, p.minute} {
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
	if n := l.limits.AccountPerSecond; n > 0 {
		if !now.Before(l.held) {
			l.account = rate.NewLimiter(rate.Limit(n), n)
			l.account.ReserveN(now, n) // the platform has none left either
		}
		l.held = now.Add(heldFor)
	}
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
