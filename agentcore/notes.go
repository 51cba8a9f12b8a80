package agentcore

import (
	"context"
	"encoding/json"

	"parley/store/record"
)

// The stores behind the agent-level tools; *store.DB implements them. A scope is
// "person:PLATFORM:ID" or "conversation:ID".
type (
	// Notes keeps memory documents and facts. Writes are durable when they return.
	Notes interface {
		// Document returns MEMORY.md or USER.md of a scope, "" if there is none.
		Document(ctx context.Context, scope, name string) (string, error)
		SetDocument(ctx context.Context, scope, name, content string) error
		// Facts returns the newest facts of the scopes, at most limit.
		Facts(ctx context.Context, scopes []string, limit int) ([]record.Fact, error)
		SetFact(ctx context.Context, f record.Fact) error
		DeleteFact(ctx context.Context, scope, category, key string) error
	}
	// Searcher finds messages by full text, only inside one conversation.
	Searcher interface {
		// Search returns the best hits first. A query is words, or words of a language
		// without spaces; every byte sequence is a valid query.
		Search(ctx context.Context, c record.ConversationID, query string, limit int) ([]record.SearchHit, error)
		// Sessions lists the conversation's sessions, newest first.
		Sessions(ctx context.Context, c record.ConversationID, limit int) ([]record.SessionSummary, error)
		// SessionIn returns the session's messages if it belongs to the conversation,
		// else record.ErrNotFound.
		SessionIn(ctx context.Context, c record.ConversationID, s record.SessionID) ([]record.Message, error)
	}
	// Todos keeps the task list of a lineage as JSON.
	Todos interface {
		TodoList(ctx context.Context, root record.SessionID) (json.RawMessage, error)
		SetTodoList(ctx context.Context, root record.SessionID, items json.RawMessage) error
	}
)
