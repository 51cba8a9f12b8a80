package fakediscord

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Limits are rates. Discord promises none of its own in advance, but tells them in
// headers; these are what its headers usually say.
type Limits struct {
	// Post and Edit bound messages and edits in one channel.
	Post, Edit Rate
	// Other bounds every other route, per channel.
	Other Rate
	// Global bounds everything that the bot does.
	Global Rate
}

// Rate is so many calls in a window.
type Rate struct {
	Calls int
	Per   time.Duration
}

// RealLimits are Discord's usual ones.
func RealLimits() Limits {
	return Limits{Post: Rate{5, 5 * time.Second}, Edit: Rate{5, 5 * time.Second}, Other: Rate{10, 5 * time.Second}, Global: Rate{50, time.Second}}
}

// limiter counts calls in windows. The server's lock guards it.
type limiter struct {
	on      bool
	limits  Limits
	buckets map[string]*bucket
}

type bucket struct {
	used  int
	reset time.Time
}

// tooMany is a 429.
type tooMany struct {
	after  float64
	global bool
	bucket string
}

func (e *tooMany) Error() string { return "429" }

func (e *tooMany) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.after))))
	h.Set("X-RateLimit-Scope", "user")
	if e.global {
		h.Set("X-RateLimit-Global", "true")
		h.Set("X-RateLimit-Scope", "global")
	}
	w.WriteHeader(http.StatusTooManyRequests)
	_ = json.NewEncoder(w).Encode(object{"message": "You are being rate limited.", "retry_after": e.after, "global": e.global})
}

var (
	majorPattern = regexp.MustCompile(`^/(channels|webhooks|guilds)/[0-9]+`)
	idPattern    = regexp.MustCompile(`/[0-9]{15,20}|/reactions/[^/]+`)
)

// take counts a call and writes the headers; an error refuses it. Interactions are
// not limited.
func (l *limiter) take(r *request, now time.Time, h http.Header) error {
	if !l.on || r.Path[:4] == "/int" || r.Path == "/gateway" {
		return nil
	}
	if after, ok := l.count("global", l.limits.Global, now); !ok {
		return &tooMany{after: after, global: true}
	}
	rate, major := l.limits.Other, majorPattern.FindString(r.Path)
	rest := r.Path[len(major):]
	switch kind := idPattern.ReplaceAllString(rest, "/x"); {
	case r.Method == http.MethodPost && kind == "/messages":
		rate = l.limits.Post
	case r.Method == http.MethodPatch && kind == "/messages/x":
		rate = l.limits.Edit
	}
	key := r.Method + major + idPattern.ReplaceAllString(rest, "/x")
	after, ok := l.count(key, rate, now)
	b := l.buckets[key]
	h.Set("X-RateLimit-Limit", strconv.Itoa(rate.Calls))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, rate.Calls-b.used)))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(b.reset.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", b.reset.Sub(now).Seconds()))
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", key))
	if !ok {
		return &tooMany{after: after, bucket: key}
	}
	return nil
}

func (l *limiter) count(key string, rate Rate, now time.Time) (after float64, ok bool) {
	b := l.buckets[key]
	if b == nil || !now.Before(b.reset) {
		b = &bucket{reset: now.Add(rate.Per)}
		l.buckets[key] = b
	}
	if rate.Calls > 0 && b.used >= rate.Calls {
		return b.reset.Sub(now).Seconds(), false
	}
	b.used++
	return 0, true
}
