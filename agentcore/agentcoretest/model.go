// Package agentcoretest has what tests of the agent and of its users need: a
// scripted model that judges every request as strictly as the strictest provider,
// a recording sink, a scripted asker and a context engine by script. Everything is
// safe for concurrent use.
package agentcoretest

import (
	"context"
	"iter"
	"strings"
	"sync"

	"parley/agentcore/llm"
)

// Step is one answer of a scripted model.
type Step func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool)

// Model is an llm.Provider that plays its steps in order and records what it was
// asked. A request that is not legal is answered with a malformed error; a request
// after the last step, too.
type Model struct {
	mu       sync.Mutex
	steps    []Step
	requests []llm.Request
	problems []error
}

// NewModel makes a model of steps.
func NewModel(steps ...Step) *Model { return &Model{steps: steps} }

// Then adds steps.
func (m *Model) Then(steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = append(m.steps, steps...)
}

// Requests returns what the model was asked so far.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]llm.Request(nil), m.requests...)
}

// Problems returns what was wrong with requests.
func (m *Model) Problems() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]error(nil), m.problems...)
}

// Stream implements llm.Provider.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		step, err := m.next(req)
		if err != nil {
			yield(nil, err)
			return
		}
		step(ctx, req, yield)
	}
}

func (m *Model) next(req *llm.Request) (Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, *req)
	if err := Legal(req.Messages); err != nil {
		m.problems = append(m.problems, err)
		return nil, &llm.Error{Kind: llm.KindMalformed, Status: 400, Message: err.Error()}
	}
	if len(m.steps) == 0 {
		return nil, &llm.Error{Kind: llm.KindMalformed, Status: 400, Message: "the script of the model is over"}
	}
	step := m.steps[0]
	m.steps = m.steps[1:]
	return step, nil
}

// Say answers with a text, word by word.
func Say(text string) Step { return answer(text, llm.FinishStop) }

// Cut answers with a text that stops at the output limit.
func Cut(text string, calls ...llm.ToolCall) Step { return answer(text, llm.FinishLength, calls...) }

// Call asks for tools.
func Call(calls ...llm.ToolCall) Step { return answer("", llm.FinishToolCalls, calls...) }

// SayAndCall asks for tools with a text beside.
func SayAndCall(text string, calls ...llm.ToolCall) Step {
	return answer(text, llm.FinishToolCalls, calls...)
}

// Tool is a tool call.
func Tool(id, name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// Fail answers with an error after a beginning of text.
func Fail(begun string, err error) Step {
	return func(_ context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		if begun == "" || yield(llm.TextDelta{Text: begun}, nil) {
			yield(nil, err)
		}
	}
}

// Hang says the beginning of a text and then nothing until the context ends.
func Hang(begun string) Step {
	return func(ctx context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		if begun != "" && !yield(llm.TextDelta{Text: begun}, nil) {
			return
		}
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// Play yields events as they are.
func Play(events ...llm.Event) Step {
	return func(_ context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		for _, ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func answer(text string, reason llm.FinishReason, calls ...llm.ToolCall) Step {
	return func(_ context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
		for word := range strings.SplitAfterSeq(text, " ") {
			if word != "" && !yield(llm.TextDelta{Text: word}, nil) {
				return
			}
		}
		for i, c := range calls {
			if !yield(llm.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}, nil) {
				return
			}
		}
		yield(llm.Finished{Reason: reason, Usage: usage(req, text), Model: req.Model}, nil)
	}
}

// usage counts a token for four bytes.
func usage(req *llm.Request, text string) llm.Usage {
	n := len(req.System)
	for _, m := range req.Messages {
		n += len(m.Text()) + 16
	}
	return llm.Usage{Input: n/4 + 1, Output: len(text)/4 + 1}
}
