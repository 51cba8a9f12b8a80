package agentcore

import (
	"context"
	"sync"
)

// Restart says that a further message, which Steering will hand over, belongs into
// the model call that runs now. Until a tool was planned in the turn the call is
// abandoned silently and made again with it; afterwards the message is steered in
// before the next call. The zero value is ready; it serves one turn and is safe
// for concurrent use.
type Restart struct {
	mu     sync.Mutex
	raised bool
	call   context.CancelCauseFunc // of the model call that may be abandoned
}

// Raise is called once the message is there to be taken. It never blocks.
func (r *Restart) Raise() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call == nil {
		r.raised = true
		return
	}
	r.call(errJoined)
}

// take consumes the signal.
func (r *Restart) take() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.raised
	r.raised = false
	return was
}

// attach gives a model call up to the signal; nil takes it away again.
func (r *Restart) attach(call context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call = call
	if call != nil && r.raised {
		r.raised = false
		call(errJoined)
	}
}
