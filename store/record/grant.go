package record

import (
	"time"

	"parley/gateway/chat"
)

// Grant is a consent that outlives one call: of one person, in one conversation, for
// exactly one pattern of one tool.
type Grant struct {
	// ID is that of the question from which it came.
	ID           ApprovalID
	Conversation ConversationID
	Person       chat.Person
	Tool         string
	Pattern      string
	Scope        GrantScope
	By           chat.Person
	CreatedAt    time.Time
	// ExpiresAt is zero for a grant that holds until it is revoked.
	ExpiresAt time.Time
}

// GrantScope is how long a consent holds. It is the Answer of an approved question.
type GrantScope string

// The scopes. A grant for the session ends with the session's root, and after a day.
const (
	GrantOnce    GrantScope = ""
	GrantSession GrantScope = "session"
	GrantAlways  GrantScope = "always"
)

// RevokeGrant ends a grant of the conversation.
type RevokeGrant struct {
	ID ApprovalID
	By chat.Person
}

func (RevokeGrant) isEffect() {}
