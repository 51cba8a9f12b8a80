package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/chat"
)

const (
	// heldFor is how long an account is held to its documented rate after a refusal.
	heldFor = 10 * time.Minute
	// patience is how long the edit that makes an answer of a live message may have to
	// wait; an answer that would wait longer is posted as a new message.
	patience = 5 * time.Second
)

// limiter paces the calls to one account. Every outbound message and edit passes
// it. The time between two interim edits in a chat is always kept, and they give way
// to everything else, which waits only when the platform has said so.
//
// The rates over all chats are what a platform promises everybody. Servers of one's
// own and paid accounts take more, so they are not kept before the first refusal; from
// then on, finals included, for heldFor. As long an interim edit also keeps its
// distance from the final before it. It is safe for concurrent use.
type limiter struct {
	limits chat.Limits

	mu sync.Mutex
	// account is of messages and edits over all chats; edits and removals are of those
	// alone, where they count apart.
	account, edits, removals budget
	chats                    map[chat.ChatID]*chatPace
}

// budget is a rate over all chats, as the platform promises it.
type budget struct {
	n      int // 0: unlimited
	in     time.Duration
	paused time.Time     // nothing at all before
	held   time.Time     // until when the rate is kept
	bucket *rate.Limiter // while it is
}

// refused begins to keep the rate, with nothing left of it: nor has the platform.
func (b *budget) refused(now time.Time) {
	if b.n == 0 {
		return
	}
	if !now.Before(b.held) {
		b.bucket = rate.NewLimiter(rate.Limit(float64(b.n)/b.in.Seconds()), b.n)
		b.bucket.ReserveN(now, b.n)
	}
	b.held = now.Add(heldFor)
}

// kept is the rate that is to be kept now; nil for none.
func (b *budget) kept(now time.Time) *rate.Limiter {
	if now.Before(b.held) {
		return b.bucket
	}
	return nil
}

// queue takes a place in the rate, if it is kept, and returns how long until it has
// come; after a wait it must be asked again. placed remembers that between the two.
func (b *budget) queue(now time.Time, placed *bool) time.Duration {
	if bucket := b.kept(now); bucket != nil && !*placed {
		if w := bucket.ReserveN(now, 1).DelayFrom(now); w > 0 {
			*placed = true
			return w
		}
	}
	*placed = false
	return 0
}

// chatPace is what is known of one chat.
type chatPace struct {
	paused  time.Time
	edited  time.Time
	minute  *rate.Limiter // nil: unlimited
	holders int           // conversations that post there
}

func newLimiter(l chat.Limits) *limiter {
	return &limiter{
		limits: l, chats: map[chat.ChatID]*chatPace{},
		account: budget{n: l.AccountPerSecond, in: time.Second},
		edits:   budget{n: l.EditsPerMinute, in: time.Minute}, removals: budget{n: l.EditsPerMinute, in: time.Minute},
	}
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
	if w := max(p.paused.Sub(now), l.account.paused.Sub(now)); w > 0 {
		return w
	}
	if w := l.account.queue(now, placed); w > 0 {
		return w
	}
	if l.account.kept(now) != nil {
		p.edited = now
	}
	if p.minute != nil {
		p.minute.ReserveN(now, 1)
	}
	return 0
}

// removal is final for taking a message away.
func (l *limiter) removal(id chat.ChatID, now time.Time, placed *bool) time.Duration {
	if l.limits.EditsPerMinute == 0 {
		return l.final(id, now, placed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removals.queue(now, placed)
}

// interim returns how long an interim edit has to wait; at 0 it is counted. The first
// one of a turn begins the live message, and keeps a distance only while the account is
// held.
func (l *limiter) interim(id chat.ChatID, now time.Time, first bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pace(id)
	w := max(p.paused.Sub(now), l.account.paused.Sub(now), l.edits.paused.Sub(now))
	if !first || l.account.kept(now) != nil {
		w = max(w, p.edited.Add(l.limits.EditInterval).Sub(now))
	}
	if w > 0 {
		return w
	}
	// Finals take their places in the same buckets first, so interim edits give way.
	for _, b := range []*rate.Limiter{l.account.kept(now), l.edits.kept(now), p.minute} {
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

// ending takes n edits for the end of a live message. It is false, and nothing is
// taken, if they would be due only after patience.
func (l *limiter) ending(n int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	edits := l.edits.kept(now)
	if edits == nil || n == 0 {
		return true
	}
	if l.edits.paused.Sub(now) > patience {
		return false
	}
	r := edits.ReserveN(now, n)
	if r.OK() && r.DelayFrom(now) <= patience {
		return true
	}
	r.CancelAt(now)
	return false
}

// pauseRemoval obeys a platform's "retry after" for taking a message away.
func (l *limiter) pauseRemoval(id chat.ChatID, e *chat.RateLimitError, now time.Time) {
	if !e.Edits {
		l.pause(id, e, now)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removals.refused(now)
}

// pause obeys a platform's "retry after".
func (l *limiter) pause(id chat.ChatID, e *chat.RateLimitError, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := now.Add(e.RetryAfter)
	if e.Edits {
		l.edits.refused(now)
		l.edits.paused = until
		return
	}
	l.account.refused(now)
	if e.Account {
		l.account.paused = until
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
