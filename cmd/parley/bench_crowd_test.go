//go:build bench

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentcore/provider/providertest"
)

// benchPace is how a model answers.
type benchPace struct {
	first  time.Duration // to the first token
	rate   float64       // tokens a second
	tokens int
}

// benchCrowd is people who each write in a chat of their own, with the platform and
// the model that they reach. It notes when what happens.
type benchCrowd struct {
	far       farSide
	model     *providertest.Server
	connected chan struct{} // closed when the bot takes in events
	linking   sync.Once

	mu       sync.Mutex
	pace     benchPace
	messages map[string]*benchMessage
	current  map[string]*benchMessage // by chat: the message that waits for its answer
	asked    map[int]*benchMessage    // by request
}

// benchMessage is a message of a person and the moments of its answer.
type benchMessage struct {
	id, answer string
	at         spot
	calls      int // model calls; more than one is a repetition

	handedOut, asked, firstToken, lastToken, firstText, finalText time.Time

	visible chan struct{} // closed with the final text
}

func newBenchCrowd(t *testing.T, platform string, limited bool) *benchCrowd {
	c := &benchCrowd{
		connected: make(chan struct{}), messages: map[string]*benchMessage{}, current: map[string]*benchMessage{}, asked: map[int]*benchMessage{},
	}
	c.far = farSides[platform](farOptions{limited: limited, brief: true, onChange: c.see})
	t.Cleanup(c.far.close)
	c.model = providertest.NewServer(t, providertest.Options{Forget: true})
	c.model.Respond(c.answer)
	return c
}

// see is told of every change on the platform.
func (c *benchCrowd) see(ch farChange) {
	if ch.kind == farConnected {
		c.linking.Do(func() { close(c.connected) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.current[ch.chat]
	if m == nil {
		return
	}
	switch ch.kind {
	case farHandedOut:
		if m.handedOut.IsZero() {
			m.handedOut = ch.at
		}
	case farDrafted, farPosted:
		if m.firstText.IsZero() {
			m.firstText = ch.at
		}
		if ch.kind == farPosted && m.completeIn(ch.text) && m.finalText.IsZero() {
			m.finalText = ch.at
			close(m.visible)
		}
	default:
	}
}

var benchID = regexp.MustCompile(`\bm\d+\b`)

// answer is the model: the message's id and words, each a token.
func (c *benchCrowd) answer(r providertest.Request) providertest.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.messages[benchID.FindString(r.Said())]
	if m == nil {
		return providertest.Answer{Status: 400}
	}
	m.calls++
	m.asked = r.At
	c.asked[r.N] = m
	return providertest.Answer{
		Text: m.answer, FirstToken: c.pace.first, Rate: c.pace.rate,
		Usage: &providertest.Usage{Input: 1500, Cached: 1200, Output: c.pace.tokens},
	}
}

// benchRun is one closed loop: each of some chats writes messages, the next one as
// soon as the answer to the last one is complete.
type benchRun struct {
	first, chats int // the chats' ids are first, first+1, …
	messages     int // of each chat
	pace         benchPace
	// spread is the time over which the chats begin; people do not all press Enter
	// at the same moment.
	spread time.Duration
	limit  time.Duration
}

// talk runs the loop and returns its messages.
func (c *benchCrowd) talk(t *testing.T, r benchRun) []*benchMessage {
	t.Helper()
	c.mu.Lock()
	c.pace = r.pace
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), r.limit)
	defer cancel()
	said := make([][]*benchMessage, r.chats)
	var people sync.WaitGroup
	for i := range r.chats {
		people.Go(func() {
			begin := time.NewTimer(r.spread * time.Duration(i) / time.Duration(r.chats))
			defer begin.Stop()
			select {
			case <-begin.C:
			case <-ctx.Done():
			}
			p, err := c.far.place(fmt.Sprintf("#%d", r.first+i))
			if err != nil {
				t.Error(err)
				return
			}
			for range r.messages {
				m := c.say(p)
				said[i] = append(said[i], m)
				select {
				case <-m.visible:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	people.Wait()
	c.noteTokens()
	return slices.Concat(said...)
}

func (c *benchCrowd) say(p spot) *benchMessage {
	chat := p.chat() // asks the platform, which tells of its changes under its own lock
	c.mu.Lock()
	m := &benchMessage{id: fmt.Sprintf("m%d", len(c.messages)), at: p, visible: make(chan struct{})}
	m.answer = m.id + " " + providertest.Words(c.pace.tokens-1)
	c.messages[m.id], c.current[chat] = m, m
	c.mu.Unlock()
	p.say(saying{text: "Please answer " + m.id})
	return m
}

// noteTokens adds when the model wrote.
func (c *benchCrowd) noteTokens() {
	exchanges := c.model.Exchanges()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range exchanges {
		if m := c.asked[x.Request.N]; m != nil {
			m.firstToken, m.lastToken = x.FirstToken, x.LastToken
		}
	}
}

// completeIn says that a message of the bot is the whole answer, perhaps with the
// mark of a possible repeat.
func (m *benchMessage) completeIn(shown string) bool { return strings.HasSuffix(shown, m.answer) }

// benchTally is what people find in their chats.
type benchTally struct {
	lost, doubled int
	// marked are answers that say of themselves that they may be a repeat, others are
	// visible messages that are no complete answer.
	marked, others int
	// repeated are model calls beyond one a message.
	repeated int
}

// cleared waits until nothing is visible any more but complete answers.
func (c *benchCrowd) cleared(messages []*benchMessage) time.Duration {
	began := time.Now()
	for c.tally(messages).others > 0 && time.Since(began) < benchLimit {
		<-time.After(100 * time.Millisecond)
	}
	return time.Since(began)
}

func (c *benchCrowd) tally(messages []*benchMessage) benchTally {
	var sum benchTally
	complete := map[string]int{}
	chats := map[string]spot{}
	for _, m := range messages {
		chats[m.at.chat()] = m.at
	}
	for _, p := range chats {
		for _, shown := range p.messages() {
			m := c.messages[benchID.FindString(shown.text)]
			if m == nil || !m.completeIn(shown.text) {
				sum.others++
				continue
			}
			complete[m.id]++
			if shown.text != m.answer {
				sum.marked++
			}
		}
	}
	for _, m := range messages {
		switch n := complete[m.id]; {
		case n == 0:
			sum.lost++
		case n > 1:
			sum.doubled++
		}
		sum.repeated += max(0, m.calls-1)
	}
	return sum
}

// benchDelays are times between two moments, in order.
type benchDelays []time.Duration

// delays measures the messages that got as far.
func delays(messages []*benchMessage, from, to func(*benchMessage) time.Time) benchDelays {
	var d benchDelays
	for _, m := range messages {
		if a, b := from(m), to(m); !a.IsZero() && !b.IsZero() {
			d = append(d, b.Sub(a))
		}
	}
	slices.Sort(d)
	return d
}

// at is the delay below which a fraction of all are.
func (d benchDelays) at(fraction float64) time.Duration {
	if len(d) == 0 {
		return -1
	}
	return d[min(len(d)-1, int(fraction*float64(len(d))))]
}
