package provider

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// The gate after a rate limit.
const (
	narrowest = 4
	growEvery = 15 * time.Second
)

// gate lets requests to one provider through, first come, first served. It is held
// only while a request runs. A rate limit pauses all who wait together; afterwards
// as many may run at once as the server had not refused, and that grows again by
// and by. So a burst of conversations is delayed and not refused twice (CON-007).
type gate struct {
	mu      sync.Mutex
	width   int // how many may run at once
	widest  int
	running int
	waiting list.List // of chan struct{}
	grown   time.Time // when width was last changed

	pausing bool
	until   time.Time // the end of the pause
	// survivors counts the requests that were answered during the pause.
	survivors int
	alarm     *time.Timer // wakes those who wait at the end
}

func newGate(width int) *gate { return &gate{width: width, widest: width} }

// enter waits for a place; it ends early with ctx's error.
func (g *gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.waiting.Len() == 0 && g.open() {
		g.running++
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := g.waiting.PushBack(turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // let in at the same moment
		g.running--
		g.admit()
	default:
		g.waiting.Remove(place)
	}
	return ctx.Err()
}

// open says whether one more may start, and sets the alarm if a pause forbids it.
func (g *gate) open() bool {
	if g.pausing {
		rest := time.Until(g.until)
		if rest > 0 {
			g.wake(rest)
			return false
		}
		g.pausing = false
		g.width = min(g.width, max(narrowest, g.survivors+g.running))
		g.grown = time.Now()
	}
	return g.running < g.width
}

func (g *gate) wake(after time.Duration) {
	if g.alarm != nil {
		return
	}
	g.alarm = time.AfterFunc(after, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.alarm = nil
		g.admit()
	})
}

// admit lets in as many as may start.
func (g *gate) admit() {
	for g.waiting.Len() > 0 && g.open() {
		turn := g.waiting.Remove(g.waiting.Front()).(chan struct{})
		g.running++
		close(turn)
	}
}

// leave ends a request; ok says that it was answered.
func (g *gate) leave(ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	switch {
	case ok && g.pausing:
		g.survivors++
	case ok && g.width < g.widest && time.Since(g.grown) >= growEvery:
		g.width = min(g.widest, g.width+max(1, g.width/4))
		g.grown = time.Now()
	}
	g.admit()
}

// rest is how long the gate stays shut after a rate limit; 0 if it is not.
func (g *gate) rest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.pausing {
		return 0
	}
	return max(0, time.Until(g.until))
}

// throttle pauses the gate after a rate limit.
func (g *gate) throttle(wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.pausing {
		g.pausing, g.survivors = true, 0
	}
	if until := time.Now().Add(wait); until.After(g.until) {
		g.until = until
	}
}
