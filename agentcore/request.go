package agentcore

import (
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// Request is one turn to run. Turn, Journal, Sink, Asker and Steering are given
// by the gateway; with a plain Go call they may be nil and the agent uses a
// journal in memory, no sink, and an asker that denies.
type Request struct {
	// Message is the user's message. It is empty when the gateway has stored the
	// user rows already, and when a turn is resumed.
	Message string
	// System is appended to the system prompt.
	System string
	// History precedes Message in a fresh session; only without a Journal.
	History []record.Message
	// TaskID names the turn in logs and tool calls; empty: made.
	TaskID record.TurnID

	Turn         record.Turn
	Conversation record.Conversation
	Journal      Journal
	Sink         Sink
	Asker        Asker
	Steering     Steering
	// Outbox posts files; nil: none can be sent.
	Outbox Outbox
	// Overheard reads what was said in a shared room before the bot was spoken to
	// first; nil: nothing can be read.
	Overheard Overheard
	// Restart makes the model call anew with what somebody added; nil: nobody does.
	Restart *Restart
	// PlatformHint tells the model what the chat can show; data from the adapter's
	// limits, not its name.
	PlatformHint string
	// Role is the role of the person, checked again when the turn starts.
	Role record.Role
	// Kind says whether memory of the person may be used (direct only).
	Kind chat.Kind

	// depth is how many turns wait for this one: 0 unless it is a subagent's.
	depth int
}

// Result is how a turn ended.
type Result struct {
	// Text is the final text, as delivered.
	Text string
	// Messages is the whole history of the session it ended on.
	Messages []record.Message
	Usage    llm.Usage
	// Iterations counts model calls.
	Iterations int
	// State is Done, Interrupted, Exhausted, Failed or Suspended, and Cause says why
	// in words.
	State record.TurnState
	Cause string
	// Err is what suspended the turn; nil after an end.
	Err error
	// Session is the one the turn ended on, which a compression may have changed.
	Session record.SessionID
	// ContextTokens is the last prompt's size, Window the model's.
	ContextTokens, Window int
}
