package record

import (
	"encoding/json"
	"time"

	"parley/agentcore/llm"
	"parley/gateway/chat"
)

// Turn is one run of the agent for one or more messages of a conversation.
type Turn struct {
	ID           TurnID
	Conversation ConversationID
	// Parent is the turn that waits for this one, a subagent's; empty for others.
	Parent TurnID
	// Schedule is what the turn is a run of; 0: of none.
	Schedule ScheduleID
	Session  SessionID
	State    TurnState
	// Iteration counts model calls; Budget is what is left to grow to.
	Iteration int
	Budget    Budget
	// Person started the turn; Trust is what its tools may be trusted with.
	Person chat.Person
	Trust  Trust
	// Address and Reply are where the answer goes.
	Address chat.Address
	Reply   chat.ReplyHandle
	// Source is the platform's message that started the turn.
	Source chat.MessageID
	// Cause says in words why it ended or was suspended; Reference is the id of an
	// internal error in the log.
	Cause     string
	Reference string
	// Crashes counts how often its process died while running it.
	Crashes   int
	Usage     llm.Usage
	StartedAt time.Time
	EndedAt   time.Time
}

// Delegation is a task that a call of a running turn gives to a subagent.
type Delegation struct {
	Parent TurnID
	// CallID and Task, the place in the call's list, name the task.
	CallID string
	Task   int
	// Turn is what the subagent's turn begins with, Title names its session, and
	// Message is the task as its first message.
	Turn    Turn
	Title   string
	Message Message
}

// Delegated is a subagent's turn as it stands: just begun, left in the middle, or
// ended.
type Delegated struct {
	Turn Turn
	// New says that it was begun just now.
	New bool
	// Text is what one that has ended said last.
	Text string
}

// TurnState is where a turn stands.
type TurnState string

// The states. Done, Interrupted, Exhausted and Failed are ends; Suspended is not:
// the next owner resumes the turn.
const (
	TurnPreparing   TurnState = "preparing"
	TurnCompressing TurnState = "compressing"
	TurnCalling     TurnState = "calling"
	TurnApproving   TurnState = "approving"
	TurnActing      TurnState = "acting"
	TurnSuspended   TurnState = "suspended"
	TurnDone        TurnState = "done"
	TurnInterrupted TurnState = "interrupted"
	TurnExhausted   TurnState = "exhausted"
	TurnFailed      TurnState = "failed"
)

// TurnStates lists every state, in the order above.
var TurnStates = []TurnState{
	TurnPreparing, TurnCompressing, TurnCalling, TurnApproving, TurnActing, TurnSuspended,
	TurnDone, TurnInterrupted, TurnExhausted, TurnFailed,
}

// Ended says whether the state is an end.
func (s TurnState) Ended() bool {
	switch s {
	case TurnDone, TurnInterrupted, TurnExhausted, TurnFailed:
		return true
	default:
		return false
	}
}

// Budget bounds a turn's model calls: Initial at first, grown by Step on request
// up to Cap. Used and Granted are its state.
type Budget struct {
	Initial int `json:"initial" yaml:"initial"`
	Step    int `json:"step" yaml:"step"`
	Cap     int `json:"cap" yaml:"cap"`
	Granted int `json:"granted,omitempty" yaml:"-"`
}

// Trust is the mark that a turn's tools carry; the model cannot change it.
type Trust string

// The marks.
const (
	TrustUser      Trust = "user"      // a person's own words
	TrustSchedule  Trust = "schedule"  // unattended, with its creator's trust
	TrustUntrusted Trust = "untrusted" // started by a webhook or trigger
)

// ToolRun is one tool call of a turn: the row is committed before the tool runs,
// and is the audit entry afterwards.
type ToolRun struct {
	Turn      TurnID
	Iteration int
	Index     int
	CallID    string
	Tool      string
	Arguments json.RawMessage // as text; may be invalid JSON
	State     ToolState
	// ResultSeq is the sequence reserved for the result message.
	ResultSeq int64
	// Outcome is one word for the audit: ok, error, denied, interrupted, unknown.
	Outcome string
	// RefusedBy is who kept the call from running, empty if nobody did, and Reason
	// why, for people: one line without secrets.
	RefusedBy Refuser
	Reason    string
	StartedAt time.Time
	EndedAt   time.Time
}

// Refuser is what kept a call from running.
type Refuser string

// The refusers.
const (
	RefusedByPolicy Refuser = "policy"
	RefusedByHook   Refuser = "hook"
	// RefusedByPeople is a person's no, and their silence: what was decided is in
	// the call's Approval.
	RefusedByPeople Refuser = "people"
	// RefusedBySpending is a spending limit beyond which no admin allowed more.
	RefusedBySpending Refuser = "spending"
)

// ToolState is where a tool run stands.
type ToolState string

// The states of a tool run. After a crash a pending one runs, a started one gets
// a result that says it may have happened, a done one is kept.
const (
	ToolPending ToolState = "pending"
	ToolStarted ToolState = "started"
	ToolDone    ToolState = "done"
)

// Approval is a question to people: may this run, or a clarify question.
type Approval struct {
	ID           ApprovalID
	Conversation ConversationID
	Turn         TurnID
	CallID       string
	Kind         ApprovalKind
	// Question is CommonMark; Options are the choices of a clarify question.
	Question string
	Options  []string
	State    ApprovalState
	// Asked is who may answer, besides admins.
	Asked     chat.Person
	DecidedBy chat.Person
	// Answer is the chosen option or the free text; of an approval, its GrantScope.
	Answer string
	// Tool and Pattern are what a lasting consent covers; without a Pattern there can
	// be none.
	Tool, Pattern string
	ExpiresAt     time.Time
	CreatedAt     time.Time
}

// ApprovalKind tells the two questions apart.
type ApprovalKind string

// The kinds of questions.
const (
	AskApproval ApprovalKind = "approval"
	AskClarify  ApprovalKind = "clarify"
	AskSpending ApprovalKind = "spending" // may more be spent today; admins only
)

// ApprovalState is where a question stands. Only open ones can change.
type ApprovalState string

// The states of a question.
const (
	ApprovalOpen      ApprovalState = "open"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalAnswered  ApprovalState = "answered"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalWithdrawn ApprovalState = "withdrawn"
)
