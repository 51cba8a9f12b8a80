package chat

import "strings"

type (
	// AccountID names one bot account, written "platform/name".
	AccountID string
	// ChatID is a chat, channel or direct message of an account.
	ChatID string
	// ThreadID is a thread or topic inside a chat; empty where there is none.
	ThreadID string
	// MessageID is a message inside a chat, as the platform names it.
	MessageID string
	// EventKey identifies what happened, not the envelope that brought it: kind,
	// chat, message and, where it applies, edit version or button. The platform
	// may deliver one event many times; its key is always the same (DUP-001).
	EventKey string
	// Person is somebody on a platform, written "platform:id". Only ids that the
	// platform guarantees stay with the person are used, never names (ACC-004).
	Person string
)

// Platform is the part of the account before the slash.
func (a AccountID) Platform() string {
	p, _, _ := strings.Cut(string(a), "/")
	return p
}

// Platform is the part of the person before the colon.
func (p Person) Platform() string {
	s, _, _ := strings.Cut(string(p), ":")
	return s
}

// Address is where messages go: it is comparable and serves as a map key.
type Address struct {
	Account AccountID `json:"account"`
	Chat    ChatID    `json:"chat"`
	Thread  ThreadID  `json:"thread,omitempty"`
}

// String is for logs.
func (a Address) String() string {
	s := string(a.Account) + "/" + string(a.Chat)
	if a.Thread != "" {
		s += "/" + string(a.Thread)
	}
	return s
}

// Kind says what sort of chat an event came from.
type Kind string

const (
	// Direct is a conversation between the bot and one person.
	Direct Kind = "direct"
	// Group is a room of several people; mention gating applies.
	Group Kind = "group"
)

// Scope says how a group's messages are divided into conversations.
type Scope string

const (
	// ScopeThread gives one conversation to each thread (or room without threads).
	ScopeThread Scope = "thread"
	// ScopePerson gives one to each person in each thread.
	ScopePerson Scope = "person"
)

// ConversationKey names a conversation: an address and, where the scope says
// so, the person it is with. It is comparable.
type ConversationKey struct {
	Address     Address `json:"address"`
	Participant Person  `json:"participant,omitempty"`
}

// KeyOf is the one rule that turns an event's origin into its conversation:
// direct messages belong to the person who writes; groups to the thread, or to
// the thread and the person by configuration (KEY-001).
func KeyOf(o Origin, s Scope) ConversationKey {
	k := ConversationKey{Address: o.Address}
	if o.Kind == Direct || s == ScopePerson {
		k.Participant = o.From.ID
	}
	return k
}
