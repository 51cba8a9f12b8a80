package fakeslack

import (
	"cmp"
	"net/http"
	"time"
)

// ChangeKind says what has changed.
type ChangeKind int

// The kinds of changes.
const (
	Connected     ChangeKind = iota // a socket has said hello
	Acknowledged                    // an envelope about Channel was acknowledged
	MessageSent                     // the bot has posted; Text is what is read
	MessageEdited                   // or edited, or lengthened a stream
)

// Change tells of what has just happened.
type Change struct {
	Kind    ChangeKind
	Channel string
	Text    string
	At      time.Time
}

// OnChange calls f after each change, before the call that made it is answered. f
// may call the server; it must not block.
func OnChange(f func(Change)) Option { return func(o *options) { o.onChange = f } }

// WithLatency makes each call take that long before it takes effect.
func WithLatency(d time.Duration) Option { return func(o *options) { o.latency = d } }

// WithoutHistory keeps only the newest version of each message.
func WithoutHistory() Option { return func(o *options) { o.brief = true } }

// tell keeps a change for flush, and wakes who waits. The lock is held.
func (s *Server) tell(k ChangeKind, channel, text string) {
	s.changed.fire()
	if s.opt.onChange != nil {
		s.told = append(s.told, Change{k, channel, text, s.opt.now()})
	}
}

// flush hands the changes out. The lock must not be held.
func (s *Server) flush() {
	if s.opt.onChange == nil {
		return
	}
	s.mu.Lock()
	told := s.told
	s.told = nil
	s.mu.Unlock()
	for _, c := range told {
		s.opt.onChange(c)
	}
}

// pause waits for the latency, or until the client or the server goes away.
func (s *Server) pause(r *http.Request) {
	if s.opt.latency <= 0 {
		return
	}
	timer := time.NewTimer(s.opt.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.closing:
	}
}

// Limits are rates, in calls a minute over all conversations; a zero field takes
// the documented figure. A whole minute's calls may come at once.
type Limits struct {
	Tier2, Tier3, Tier4 float64 // 20, 50, 100
	// ChannelPerSecond is of new messages in one conversation, ChannelBurst at once; 1
	// and 4.
	ChannelPerSecond, ChannelBurst float64
}

// WithLimits makes the server answer 429 to what is too fast.
func WithLimits(l Limits) Option {
	l.Tier2, l.Tier3, l.Tier4 = cmp.Or(l.Tier2, 20), cmp.Or(l.Tier3, 50), cmp.Or(l.Tier4, 100)
	l.ChannelPerSecond, l.ChannelBurst = cmp.Or(l.ChannelPerSecond, 1), cmp.Or(l.ChannelBurst, 4)
	return func(o *options) { o.limits = &l }
}

// tiers are the methods' rates as Slack publishes them; what is not here is not
// limited by the fake.
var tiers = map[string]int{
	"chat.startStream": 2, "chat.stopStream": 2, "chat.update": 3, "chat.delete": 3, "conversations.history": 3, "conversations.replies": 3,
	"reactions.add": 3, "reactions.remove": 2, "chat.appendStream": 4, "chat.postEphemeral": 4, "users.info": 4,
}

// bucket is a token bucket; its zero value is full.
type bucket struct {
	spent float64
	at    time.Time
}

// take takes a token, or says how long until one is there.
func (b *bucket) take(now time.Time, perSecond, burst float64) time.Duration {
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.spent = max(0, b.spent-elapsed*perSecond)
	}
	b.at = now
	if missing := b.spent + 1 - burst; missing > 0 {
		return time.Duration(missing / perSecond * float64(time.Second))
	}
	b.spent++
	return 0
}

// spend takes a call from the budget of its method, or refuses it with the time
// until there is one again.
func (s *Server) spend(r *request) error {
	l := s.opt.limits
	if l == nil {
		return nil
	}
	key, perSecond, burst := r.method, 0.0, 0.0
	switch tiers[r.method] {
	case 2:
		burst = l.Tier2
	case 3:
		burst = l.Tier3
	case 4:
		burst = l.Tier4
	}
	perSecond = burst / 60
	if r.method == "chat.postMessage" {
		key, perSecond, burst = key+" "+r.params["channel"], l.ChannelPerSecond, l.ChannelBurst
	}
	if burst == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets == nil {
		s.buckets = map[string]*bucket{}
	}
	b := s.buckets[key]
	if b == nil {
		b = &bucket{}
		s.buckets[key] = b
	}
	wait := b.take(s.opt.now(), perSecond, burst)
	if wait == 0 {
		return nil
	}
	s.record.limited++
	return &refusal{Status: http.StatusTooManyRequests, Word: "ratelimited", RetryAfter: max(1, int((wait+time.Second-1)/time.Second))}
}

// Limited is how many calls were refused for their rate.
func (s *Server) Limited() int { return look(s, func() int { return s.record.limited }) }
