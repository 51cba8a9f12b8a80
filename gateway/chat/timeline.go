package chat

import (
	"context"
	"time"
)

// Timeline keeps the messages of chats that have no platform behind them (the
// web page, the terminal). It is durable and shared by all replicas.
type Timeline interface {
	// Append adds an entry and returns its id; an entry with the same Key in the
	// same chat is added once, and the first one's id returned. What a person wrote
	// stays; what the bot adds once more takes the first one's place.
	Append(ctx context.Context, to Address, e Entry) (MessageID, error)
	// Replace changes an entry's content; ErrGone if there is none.
	Replace(ctx context.Context, to Address, id MessageID, e Entry) error
	// Remove deletes an entry.
	Remove(ctx context.Context, to Address, id MessageID) error
	// List returns the newest limit entries, oldest first.
	List(ctx context.Context, of Address, limit int) ([]Entry, error)
	// Watch calls changed after each change of the chat by any replica, until ctx
	// ends. Calls may be merged; after each, List tells the truth.
	Watch(ctx context.Context, of Address, changed func()) error
}

// Entry is one message of a Timeline.
type Entry struct {
	ID  MessageID `json:"id"`
	Key string    `json:"key"`
	// From is the person, or empty for the bot.
	From     Person     `json:"from,omitempty"`
	Text     string     `json:"text"` // CommonMark from the bot, plain text from a person
	Progress []string   `json:"progress,omitempty"`
	Buttons  [][]Button `json:"buttons,omitempty"`
	Live     bool       `json:"live,omitempty"`
	At       time.Time  `json:"at"`
}

// Directory lists the sessions that a person may open in a built-in chat.
type Directory interface {
	// Sessions returns the sessions of the conversation at an address, newest
	// first, at most limit.
	Sessions(ctx context.Context, of ConversationKey, limit int) ([]SessionInfo, error)
}

// SessionInfo is one row of a Directory.
type SessionInfo struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Current  bool      `json:"current"`
	Messages int       `json:"messages"`
	At       time.Time `json:"at"`
}
