// Package tool is what the agent can run: the Tool interface, a typed
// constructor that derives the JSON schema from a struct, the immutable Set, and
// the capabilities by which the policy point decides.
package tool

import (
	"context"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// Tool is one thing the agent can do. Implementations are safe for concurrent
// use; they get what they need in their constructor and what the conversation
// knows in the Call, never through context values.
type Tool interface {
	Spec() Spec
	// Run does it. A Result is for the model, errors of the work included; a Go
	// error ends the turn. Run returns soon after ctx ends, with every process it
	// started gone.
	Run(ctx context.Context, c Call) (Result, error)
}

// Spec declares a tool to the model and to the policy point.
type Spec struct {
	llm.ToolSpec
	// Needs is the most that any call of the tool touches. A tool whose calls differ
	// implements Judged.
	Needs Capability
	// Parallel allows it to run beside other parallel calls of a batch.
	Parallel bool
	// ReadOnly tools may be cut off by an interruption; others are let finish.
	ReadOnly bool
	// Waits exempts it from stall detection.
	Waits bool
	// Resumes says that a call which a crash broke off may be run again: it goes on
	// where it was. Other calls are not, since they may have had their effect.
	Resumes bool
	// Interactive tools ask a person, which makes their batch sequential.
	Interactive bool
}

// Capability is a set of what a tool touches.
type Capability uint

// The capabilities. Reading what the conversation may see anyway is none. Exec asks
// before it runs, unless configured otherwise or the call is judged safe; Configure
// is for admins; an untrusted turn asks for every one of them.
const (
	Exec Capability = 1 << iota
	Write
	Network
	SendFiles
	ScheduleWork
	Spawn
	Configure
)

// Has says whether all of d are in c.
func (c Capability) Has(d Capability) bool { return c&d == d }

// Call is one call with what the conversation knows. The model sets Arguments
// and nothing else.
type Call struct {
	ID           string
	Arguments    []byte // valid JSON
	Conversation record.ConversationID
	Key          chat.ConversationKey
	Kind         chat.Kind
	Session      record.SessionID
	Root         record.SessionID
	Turn         record.TurnID
	Person       chat.Person
	Role         record.Role
	Trust        record.Trust
	// Progress shows a short line while the tool runs; never nil, never blocks.
	Progress func(string)
}

// Result is what the model is told.
type Result struct {
	// Text is the tool's own words.
	Text string
	// Untrusted is text that others wrote: a page, a file, what a program printed. The
	// agent puts it behind Text, framed as data, in the one way that cannot be closed
	// from inside; a tool hands it over as it is.
	Untrusted string
	// Failed marks a result that tells of a failure.
	Failed bool
	// Outcome is one word for the audit; empty means ok or error by Failed.
	Outcome string
}

// Stopper is a tool that leaves something running after its calls. Stop ends all of
// it that belongs to a conversation, and says how much there was.
type Stopper interface {
	Tool
	Stop(c record.ConversationID) int
}
