package faketelegram

import (
	"cmp"
	"math"
	"time"
)

// Limits are the rates the server enforces on new messages and text edits. A zero
// field takes the documented figure.
type Limits struct {
	PerSecond      float64 // over all chats; 30
	ChatPerSecond  float64 // sustained in one chat; 1
	ChatBurst      float64 // at once in one chat; 4
	GroupPerMinute int     // in one group, in any sixty seconds; 20
}

// WithLimits makes the server answer 429 to what is too fast.
func WithLimits(l Limits) Option {
	l.PerSecond = cmp.Or(l.PerSecond, 30)
	l.ChatPerSecond = cmp.Or(l.ChatPerSecond, 1)
	l.ChatBurst = cmp.Or(l.ChatBurst, 4)
	l.GroupPerMinute = cmp.Or(l.GroupPerMinute, 20)
	return func(o *options) { o.limits = &l }
}

// bucket is a token bucket; its zero value is full.
type bucket struct {
	spent float64
	at    time.Time
}

// settle lets tokens flow back and says how long until one is there.
func (b *bucket) settle(now time.Time, rate, burst float64) time.Duration {
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.spent = max(0, b.spent-elapsed*rate)
	}
	b.at = now
	if missing := b.spent + 1 - burst; missing > 0 {
		return time.Duration(missing / rate * float64(time.Second))
	}
	return 0
}

// chatBudget is what one chat has left.
type chatBudget struct {
	second bucket
	minute []time.Time // of the newest messages in a group, as many as a minute allows
}

// settle says how long until the group may have another message.
func (b *chatBudget) settle(now time.Time, perMinute int) time.Duration {
	if len(b.minute) < perMinute {
		return 0
	}
	return b.minute[len(b.minute)-perMinute].Add(time.Minute).Sub(now)
}

// limiter is the budget over all chats.
type limiter struct {
	limits Limits
	all    bucket
}

func newLimiter(l Limits) limiter { return limiter{limits: l} }

// spend takes one message from the budgets of the chat and of the bot, or refuses
// with the time until all of them have one again.
func (s *Server) spend(c *chat) error {
	if s.opt.limits == nil {
		return nil
	}
	l, now := s.limiter.limits, s.opt.now()
	wait := max(s.limiter.all.settle(now, l.PerSecond, l.PerSecond),
		c.budget.second.settle(now, l.ChatPerSecond, l.ChatBurst))
	group := c.info.Type != "private"
	if group {
		wait = max(wait, c.budget.settle(now, l.GroupPerMinute))
	}
	if wait > 0 {
		s.record.counters.Limited++
		return tooManyRequests(max(1, int(math.Ceil(wait.Seconds()))))
	}
	s.limiter.all.spent++
	c.budget.second.spent++
	if group {
		c.budget.minute = append(c.budget.minute[max(0, len(c.budget.minute)-l.GroupPerMinute):], now)
	}
	return nil
}
