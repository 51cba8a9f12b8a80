package agentcore

import (
	"time"

	"parley/agentcore/llm"
	"parley/store/record"
)

// Sink takes the events of a turn. Emit is called from one goroutine, in order,
// and never blocks or does I/O.
type Sink interface{ Emit(Event) }

// Event is a sealed union: the eight surfaces of a running turn (mission 2.7).
type Event interface{ isEvent() }

type (
	// ToolStarted and ToolFinished are the surface tool progress: before and after
	// each call. ToolProgress is a line in between.
	ToolStarted struct {
		Call    llm.ToolCall
		Summary string // one line: the tool and what it works on
		// ReadOnly says that an interruption may cut it off.
		ReadOnly bool
	}
	// ToolFinished follows each ToolStarted.
	ToolFinished struct {
		Call    llm.ToolCall
		Outcome string
		Result  string
		Took    time.Duration
	}
	// ToolProgress is a line from a running tool.
	ToolProgress struct {
		Call llm.ToolCall
		Line string
	}
	// SubagentProgress is what a subagent of a running call does now. Several of a call
	// take turns.
	SubagentProgress struct {
		Call llm.ToolCall
		Task int    // its place in the call, from 0
		Goal string // one line
		Line string
		// State is how it ended, "" while it runs.
		State record.TurnState
	}
	// Thinking is the surface thinking: a model call starts or stops.
	Thinking struct{ On bool }
	// ReasoningDelta is the surface reasoning text.
	ReasoningDelta struct{ Text string }
	// ClarifyAsked is the surface clarify question.
	ClarifyAsked struct{ Approval record.Approval }
	// Step is the surface step: after each iteration, with the text beside its tool
	// calls, which is not part of the answer.
	Step struct {
		Iteration int
		Text      string
		Calls     []llm.ToolCall
	}
	// StreamDelta is the surface stream delta: a piece of the answer.
	StreamDelta struct{ Text string }
	// StreamReset says that the deltas since the last Step are void.
	StreamReset struct{ Reason string }
	// ToolGenerating is the surface tool generation: a call is seen in the stream.
	ToolGenerating struct{ Name string }
	// Status is the surface status: the turn's state changed, or it waits.
	Status struct {
		State record.TurnState
		// Text says what it waits for, for people; may be empty.
		Text string
		// Visible asks to show Text as a progress line.
		Visible bool
		// ContextTokens and Window tell how full the context is; 0 if unknown.
		ContextTokens, Window int
	}
)

func (ToolStarted) isEvent()      {}
func (ToolFinished) isEvent()     {}
func (ToolProgress) isEvent()     {}
func (SubagentProgress) isEvent() {}
func (Thinking) isEvent()         {}
func (ReasoningDelta) isEvent()   {}
func (ClarifyAsked) isEvent()     {}
func (Step) isEvent()             {}
func (StreamDelta) isEvent()      {}
func (StreamReset) isEvent()      {}
func (ToolGenerating) isEvent()   {}
func (Status) isEvent()           {}
