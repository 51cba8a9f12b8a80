package agentcore

import "errors"

// The causes with which a turn's context is cancelled; they are told apart by
// context.Cause. Any other end of the context, a plain cancellation included,
// suspends the turn like ErrSuspend.
var (
	// ErrStopped is /stop: the turn ends as Interrupted, every tool is killed.
	ErrStopped = errors.New("agentcore: stopped by the user")
	// ErrInterrupted is a new message in the busy mode interrupt: the turn ends as
	// Interrupted. The model call and every wait are abandoned, read-only tools are
	// cut off; another tool that runs at that moment is let finish first.
	ErrInterrupted = errors.New("agentcore: interrupted by a new message")
	// ErrSuspend is a shutdown, a lost claim or a lost database: the turn is left
	// as it is for the next owner, and nothing more is written.
	ErrSuspend = errors.New("agentcore: suspended")
)

// errJoined abandons a model call whose question is no longer complete.
var errJoined = errors.New("agentcore: a further message joined the turn")

// interrupted says whether a cause ends the turn rather than suspending it.
func interrupted(cause error) bool {
	return errors.Is(cause, ErrStopped) || errors.Is(cause, ErrInterrupted)
}
