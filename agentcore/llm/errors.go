package llm

import (
	"fmt"
	"time"
)

// ErrorKind decides what happens after a failed call; nothing else does.
type ErrorKind string

// The kinds of errors. Only the provider's status, code and error object decide
// the kind, never the content of messages (CTX-009).
const (
	KindAuth        ErrorKind = "auth"          // 401, 403
	KindBilling     ErrorKind = "billing"       // 402, quota exhausted
	KindRateLimit   ErrorKind = "rate_limit"    // 429
	KindOverloaded  ErrorKind = "overloaded"    // 5xx, 529
	KindNetwork     ErrorKind = "network"       // refused, reset, cut stream
	KindTimeout     ErrorKind = "timeout"       // no first byte, idle stream
	KindNotFound    ErrorKind = "not_found"     // unknown model
	KindOverflow    ErrorKind = "overflow"      // the context is too long
	KindMalformed   ErrorKind = "malformed"     // another 400
	KindFiltered    ErrorKind = "filtered"      // refused by a content filter
	KindEmpty       ErrorKind = "empty"         // an answer without text or calls
	KindUnknown     ErrorKind = "unknown"       // none of the above
	KindUnavailable ErrorKind = "not_available" // no provider is configured
)

// Error is the one error of a provider.
type Error struct {
	Kind   ErrorKind
	Status int
	// RetryAfter is what the server asked for; 0 if it said nothing.
	RetryAfter time.Duration
	// Window is the model's real context window if an overflow told it.
	Window int
	// Repaired says that the provider has learnt from the refusal (a parameter that
	// the model does not take) and will ask differently: the same request may be
	// sent again at once.
	Repaired bool
	// Message is the provider's own wording, bounded and without secrets.
	Message string
	Model   ModelID
	Err     error
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Model != "" {
		s = string(e.Model) + ": " + s
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
