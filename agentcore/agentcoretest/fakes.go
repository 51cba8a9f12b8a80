package agentcoretest

import (
	"context"
	"strings"
	"sync"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/store/record"
)

// Sink records events.
type Sink struct {
	mu     sync.Mutex
	events []agentcore.Event
}

// Emit implements agentcore.Sink.
func (s *Sink) Emit(ev agentcore.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, ev)
}

// Events returns what was emitted so far.
func (s *Sink) Events() []agentcore.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]agentcore.Event(nil), s.events...)
}

// Text is what a live display shows: the deltas since the last step or reset.
func (s *Sink) Text() string {
	var b strings.Builder
	for _, ev := range s.Events() {
		switch ev := ev.(type) {
		case agentcore.StreamDelta:
			b.WriteString(ev.Text)
		case agentcore.StreamReset, agentcore.Step:
			b.Reset()
		}
	}
	return b.String()
}

// States lists the states in the order in which they were entered.
func (s *Sink) States() []record.TurnState {
	var states []record.TurnState
	for _, ev := range s.Events() {
		if st, ok := ev.(agentcore.Status); ok && (len(states) == 0 || states[len(states)-1] != st.State) {
			states = append(states, st.State)
		}
	}
	return states
}

// Asker answers questions by a function and records them. Without a function it
// waits until the context ends.
type Asker struct {
	Answer func(record.Approval) record.Approval

	mu        sync.Mutex
	questions []record.Approval
}

// Decide makes an asker that decides every question in one way.
func Decide(s record.ApprovalState, answer string) *Asker {
	return &Asker{Answer: func(q record.Approval) record.Approval {
		q.State, q.Answer = s, answer
		return q
	}}
}

// Ask implements agentcore.Asker.
func (a *Asker) Ask(ctx context.Context, q record.Approval) (record.Approval, error) {
	a.mu.Lock()
	a.questions = append(a.questions, q)
	a.mu.Unlock()
	if a.Answer == nil {
		<-ctx.Done()
		return q, ctx.Err()
	}
	return a.Answer(q), nil
}

// Questions returns what was asked so far.
func (a *Asker) Questions() []record.Approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]record.Approval(nil), a.questions...)
}

// Engine is a context engine by script; the zero value never compresses.
type Engine struct {
	DecideFunc   func(engine.State) engine.Decision
	CompressFunc func(context.Context, engine.Input) (engine.Result, error)
}

// Decide implements engine.ContextEngine.
func (e *Engine) Decide(s engine.State) engine.Decision {
	if e.DecideFunc == nil {
		return engine.Decision{Limit: s.Window / 2, Why: "below"}
	}
	return e.DecideFunc(s)
}

// Compress implements engine.ContextEngine.
func (e *Engine) Compress(ctx context.Context, in engine.Input) (engine.Result, error) {
	if e.CompressFunc == nil {
		return engine.Result{Outcome: engine.NothingToDo}, nil
	}
	return e.CompressFunc(ctx, in)
}
