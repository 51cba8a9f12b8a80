package faketelegram

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Call is one API call as it arrived. Params must not be changed.
type Call struct {
	Number int64 // counts up from 1
	Method string
	Params map[string]string
	At     time.Time
}

// ChangeKind says what changed.
type ChangeKind int

// What may change.
const (
	CallMade         ChangeKind = iota // Text is the method; nothing took effect yet
	MessageSent                        // Text is the plain text, also of edits and drafts
	MessageEdited                      //
	MessageDeleted                     //
	ReactionSet                        // Text is the emoji
	DraftShown                         //
	ActionShown                        // Text is the action
	CallbackAnswered                   // Text is the notice
	CommandsSet                        //
	UpdateTaken                        // handed out to the bot; Chat and Message say about what
	UpdateConfirmed                    // never to be handed out again
	PollStarted                        // a getUpdates call waits
	PollEnded                          // by its timeout, or its client went away
	WebhookChanged                     //
)

// Change tells a waiting test or a benchmark what has just happened.
type Change struct {
	Kind    ChangeKind
	Chat    int64
	Message int64
	Update  int64
	Text    string
	At      time.Time
}

// Command is an entry of the command menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// CallbackAnswer is one answerCallbackQuery.
type CallbackAnswer struct {
	Query string
	Text  string
	Alert bool
	At    time.Time
}

// Counters are running totals.
type Counters struct {
	Calls     map[string]int // by method, refused ones included
	Limited   int            // answers with 429 from WithLimits
	Conflicts int            // polls that ended with 409
	Taken     int            // updates handed out, repetitions included
	Confirmed int            // updates confirmed
	Pending   int            // updates that wait
}

// maxViolations bounds what is kept of a client that gets everything wrong.
const maxViolations = 1000

// record is what the server remembers about calls.
type record struct {
	calls      []Call
	lastCall   int64
	violations []Violation
	counters   Counters
	commands   map[string][]Command
	callbacks  []CallbackAnswer
}

func newRecord() record {
	return record{counters: Counters{Calls: map[string]int{}}, commands: map[string][]Command{}}
}

func (s *Server) violation(v Violation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.record.violations) < maxViolations {
		s.record.violations = append(s.record.violations, v)
	}
}

// Violations lists what a correct client would not have done. A test of a client
// ends with checking that there are none.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.violations)
}

// Calls lists the recorded calls of a method, or of all for "". It is empty without
// RecordCalls.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Call
	for _, c := range s.record.calls {
		if method == "" || c.Method == method {
			found = append(found, c)
		}
	}
	return found
}

// Counters returns the totals so far.
func (s *Server) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.record.counters
	c.Calls = maps.Clone(c.Calls)
	c.Pending = len(s.queue.pending)
	return c
}

// Commands is the default command menu.
func (s *Server) Commands() []Command { return s.CommandsOf("default", "") }

// CommandsOf is the menu of a scope type, such as "all_private_chats", and a language.
func (s *Server) CommandsOf(scope, language string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.commands[scope+"/"+language])
}

// CallbackAnswers lists the answers to pressed buttons, oldest first.
func (s *Server) CallbackAnswers() []CallbackAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.callbacks)
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

// notify tells of a change that has been made. The lock must not be held.
func (s *Server) notify(c Change) {
	c.At = s.opt.now()
	s.mu.Lock()
	s.changed.fire()
	if chat := s.world.chats[c.Chat]; chat != nil {
		chat.changed.fire()
	}
	s.mu.Unlock()
	if s.opt.onChange != nil {
		s.opt.onChange(c)
	}
}

// Wait returns once ok is true of the server, or with the error of ctx. It asks
// again after each change anywhere; with many chats under way use Chat.Wait.
func (s *Server) Wait(ctx context.Context, ok func(*Server) bool) error {
	return s.await(ctx, &s.changed, func() bool { return ok(s) })
}

func (s *Server) await(ctx context.Context, g *signal, ok func() bool) error {
	for {
		s.mu.Lock()
		changed := g.wait()
		s.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
