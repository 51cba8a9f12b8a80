package fakeslack

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

//go:embed spec/methods.json
var specFile []byte

func loadSpec() map[string][]string {
	var m map[string][]string
	if err := json.Unmarshal(specFile, &m); err != nil {
		panic("fakeslack: spec: " + err.Error())
	}
	return m
}

// Call is one recorded call.
type Call struct {
	Method string
	Params map[string]string
	At     time.Time
}

// Violation is something that Slack tolerates, or that people would see.
type Violation struct{ Method, Where, What string }

// String is for test failures.
func (v Violation) String() string { return v.Method + " " + v.Where + ": " + v.What }

// record is what the server remembers about calls.
type record struct {
	counts     map[string]int
	calls      []Call
	violations []Violation
	prompts    []Prompts
	statuses   []Status
	titles     []Title
	sessions   []Status
	acks       []Ack
	limited    int
}

func newRecord() record { return record{counts: map[string]int{}} }

// Prompts are suggested prompts that the bot has set.
type Prompts struct {
	Channel, Thread string
	Prompts         []struct{ Title, Message string }
}

// Status is a status that the bot has set on a thread.
type Status struct {
	Channel, Thread, Status string
	At                      time.Time
}

// Title is a thread's title that the bot has set.
type Title struct{ Channel, Thread, Title string }

// Ack is an acknowledged envelope.
type Ack struct {
	Envelope, Type string
	Attempt        int
}

func (s *Server) violation(v Violation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.violations = append(s.record.violations, v)
}

// Violations lists what Slack would have tolerated.
func (s *Server) Violations() []Violation {
	return look(s, func() []Violation { return slices.Clone(s.record.violations) })
}

// Calls lists the recorded calls of a method, or of all for "". It is empty without
// RecordCalls.
func (s *Server) Calls(method string) []Call {
	return look(s, func() []Call {
		return slices.DeleteFunc(slices.Clone(s.record.calls), func(c Call) bool { return method != "" && c.Method != method })
	})
}

// Counts are the numbers of calls so far, by method.
func (s *Server) Counts() map[string]int {
	return look(s, func() map[string]int { return maps.Clone(s.record.counts) })
}

// Statuses lists the statuses set on threads, oldest first.
func (s *Server) Statuses() []Status {
	return look(s, func() []Status { return slices.Clone(s.record.statuses) })
}

// Sessions lists the agent session states set, oldest first.
func (s *Server) Sessions() []Status {
	return look(s, func() []Status { return slices.Clone(s.record.sessions) })
}

// Titles lists the titles set on threads, oldest first.
func (s *Server) Titles() []Title {
	return look(s, func() []Title { return slices.Clone(s.record.titles) })
}

// Suggested lists the suggested prompts, oldest first.
func (s *Server) Suggested() []Prompts {
	return look(s, func() []Prompts { return slices.Clone(s.record.prompts) })
}

// Acks lists the acknowledged envelopes, oldest first.
func (s *Server) Acks() []Ack { return look(s, func() []Ack { return slices.Clone(s.record.acks) }) }

// look asks under the lock.
func look[T any](s *Server, f func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// signal wakes whoever waits. The server's lock guards it.
type signal struct{ ch chan struct{} }

func (g *signal) wait() <-chan struct{} {
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

func (g *signal) fire() {
	if g.ch != nil {
		close(g.ch)
		g.ch = nil
	}
}

// Wait returns once ok is true of the server, or with the error of ctx. It asks
// again after each change.
func (s *Server) Wait(ctx context.Context, ok func(*Server) bool) error {
	for {
		changed := look(s, s.changed.wait)
		if ok(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
