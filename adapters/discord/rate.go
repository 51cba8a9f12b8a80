package discord

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// rates knows the rate limits as far as the headers of earlier answers told them. A
// call that is sure to be refused is not made: refusals count against the bot, and
// ten thousand of them in ten minutes bar its address.
type rates struct {
	mu      sync.Mutex
	buckets map[string]window
	global  time.Time // nothing may be called before
}

// window is what is left of one bucket until its reset.
type window struct {
	remaining int
	reset     time.Time
}

// maxBuckets bounds what is remembered; what has been reset is forgotten first.
const maxBuckets = 4096

func newRates() rates { return rates{buckets: map[string]window{}} }

var (
	majorPart = regexp.MustCompile(`^/(channels|guilds|webhooks)/[^/]+`)
	anyID     = regexp.MustCompile(`/[0-9]{15,20}|/reactions/[^/]+`)
)

// bucketKey names what a call shares its limit with: its route and the channel,
// guild or webhook it is about.
func bucketKey(method, path string) string {
	major := majorPart.FindString(path)
	return method + " " + major + anyID.ReplaceAllString(path[len(major):], "/x")
}

// claim takes one call from a bucket, or says how long there is none.
func (r *rates) claim(key string, now time.Time) (wait time.Duration, global bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.global.Sub(now); w > 0 {
		return w, true
	}
	b, ok := r.buckets[key]
	switch {
	case !ok:
		return 0, false
	case !now.Before(b.reset):
		delete(r.buckets, key)
	case b.remaining <= 0:
		return b.reset.Sub(now), false
	default:
		b.remaining--
		r.buckets[key] = b
	}
	return 0, false
}

// learn reads the headers of an answer.
func (r *rates) learn(key string, h http.Header, now time.Time) {
	remaining, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	if err != nil {
		return
	}
	after, err := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	reset := now.Add(time.Duration(after * float64(time.Second)))
	// Answers may overtake each other: of one window the lowest figure is the newest.
	if b, ok := r.buckets[key]; ok && now.Before(b.reset) && b.remaining < remaining && reset.Sub(b.reset) < time.Second {
		return
	}
	r.put(key, window{remaining, reset}, now)
}

// refused notes a 429.
func (r *rates) refused(key string, e *apiError, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.global {
		r.global = now.Add(e.after)
		return
	}
	r.put(key, window{0, now.Add(e.after)}, now)
}

func (r *rates) put(key string, w window, now time.Time) {
	if len(r.buckets) >= maxBuckets {
		for k, b := range r.buckets {
			if !now.Before(b.reset) {
				delete(r.buckets, k)
			}
		}
	}
	if len(r.buckets) < maxBuckets {
		r.buckets[key] = w
	}
}
