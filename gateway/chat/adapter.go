package chat

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Adapter connects one account of one platform. All methods are safe for
// concurrent use, and none but Run depends on Run being active: deliveries are
// settled after intake has stopped.
type Adapter interface {
	// Account never changes.
	Account() AccountID
	// Limits are the platform's, as data; they never change.
	Limits() Limits
	// Run takes in events until ctx ends, reconnecting by itself for ever. It
	// returns nil when ctx ended, and an error only when trying again cannot help
	// (a *CredentialError). It reports its link with ConnectionChanged.
	Run(ctx context.Context, sink Sink) error
	// Send posts one message that fits Limits and never retries. It returns
	// *RateLimitError, ErrGone, *RejectedError, ErrAmbiguous (it may have arrived)
	// or a plain error that stands for "certainly not sent, try again".
	Send(ctx context.Context, to Address, m Outgoing) (MessageID, error)
}

// Sink takes an event. It returns once the event is durable, or refused for
// good; only then may the adapter acknowledge it to the platform. An error means
// "not taken": the adapter must deliver the event again later.
type Sink func(context.Context, Event) error

// Outgoing is one message to post, within the platform's Limits.
type Outgoing struct {
	// Key is the idempotency key; platforms with a nonce use it.
	Key string `json:"key"`
	// Text is CommonMark; the adapter renders it into the platform's markup and
	// falls back to plain text if the platform refuses the markup.
	Text string `json:"text"`
	// Progress are short plain-text lines shown above the text while a turn runs.
	Progress []string `json:"progress,omitempty"`
	// Buttons are rows of buttons below the text.
	Buttons [][]Button `json:"buttons,omitempty"`
	// Reply is the handle of the event that this message answers; may be empty.
	Reply ReplyHandle `json:"reply,omitempty"`
	// Live marks a message that is still being written and will be edited.
	Live bool `json:"live,omitempty"`
	// Ephemeral asks for a message that only the addressed person sees, where the
	// platform can.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Files are attachments to send; opened by the adapter.
	Files []OutgoingFile `json:"files,omitempty"`
}

// OutgoingFile is a file on this machine to be sent.
type OutgoingFile struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// Button is a choice below a message. Data is at most 64 bytes and opaque.
type Button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	Style Style  `json:"style,omitempty"`
}

// Style is a hint for a button's looks.
type Style string

// The styles of buttons.
const (
	Plain   Style = ""
	Primary Style = "primary"
	Danger  Style = "danger"
)

// The optional capabilities of an adapter. The gateway asserts each where it is
// used and degrades in one place: no Editor means final messages only.
type (
	// Editor replaces the content of a posted message. An edit that changes
	// nothing is a success. Errors are those of Send; ErrGone means that the
	// message no longer exists or can no longer be edited.
	Editor interface {
		Edit(ctx context.Context, to Address, id MessageID, m Outgoing) error
	}
	// Deleter removes one of the bot's own messages; removing what is already
	// gone is a success.
	Deleter interface {
		Delete(ctx context.Context, to Address, id MessageID) error
	}
	// Typer shows that the bot is at work, for Limits.TypingTTL.
	Typer interface {
		Typing(ctx context.Context, to Address) error
	}
	// Reactor sets the bot's single reaction on a person's message.
	Reactor interface {
		React(ctx context.Context, to Address, id MessageID, r Reaction) error
	}
	// ButtonAcker answers a press so that the client stops waiting; text is a
	// short notice, shown to the one who pressed.
	ButtonAcker interface {
		AckButton(ctx context.Context, press ButtonPressed, text string) error
	}
	// FileOpener fetches an attachment. The caller closes it. A file over the
	// platform's limit gives a *RejectedError.
	FileOpener interface {
		OpenFile(ctx context.Context, f File) (io.ReadCloser, error)
	}
	// CommandPublisher tells the platform which commands to offer.
	CommandPublisher interface {
		PublishCommands(ctx context.Context, cmds []CommandInfo) error
	}
	// Finder reads back what was sent, to resolve an unknown delivery. ok is false if it
	// certainly was not sent and will not arrive any more, or if sending it again under
	// its key cannot send it twice; ErrAmbiguous says that nobody can tell, any other
	// error that it has to be asked again.
	Finder interface {
		Find(ctx context.Context, to Address, a Attempt) (id MessageID, ok bool, err error)
	}
	// Prober checks credentials and set-up for `parley doctor`.
	Prober interface {
		Probe(ctx context.Context) ([]Finding, error)
	}
	// Handlers are HTTP routes that the adapter serves on parley's one listener.
	Handlers interface {
		Routes() map[string]http.Handler
	}
	// Drafter shows a text that is still being written without posting a message:
	// the platform forgets it after Limits.DraftTTL, or when a message follows. id
	// names the draft within the chat; the same id replaces it. Errors are those of
	// Send, and none of them needs a record: a draft is never the answer.
	Drafter interface {
		Draft(ctx context.Context, to Address, id int64, m Outgoing) error
	}
	// Threader opens a thread below a message, or in the chat if on is empty, and
	// returns where to write. Opening it again returns the same thread.
	Threader interface {
		OpenThread(ctx context.Context, in Address, on MessageID, title string) (Address, error)
	}
	// Titler names a thread after what is talked about in it.
	Titler interface {
		SetTitle(ctx context.Context, at Address, title string) error
	}
	// HistoryReader reads what was said at an address before a message, oldest
	// first, at most limit messages: what the bot has not been told. It is quoted to
	// the model as untrusted.
	HistoryReader interface {
		History(ctx context.Context, at Address, before MessageID, limit int) ([]Quote, error)
	}
	// Inviter makes the link by which the owner claims the bot: opening it sends
	// "/start CODE" from the owner's account.
	Inviter interface {
		InviteLink(ctx context.Context, code string) (string, error)
	}
)

// Reaction is a state shown on a person's message.
type Reaction string

// The reactions, each mapped by the adapter to what its platform allows.
const (
	ReactNone    Reaction = ""
	ReactSeen    Reaction = "seen"    // taken in, waiting for its turn
	ReactWorking Reaction = "working" // being answered
	ReactDone    Reaction = "done"
	ReactFailed  Reaction = "failed"
)

// CommandInfo is one command for a platform's menu.
type CommandInfo struct {
	Name        string
	Args        string
	Description string
	AdminOnly   bool
}

// Attempt is what is known of a message that may have been sent, perhaps by a process
// that died meanwhile: its idempotency key, and when that was first and last tried.
type Attempt struct {
	Key         string
	First, Last time.Time
}

// Finding is one result of Probe.
type Finding struct {
	OK   bool
	What string // what was checked
	Fix  string // the exact next step if not OK
}

// Limits are a platform's conventions, as data. Zero means unlimited.
type Limits struct {
	// Text is the most that Measure may return for one message.
	Text int
	// Measure returns what the platform counts for a CommonMark text; nil counts
	// UTF-8 bytes.
	Measure func(commonMark string) int
	// EditInterval is the least time between two interim edits in one chat.
	EditInterval time.Duration
	// ChatPerMinute bounds messages and edits in one group chat.
	ChatPerMinute int
	// AccountPerSecond is how many messages and edits over all chats the platform
	// promises to take. Some servers take more, so it is kept once one has refused.
	AccountPerSecond int
	// EditsPerMinute is the same of edits alone, where the platform counts them apart
	// and takes more new messages than edits.
	EditsPerMinute int
	// ButtonsPerRow and Buttons bound a keyboard.
	ButtonsPerRow, Buttons int
	// FileIn and FileOut are bytes.
	FileIn, FileOut int64
	// TypingTTL is how long a typing notice lasts.
	TypingTTL time.Duration
	// SingleIntake says that only one process may take in events of the account
	// at a time (a long poll); the gateway sees to it across replicas.
	SingleIntake bool
	// NoButtons says that choices must be offered as text.
	NoButtons bool
	// DraftTTL is how long a draft stays visible.
	DraftTTL time.Duration
	// OwnStop says that the platform's client has a stop control of its own, which
	// arrives as StopPressed.
	OwnStop bool
	// ReplyDirect says that answers in direct chats are sent as replies too.
	ReplyDirect bool
}

// Size applies Measure.
func (l Limits) Size(commonMark string) int {
	if l.Measure == nil {
		return len(commonMark)
	}
	return l.Measure(commonMark)
}
