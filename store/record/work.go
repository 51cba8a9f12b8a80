package record

import (
	"time"

	"parley/agentcore/llm"
	"parley/gateway/chat"
)

// Work is all that is open in a conversation, loaded by its owner. It is the
// truth that a worker starts from, after a crash or not.
type Work struct {
	Conversation Conversation
	// Inbox holds received events in order of arrival.
	Inbox []InboxItem
	// Turn is the one that has not ended, if any.
	Turn *Turn
	// Deliveries are the unsettled ones in order of creation, and what was posted of
	// Turn so far: live parts, cards, files.
	Deliveries []Delivery
	// Approvals are the open ones.
	Approvals []Approval
}

// Empty says that nothing is open.
func (w Work) Empty() bool {
	return len(w.Inbox) == 0 && w.Turn == nil && len(w.Deliveries) == 0 && len(w.Approvals) == 0
}

// TurnStart begins a turn: its user rows are appended, the inbox rows taken.
// With a Fork the conversation first moves to that child, and the turn begins
// there (/retry); with a Root it begins in that new session and the conversation stays
// where it is.
type TurnStart struct {
	Turn     Turn
	Items    []InboxItem
	Messages []Message
	Fork     *Fork
	Root     *BeginRoot
}

// Started is a turn that has begun and what it works on, read in the transaction
// that began it.
type Started struct {
	Turn    Turn
	Session Session
	// History is the session's messages in order, those of the turn included.
	History []Message
	// Member is the row of the turn's person, nil if there is none.
	Member *Member
}

// TurnEnd ends a turn in one transaction: the final message is appended, open
// calls get results, deliveries are written, inbox rows are done, open questions
// of the turn are withdrawn.
type TurnEnd struct {
	Turn  TurnID
	State TurnState
	Cause string
	// Reference is the id of an internal error in the log.
	Reference string
	// Messages are appended in order: results for open calls, then the answer.
	Messages []Message
	// Text is what people are shown at the end. It is not stored: whoever owns the
	// turn's journal makes Deliveries of it.
	Text string
	// Seen is the newest user row that the answer takes into account. If the turn
	// has a newer one, which joined meanwhile, ending fails with ErrConflict and
	// the answer is made again; 0 is not checked.
	Seen int64
	// Usage is the turn's total.
	Usage llm.Usage
	// Model answered last.
	Model llm.ModelID
	// PromptTokens is the last real prompt size, 0 if unknown.
	PromptTokens int
	// Beside is appended to the session that the conversation stands at, which is not
	// the turn's; nil: nothing.
	Beside *Message
	// Deliveries are the parts of the answer; those whose ID exists are updated.
	Deliveries []Delivery
}

// Compression is a swap to a child session, in one transaction or not at all:
// the child is complete, the conversation and the running turn point to it, the
// parent is closed.
type Compression struct {
	Parent Session
	// Child's ID, SystemPrompt and Model are set by the caller.
	Child Session
	// Summary is the child's first message; Tail are the parent's rows to copy.
	Summary Message
	Tail    []Message
	// UpTo is the newest row of the parent that was seen; newer ones are copied
	// along in the transaction.
	UpTo int64
	// Turn moves along if not empty.
	Turn TurnID
	// Facts are worth keeping and are committed with the swap.
	Facts []Fact
}

// Fact is a known fact about a person or a conversation.
type Fact struct {
	Scope    string // "person:…" or "conversation:…"
	Category string
	Key      string
	Value    string
	At       time.Time
}

// Effect is what a command changes, applied in the transaction that ends its
// inbox row and writes its reply. It is a sealed union.
type Effect interface{ isEffect() }

type (
	// NoEffect changes nothing.
	NoEffect struct{}
	// BeginRoot moves the conversation to a new root session.
	BeginRoot struct {
		Reason SessionReason
		Title  string
		ID     SessionID
	}
	// MoveTo moves the conversation to the newest compression descendant of a
	// session of the same conversation and reopens it.
	MoveTo struct{ Session SessionID }
	// Fork moves the conversation to a new child of its current session (a branch or
	// an undo) whose history is the current one up to UpTo; 0: none of it.
	Fork struct {
		ID     SessionID
		Reason SessionReason
		UpTo   int64
		Title  string
	}
	// SetTitle names the current session.
	SetTitle struct{ Title string }
	// Rewrite replaces the event of a message that is still received: its sender
	// has changed it. A row that is not received any more is ErrConflict.
	Rewrite struct{ Item InboxItem }
	// Withdraw ends the received messages up to a sequence unanswered, with a
	// reason (/stop).
	Withdraw struct {
		UpTo   int64
		Reason string
	}
	// SetModel overrides the conversation's model; empty brings the default back.
	SetModel struct{ Model llm.ModelID }
	// SetVerbose sets the level of tool progress.
	SetVerbose struct{ Level Verbosity }
	// ShowReasoning switches the display of thinking.
	ShowReasoning struct{ On bool }
)

func (NoEffect) isEffect()      {}
func (BeginRoot) isEffect()     {}
func (MoveTo) isEffect()        {}
func (Fork) isEffect()          {}
func (SetTitle) isEffect()      {}
func (Rewrite) isEffect()       {}
func (Withdraw) isEffect()      {}
func (SetModel) isEffect()      {}
func (SetVerbose) isEffect()    {}
func (ShowReasoning) isEffect() {}

// SearchHit is a message found by full-text search.
type SearchHit struct {
	Message
	SessionTitle string
	// Root names the lineage that the message was found in.
	Root SessionID
	Rank float64
}

// Why explains what became of a message.
type Why struct {
	Item       InboxItem
	Turn       *Turn
	Deliveries []Delivery
	// Refusals are what was refused in the turn and to its subagents, in order.
	Refusals []Refusal
}

// Refusal is something that was asked for in a turn and not done.
type Refusal struct {
	By Refuser
	// Tool and Arguments are the call; of spending there is no Tool, and Arguments is
	// the question to admins, as CommonMark.
	Tool, Arguments string
	// Reason is the ToolRun's: of what people were asked, why they were. Empty for
	// spending and for questions of the model's own.
	Reason string
	// Decision is what became of the question, and Decider whose word that was; empty
	// where nobody was asked or nobody answered.
	Decision ApprovalState
	Decider  chat.Person
}
