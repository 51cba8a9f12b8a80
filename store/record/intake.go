package record

import (
	"time"

	"parley/agentcore/llm"
	"parley/gateway/chat"
)

// ReceiveRequest is one event on its way in.
type ReceiveRequest struct {
	Replica ReplicaID
	Event   chat.Event
	Scope   chat.Scope
	// Model is the one a new session is begun with.
	Model llm.ModelID
	// PairingCode is used if the verdict asks to open a pairing request.
	PairingCode string
}

// InboxItem is one event that was taken in.
type InboxItem struct {
	Account      chat.AccountID
	Key          chat.EventKey
	Seq          int64 // order of arrival
	Conversation ConversationID
	Kind         chat.EventKind
	Payload      []byte // chat.Encode's JSON; empty for refused ones
	State        InboxState
	Turn         TurnID
	// Reason says why it was refused, or how it ended ("withdrawn by /stop").
	Reason     string
	ReceivedAt time.Time
}

// Event decodes the payload.
func (i InboxItem) Event() (chat.Event, error) { return chat.Decode(i.Kind, i.Payload) }

// InboxState is where an event stands.
type InboxState string

// The states: received → taken → done; refused and held at intake. A held
// message waits a day for its sender to be paired.
const (
	InboxReceived InboxState = "received"
	InboxTaken    InboxState = "taken"
	InboxDone     InboxState = "done"
	InboxRefused  InboxState = "refused"
	InboxHeld     InboxState = "held"
)

// AccessFacts are the rows that an access decision is made from, read in the
// transaction that stores the event.
type AccessFacts struct {
	// Member is the sender's row; nil if they are unknown.
	Member *Member
	// Claimed says that the account's platform has an owner or an allow-list entry
	// in the database.
	Claimed bool
	// Conversation is where the event belongs, nil if there is none yet.
	Conversation *Conversation
	// Asked says that this sender's request to be paired is already open.
	Asked bool
}

// Verdict is an access decision with its named reason.
type Verdict struct {
	State InboxState // InboxReceived, InboxRefused or InboxHeld
	// Reason is shown by /why and `parley why`.
	Reason string
	// Count asks for a counter only, no row (group chatter that is not for the bot).
	Count bool
	// Pair asks to open a pairing request for the sender.
	Pair bool
}

// Receipt says what became of an event at intake.
type Receipt struct {
	Duplicate bool
	Verdict   Verdict
	Item      InboxItem
	// Conversation is set for received events, and Fence if this replica owns it.
	Conversation Conversation
	Fence        Fence
	Mine         bool
	// Pairing is set if a request was opened now.
	Pairing *Pairing
}

// Member is a person that the database knows.
type Member struct {
	ID        chat.Person
	Name      string
	Role      Role
	CreatedAt time.Time
}

// Role is what a person may do.
type Role string

// The roles. Ignored people are refused without a word.
const (
	RoleOwner   Role = "owner"
	RoleAdmin   Role = "admin"
	RoleUser    Role = "user"
	RoleIgnored Role = "ignored"
)

// Admin says whether the role may decide for others.
func (r Role) Admin() bool { return r == RoleOwner || r == RoleAdmin }

// Pairing is a stranger's request to use the bot.
type Pairing struct {
	Code      string
	Person    chat.Person
	Name      string
	Address   chat.Address
	State     PairingState
	CreatedAt time.Time
	ExpiresAt time.Time
}

// PairingState is where a request stands.
type PairingState string

// The states of a request.
const (
	PairingOpen    PairingState = "open"
	PairingAllowed PairingState = "allowed"
	PairingIgnored PairingState = "ignored"
	PairingExpired PairingState = "expired"
)

// Contact is somebody who can be written to directly.
type Contact struct {
	Member
	// Conversation and Address are zero if they never wrote.
	Conversation ConversationID
	Address      chat.Address
}
