package agentcore

import (
	"context"

	"parley/gateway/chat"
	"parley/store/record"
)

// Journal is the durable side of one turn: what it reads and writes, each call
// one transaction. The gateway implements it on the store with the conversation's
// fence; NewMemoryJournal keeps it in memory for the plain Go API. An error from
// it suspends the turn: nothing that is not durable is acted upon.
type Journal interface {
	Transcript
	ToolLog
	// Delegate begins the subagent of a task, or finds the one that was begun for it
	// before, and returns the journal of its turn, whose end shows nobody anything.
	Delegate(ctx context.Context, d record.Delegation) (record.Delegated, Journal, error)
	// SetTurn stores the turn's state, iteration, budget and usage.
	SetTurn(ctx context.Context, t record.Turn) error
	// End ends the turn: the final messages, usage, and whatever the owner of the
	// journal commits with them (deliveries, inbox rows).
	End(ctx context.Context, e record.TurnEnd) error
}

// Transcript is the session that a turn works on.
type Transcript interface {
	// Session is where the turn stands now; after a compression, the child.
	Session(ctx context.Context) (record.Session, error)
	// History is the session's messages in order.
	History(ctx context.Context) ([]record.Message, error)
	// Append stores messages and returns them with their sequences.
	Append(ctx context.Context, msgs ...record.Message) ([]record.Message, error)
	// SetSession stores the session's system prompt and compression state.
	SetSession(ctx context.Context, s record.Session) error
	// Freeze stores what was really sent for a message.
	Freeze(ctx context.Context, seq int64, wire string) error
	// Swap commits a compression and moves the turn to the child.
	Swap(ctx context.Context, c record.Compression) (record.Session, error)
}

// ToolLog is the turn's tool runs.
type ToolLog interface {
	// Plan stores an assistant message with tool calls and the pending runs, with
	// a sequence reserved for each result in the order of the calls.
	Plan(ctx context.Context, assistant record.Message, runs []record.ToolRun) (record.Message, []record.ToolRun, error)
	// Runs returns the turn's tool runs in order.
	Runs(ctx context.Context) ([]record.ToolRun, error)
	// Start is committed before a tool runs.
	Start(ctx context.Context, r record.ToolRun) error
	// Finish stores a tool's result at its reserved sequence.
	Finish(ctx context.Context, r record.ToolRun, result record.Message) error
}

// Asker puts questions to people and waits for the answer, across restarts: a
// question that already stands for the call is waited for, not asked again.
type Asker interface {
	// Ask returns the decided question: approved, denied, answered, expired or
	// withdrawn. It returns early with ctx's error.
	Ask(ctx context.Context, q record.Approval) (record.Approval, error)
}

// Overheard reads what people said at the place of a turn before a message, oldest
// first. It bounds its own time; an error leaves the turn without.
type Overheard interface {
	Before(ctx context.Context, m chat.MessageID) ([]chat.Quote, error)
}

// Steering hands over what people say while the turn runs.
type Steering interface {
	// Take stores the messages that wait as rows of the turn and returns them, or
	// nothing. It is called where a new user row is legal: before each model call.
	Take(ctx context.Context) ([]record.Message, error)
}
