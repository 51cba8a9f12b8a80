package tool

import "context"

// Hook is the owner's say about each call, beside the policy: Before a call is
// judged, and After it has run. It is safe for concurrent use.
type Hook interface {
	// Before may block a call, with a reason, or change its arguments. Whatever keeps
	// it from deciding blocks. An error is ctx's end only.
	Before(ctx context.Context, name string, c Call) (Change, error)
	// After may change what the call brought back.
	After(ctx context.Context, name string, c Call, r Result) Result
}

// Change is what a Hook does to a call before it is judged.
type Change struct {
	// Blocked is why the call must not run; empty: it may.
	Blocked string
	// Arguments replace the call's; nil: they stay.
	Arguments []byte
}
