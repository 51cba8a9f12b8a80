package record

import (
	"time"

	"parley/agentcore/llm"
	"parley/gateway/chat"
)

type (
	// ConversationID, SessionID, TurnID, DeliveryID and ApprovalID are UUIDs
	// (version 7, so that they sort by time).
	ConversationID string
	// SessionID names one session of a lineage.
	SessionID string
	// TurnID names one turn.
	TurnID string
	// DeliveryID names one message to be posted.
	DeliveryID string
	// ApprovalID names one open question.
	ApprovalID string
	// ReplicaID names one running process.
	ReplicaID string
)

// Conversation is the row behind one conversation key.
type Conversation struct {
	ID   ConversationID
	Key  chat.ConversationKey
	Kind chat.Kind
	// Session is where the conversation stands in its lineage.
	Session SessionID
	// Model overrides the configured one; empty: not.
	Model llm.ModelID
	// Reasoning shows the model's thinking; Verbose is the level of tool progress.
	Reasoning bool
	Verbose   Verbosity
	CreatedAt time.Time
	ActiveAt  time.Time
}

// Verbosity is how much of the tools' work a chat shows.
type Verbosity string

// The levels of tool progress.
const (
	VerboseOff Verbosity = "off"
	VerboseNew Verbosity = "new" // the default: one line a call
	VerboseAll Verbosity = "all" // with arguments and results
)

// Fence proves ownership of a conversation: every write of an owner carries it,
// and a write whose epoch is no longer the row's fails with store.ErrFenced.
type Fence struct {
	Conversation ConversationID
	Replica      ReplicaID
	Epoch        int64
}

// Session is one node of the lineage tree.
type Session struct {
	ID           SessionID
	Conversation ConversationID
	Parent       SessionID // empty for roots
	Root         SessionID
	Previous     SessionID // for listing only: where the conversation stood before a root
	ForkSeq      int64     // the parent's history up to here belongs to this session too; 0: none of it
	Reason       SessionReason
	Title        string
	Model        llm.ModelID
	// SystemPrompt is built once and reused byte for byte.
	SystemPrompt string
	// PromptTokens is the last prompt size that a provider reported, and
	// PromptSeq the newest message it covered; 0 if unknown.
	PromptTokens int
	PromptSeq    int64
	// Ineffective counts compressions in a row that did not help.
	Ineffective int
	// CoolUntil forbids another automatic compression before then, and
	// FailedCompressions counts the ones in a row that failed.
	CoolUntil          time.Time
	FailedCompressions int
	CreatedAt          time.Time
	EndedAt            time.Time // zero while open
}

// SessionReason says why a session began.
type SessionReason string

// The reasons. New, Reset and Schedule begin roots, the others children.
const (
	ReasonNew         SessionReason = "new"
	ReasonReset       SessionReason = "reset"
	ReasonSchedule    SessionReason = "schedule"
	ReasonCompression SessionReason = "compression"
	ReasonBranch      SessionReason = "branch"
	ReasonUndo        SessionReason = "undo"
	ReasonDelegation  SessionReason = "delegation"
	ReasonResume      SessionReason = "resume"
)

// SessionSummary is a session as listings show it.
type SessionSummary struct {
	Session
	Messages int
	// Opening is the start of the first thing a person said in it.
	Opening string
	LastAt  time.Time
	Current bool
}

// Message is one row of a session's history. Storage keeps every message as its
// own row; what a provider is sent is built from them (package history).
type Message struct {
	Session SessionID
	// Seq orders the messages of a lineage; 0 asks the store to assign one.
	Seq  int64
	Role llm.Role
	// Content is text. The summary that begins a compressed child is a user row
	// with Kind KindSummary.
	Content string
	// Wire is what was really sent for this message where it differs from Content
	// (recalled memories); frozen once sent, replayed byte for byte.
	Wire       string
	Kind       MessageKind
	ToolCalls  []llm.ToolCall
	ToolCallID string
	ToolName   string
	Reasoning  *llm.Reasoning
	Files      []chat.File
	// From and FromName are the sender of a user row; FromName is data.
	From     chat.Person
	FromName string
	// Platform is the platform's id of a user row's message.
	Platform chat.MessageID
	Turn     TurnID
	// Importance is 0 to 1, scored when written.
	Importance float64
	// Origin is where a row copied by a compression came from.
	OriginSession SessionID
	OriginSeq     int64
	CreatedAt     time.Time
}

// MessageKind tells ordinary rows from those that parley wrote.
type MessageKind string

// The kinds of rows.
const (
	KindSaid    MessageKind = ""        // said by a person, a model or a tool
	KindSummary MessageKind = "summary" // a compression's summary
	KindSteer   MessageKind = "steer"   // said while the turn was running
	KindNotice  MessageKind = "notice"  // e.g. that a turn was stopped here
)
