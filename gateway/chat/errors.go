package chat

import (
	"errors"
	"fmt"
	"time"
)

// ErrGone means that the chat, thread or message no longer exists, or the bot
// was removed or blocked: trying again cannot help.
var ErrGone = errors.New("chat: the chat or message is gone")

// ErrAmbiguous means that the request may or may not have taken effect (a read
// timeout, a cut connection): it must not be repeated blindly (DEL-004).
var ErrAmbiguous = errors.New("chat: the outcome of the delivery is unknown")

// RateLimitError means that the platform refused the call until RetryAfter has
// passed; nothing was sent.
type RateLimitError struct {
	RetryAfter time.Duration
	// Account says that the limit is the whole account's, not this chat's; Edits that it
	// is of edits and removals in all chats, and that new messages are taken.
	Account, Edits bool
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("chat: rate limited for %s", e.RetryAfter)
}

// RejectedError means that the platform refuses this very content for good.
type RejectedError struct {
	// Reason is the platform's own wording, without secrets.
	Reason string
}

func (e *RejectedError) Error() string { return "chat: rejected: " + e.Reason }

// CredentialError ends an adapter: its token is wrong or was revoked.
type CredentialError struct {
	// Account is the account that cannot run.
	Account AccountID
	// Reason says what the platform answered and Fix the exact next step.
	Reason, Fix string
}

func (e *CredentialError) Error() string {
	return fmt.Sprintf("%s: %s. %s", e.Account, e.Reason, e.Fix)
}
