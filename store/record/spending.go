package record

import (
	"fmt"

	"parley/agentcore/llm"
	"parley/gateway/chat"
)

// SpendingLimit bounds what a scope may spend on a day.
type SpendingLimit struct {
	Scope string // "total", "person:…", "conversation:…"
	Limit float64
}

// SpendingError says that a limit does not leave room for what was to be spent.
type SpendingError struct {
	SpendingLimit
	// Spent is what the scope has spent today, reservations included, and Allowed the
	// limit with what was added to it.
	Spent, Allowed float64
}

func (e *SpendingError) Error() string {
	return fmt.Sprintf("record: %s has spent %.4f of %.4f today", e.Scope, e.Spent, e.Allowed)
}

// Words tell people of the limit.
func (e *SpendingError) Words(currency string) string {
	what := map[byte]string{'t': "all chats together", 'p': "one person", 'c': "this chat"}[e.Scope[0]]
	return fmt.Sprintf("today's limit of %.2f %s for %s is reached (%.2f spent)", e.Allowed, currency, what, e.Spent)
}

// Payer is on whose account something is spent.
type Payer struct {
	Conversation ConversationID
	// Person is empty where nobody in particular asked for it.
	Person chat.Person
	// Purpose says what for, if it is not a turn's own, which accounts for itself.
	Purpose Purpose
}

// Purpose is what models were used for.
type Purpose string

// The purposes.
const (
	ForTurn        Purpose = ""
	ForCompression Purpose = "compression" // between turns
	ForEmbedding   Purpose = "embedding"
	ForTitle       Purpose = "title"
	ForReading     Purpose = "reading" // a page for a question about it, or a picture
)

// UsageEntry is what a payer has used.
type UsageEntry struct {
	Payer
	Model llm.ModelID
	Usage llm.Usage
}
