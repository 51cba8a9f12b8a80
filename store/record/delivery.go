package record

import (
	"time"

	"parley/gateway/chat"
)

// Delivery is one message to be posted, and what is known of its fate.
type Delivery struct {
	ID           DeliveryID
	Conversation ConversationID
	Turn         TurnID // empty for replies to commands and notices
	Kind         DeliveryKind
	// Part numbers the messages of a turn's answer from 0.
	Part int
	// Key is the idempotency key; unique.
	Key     string
	Address chat.Address
	// Out is the whole content, as it should be in the end.
	Out   chat.Outgoing
	State DeliveryState
	// Message is the platform's id once it is known. A pending delivery with one
	// is an edit.
	Message chat.MessageID
	// Marked says that an earlier attempt may have arrived: the text is shown with
	// a mark.
	Marked bool
	// Approval is the question that a card asks.
	Approval  ApprovalID
	Attempts  int
	Error     string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// DeliveryKind gives the order in a chat: control, cards, finals, interim.
type DeliveryKind string

// The kinds of deliveries.
const (
	DeliverControl DeliveryKind = "control" // the reply to a command
	DeliverCard    DeliveryKind = "card"    // a question with buttons
	DeliverFinal   DeliveryKind = "final"   // a part of a turn's answer
	DeliverFile    DeliveryKind = "file"    // a file that a turn sends
	DeliverLive    DeliveryKind = "live"    // a part of an answer being written
	DeliverNotice  DeliveryKind = "notice"  // anything else that people should see
)

// DeliveryState is what is known of a delivery.
type DeliveryState string

// The states. Only a creation can become unknown: edits are idempotent. Gone
// deliveries were removed again on purpose.
const (
	DeliveryPending DeliveryState = "pending"
	DeliverySending DeliveryState = "sending"
	DeliverySent    DeliveryState = "sent"
	DeliveryUnknown DeliveryState = "unknown"
	DeliveryFailed  DeliveryState = "failed"
	DeliveryGone    DeliveryState = "gone"
)

// Settled says that nothing is left to do.
func (s DeliveryState) Settled() bool {
	return s == DeliverySent || s == DeliveryFailed || s == DeliveryGone
}
