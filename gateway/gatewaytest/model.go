package gatewaytest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"parley/agentcore/llm"
)

// Model is an llm.Provider that answers from a function and records what it was
// asked. It is safe for concurrent use.
type Model struct {
	mu       sync.Mutex
	answer   func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error
	requests []llm.Request
}

// NewModel makes a model.
func NewModel(answer func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error) *Model {
	return &Model{answer: answer}
}

// Answer replaces the function.
func (m *Model) Answer(f func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error) {
	m.mu.Lock()
	m.answer = f
	m.mu.Unlock()
}

// Stream implements llm.Provider. A function that returns an error ends the
// stream with it; otherwise the answer is finished.
func (m *Model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m.mu.Lock()
		m.requests = append(m.requests, *r)
		answer := m.answer
		m.mu.Unlock()
		calls, stopped := false, false
		err := answer(ctx, r, func(ev llm.Event) bool {
			if _, ok := ev.(llm.ToolCallDelta); ok {
				calls = true
			}
			if !stopped {
				stopped = !yield(ev, nil)
			}
			return !stopped
		})
		switch {
		case stopped:
		case err != nil:
			yield(nil, err)
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		default:
			reason := llm.FinishStop
			if calls {
				reason = llm.FinishToolCalls
			}
			yield(llm.Finished{Reason: reason, Model: r.Model, Usage: llm.Usage{Input: Tokens(r), Output: 10}}, nil)
		}
	}
}

// Requests returns what was asked so far.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Say answers with a text, word by word.
func Say(text string) func(context.Context, *llm.Request, func(llm.Event) bool) error {
	return func(_ context.Context, _ *llm.Request, say func(llm.Event) bool) error {
		for _, w := range strings.SplitAfter(text, " ") {
			say(llm.TextDelta{Text: w})
		}
		return nil
	}
}

// LastUser is the newest user text of a request.
func LastUser(r *llm.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == llm.User {
			return m.Text()
		}
	}
	return ""
}

// Tokens is roughly what a request counts in tokens, tools included.
func Tokens(r *llm.Request) int {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		n += len(m.Text())
		for _, c := range m.ToolCalls {
			n += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	return n / 4
}
