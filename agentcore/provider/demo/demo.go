// Package demo is a model that needs no network and no key: it recognises a few
// words and shows with them what parley can do. What it answers is a pure function
// of the request; only the pace is real. It calls no tool that the request does
// not declare, and it says that it is a demo.
package demo

import (
	"context"
	"iter"
	"strings"
	"time"

	"parley/agentcore/llm"
)

// Config is how it streams.
type Config struct {
	// Rate is words a second; 0: 40.
	Rate float64
}

// Provider is a llm.Provider. It is safe for concurrent use.
type Provider struct{ rate float64 }

var _ llm.Provider = (*Provider)(nil)

// New makes the demo model.
func New(c Config) *Provider {
	if c.Rate == 0 {
		c.Rate = 40
	}
	return &Provider{rate: c.Rate}
}

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		r := answer(req)
		s := &speaker{yield: yield, gap: gap(p.rate * r.pace), due: time.Now()}
		defer s.stop()
		if !s.say(ctx, r.thought, func(w string) llm.Event { return llm.ReasoningDelta{Text: w} }) ||
			!s.say(ctx, r.text, func(w string) llm.Event { return llm.TextDelta{Text: w} }) {
			return
		}
		reason := llm.FinishStop
		for i, c := range r.calls {
			reason = llm.FinishToolCalls
			if !yield(llm.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}, nil) {
				return
			}
		}
		yield(llm.Finished{Reason: reason, Model: req.Model, Usage: usage(req, r)}, nil)
	}
}

func gap(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

// speaker yields words at a pace.
type speaker struct {
	yield func(llm.Event, error) bool
	gap   time.Duration
	due   time.Time
	timer *time.Timer
}

// say yields a text word by word; false: the consumer has gone or ctx ended.
func (s *speaker) say(ctx context.Context, text string, event func(string) llm.Event) bool {
	if text == "" {
		return true
	}
	for _, word := range strings.SplitAfter(text, " ") {
		s.due = s.due.Add(s.gap)
		if err := s.wait(ctx); err != nil {
			s.yield(nil, err)
			return false
		}
		if !s.yield(event(word), nil) {
			return false
		}
	}
	return true
}

func (s *speaker) wait(ctx context.Context) error {
	if s.timer == nil {
		s.timer = time.NewTimer(time.Until(s.due))
	} else {
		s.timer.Reset(time.Until(s.due))
	}
	select {
	case <-s.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *speaker) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// usage counts four bytes as a token, so that the context fills up as it would
// with a real model.
func usage(req *llm.Request, r reply) llm.Usage {
	in := len(req.System) + len(req.Ephemeral)
	for _, m := range req.Messages {
		in += len(m.Text())
		for _, c := range m.ToolCalls {
			in += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		in += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	out := len(r.thought) + len(r.text)
	for _, c := range r.calls {
		out += len(c.Name) + len(c.Arguments)
	}
	return llm.Usage{Input: in/4 + 1, Output: out/4 + 1, Reasoning: len(r.thought) / 4}
}
