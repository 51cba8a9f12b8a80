package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/gateway/killpoint"
)

// The crash test: the real program is killed with SIGKILL and started again while
// people write to it, and afterwards everything is counted (RST-001,
// RST-002, RST-005, DEL-004, DEL-007, DEL-008, DEL-011, DUP-004, LIN-001).
// `make soak` runs it for longer.

// TestCrashAtEveryKillPoint kills at each point of a message's life once; at those
// around what is posted, on each platform.
func TestCrashAtEveryKillPoint(t *testing.T) {
	bin := buildDaemon(t)
	for _, point := range killpoint.Names {
		platforms := []string{"telegram"}
		if strings.HasPrefix(point, "live-") || strings.HasPrefix(point, "delivery-") {
			platforms = farNames()
		}
		for _, platform := range platforms {
			t.Run(point+"/"+platform, func(t *testing.T) { crashAt(t, newCrashWorld(t, bin, platform), point) })
		}
	}
}

func crashAt(t *testing.T, w *crashWorld, point string) {
	t.Helper()
	d := w.start(t, point)
	w.sayOneOfEachKind(d.exited)
	if !d.died(t) {
		t.Fatalf("the point %s was not passed", point)
	}
	w.kills++
	d = w.start(t, "")
	w.settle(t)
	d.stop(t)
	w.verdict(t)
}

// TestCrashOfSubagents kills at each point of a subagent's life, and just after it has
// ended: the second pass of what its parent passes before it, the first of the rest.
func TestCrashOfSubagents(t *testing.T) {
	bin := buildDaemon(t)
	for _, point := range []string{"model-called:2", "tools-planned:2", "tool-started:2", "tool-ran", "tool-finished", "turn-ending", "tool-ran:2"} {
		t.Run(point, func(t *testing.T) {
			w := newCrashWorld(t, bin, "telegram")
			d := w.start(t, point)
			w.say(1, "delegate")
			if !d.died(t) {
				t.Fatalf("the point %s was not passed", point)
			}
			w.kills++
			d = w.start(t, "")
			w.settle(t)
			d.stop(t)
			w.verdict(t)
		})
	}
}

// TestCrashAtRandomMoments kills 100 times at random moments on each platform; a
// quarter of that in the short form.
func TestCrashAtRandomMoments(t *testing.T) {
	bin := buildDaemon(t)
	for _, platform := range farNames() {
		t.Run(platform, func(t *testing.T) { crashAtRandomMoments(t, newCrashWorld(t, bin, platform)) })
	}
}

func crashAtRandomMoments(t *testing.T, w *crashWorld) {
	t.Helper()
	stopTalk := w.keepTalking(6)
	for i := range randomKills(t) {
		open := w.unanswered()
		w.killSometime(t, w.start(t, ""), open, i)
		if i%25 == 24 {
			t.Logf("%d kills, %d messages", w.kills, w.said())
		}
	}
	stopTalk()
	d := w.start(t, "")
	w.settle(t)
	d.stop(t)
	w.verdict(t)
}

// TestCrashWithTwoReplicas kills the replica that works; the other takes over.
func TestCrashWithTwoReplicas(t *testing.T) {
	w := newCrashWorld(t, buildDaemon(t), "telegram")
	stopTalk := w.keepTalking(6)
	pair := []*victim{w.start(t, ""), w.start(t, "")}
	for i := range randomKills(t) {
		w.killSometime(t, pair[i%2], w.unanswered(), i)
		pair[i%2] = w.start(t, "")
	}
	stopTalk()
	w.settle(t)
	for _, d := range pair {
		d.stop(t)
	}
	w.verdict(t)
}

// killSometime kills the i-th process at a random moment: every third one perhaps
// while it still takes over, the others once they have finished what was open. So
// no turn meets three crashes, which would end it with a word instead of an answer.
func (w *crashWorld) killSometime(t *testing.T, d *victim, open map[string]spot, i int) {
	t.Helper()
	if i%3 != 0 {
		over := within(d.exited)
		for id, p := range open {
			if !w.awaitAnswer(id, p, over) {
				t.Fatalf("no answer to %s within %s:\n%s", id, settleLimit, transcript(p.messages()))
			}
		}
	}
	d.killAfter(t, time.Duration(rand.IntN(900))*time.Millisecond)
	w.kills++
}

// randomKills is how often the random tests kill: 100 times and more under
// PARLEY_SOAK, once for each second of it.
func randomKills(t *testing.T) int {
	t.Helper()
	if d, err := time.ParseDuration(os.Getenv("PARLEY_SOAK")); err == nil {
		return max(100, int(d/time.Second))
	}
	return 25
}

// verdict counts and fails the test if anything was lost or doubled.
func (w *crashWorld) verdict(t *testing.T) {
	t.Helper()
	c := w.count()
	t.Logf("%d kills, %d messages: %d lost, %d with two complete final texts, %d marked as possible repeats", w.kills, w.said(), len(c.lost), len(c.doubled), c.marked)
	for _, s := range c.lost {
		t.Errorf("lost: %s", s)
	}
	for _, s := range c.doubled {
		t.Errorf("answered twice: %s", s)
	}
	for _, s := range w.model.Refusals() {
		t.Errorf("the model refused: %s", s)
	}
	for _, v := range w.far.violations() {
		t.Error(v)
	}
}

// tally is what the chats show in the end.
type tally struct {
	lost, doubled []string
	marked        int
}

// count looks for each message's complete final text: everything from its first
// word to its last, over as many messages as it takes.
func (w *crashWorld) count() tally {
	var c tally
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, p := range w.messages {
		plain, marked := 0, 0
		for _, m := range p.messages() {
			if !strings.Contains(m.text, last(id)) {
				continue
			}
			if strings.Contains(m.text, "Possibly a repeat") {
				marked++
			} else {
				plain++
			}
		}
		c.marked += marked
		switch {
		case plain+marked == 0:
			c.lost = append(c.lost, fmt.Sprintf("%s:\n%s", id, transcript(p.messages())))
		case plain > 1 || marked > 1:
			c.doubled = append(c.doubled, fmt.Sprintf("%s:\n%s", id, transcript(p.messages())))
		}
	}
	return c
}

// keepTalking lets people in n chats write, each the next message once the last is
// answered, until the returned function is called; it waits for them.
func (w *crashWorld) keepTalking(n int) (stop func()) {
	done := make(chan struct{})
	var people sync.WaitGroup
	for i := range n {
		people.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-done:
					return
				default:
				}
				id := w.say(1+i, kinds[k%len(kinds)])
				w.awaitAnswer(id, w.at(1+i), done)
			}
		})
	}
	return func() { close(done); people.Wait() }
}
