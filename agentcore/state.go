package agentcore

import (
	"context"
	"fmt"
	"slices"

	"parley/store/record"
)

// transitions is the whole life of a turn; doc.go draws it and a test compares
// both with record.TurnStates.
var transitions = map[record.TurnState][]record.TurnState{
	record.TurnPreparing:   {record.TurnCompressing, record.TurnCalling, record.TurnActing, record.TurnInterrupted, record.TurnFailed, record.TurnSuspended},
	record.TurnCompressing: {record.TurnPreparing, record.TurnInterrupted, record.TurnFailed, record.TurnSuspended},
	record.TurnCalling: {
		record.TurnPreparing, record.TurnCompressing, record.TurnActing,
		record.TurnDone, record.TurnInterrupted, record.TurnExhausted, record.TurnFailed, record.TurnSuspended,
	},
	record.TurnApproving: {record.TurnActing, record.TurnInterrupted, record.TurnFailed, record.TurnSuspended},
	record.TurnActing:    {record.TurnApproving, record.TurnPreparing, record.TurnInterrupted, record.TurnFailed, record.TurnSuspended},
	record.TurnSuspended: {record.TurnPreparing},
}

// run drives the turn from state to state until it ends or is suspended.
func (t *turn) run(ctx context.Context) (*Result, error) {
	t.row.State, t.row.Cause = record.TurnPreparing, ""
	t.emit(Status{State: t.row.State})
	for !t.row.State.Ended() && t.row.State != record.TurnSuspended {
		next, err := t.step(ctx)
		if next.Ended() {
			next, err = t.finish(ctx, next, err)
		}
		if next == record.TurnSuspended && err != nil {
			t.row.Cause, t.suspended = err.Error(), err
		}
		if err := t.enter(next); err != nil {
			return nil, err
		}
	}
	return t.result(), nil
}

// step does what the current state is for and names the next one. An error comes
// only with an end or with Suspended and says why.
func (t *turn) step(ctx context.Context) (record.TurnState, error) {
	switch t.row.State {
	case record.TurnPreparing:
		return t.preparing(ctx)
	case record.TurnCompressing:
		return t.compressing(ctx)
	case record.TurnCalling:
		return t.calling(ctx)
	case record.TurnApproving:
		return t.approving(ctx)
	case record.TurnActing:
		return t.acting(ctx)
	case record.TurnSuspended, record.TurnDone, record.TurnInterrupted, record.TurnExhausted, record.TurnFailed:
	}
	return record.TurnFailed, fmt.Errorf("agentcore: nothing to do in state %q", t.row.State)
}

// enter changes the state along the table.
func (t *turn) enter(next record.TurnState) error {
	if !slices.Contains(transitions[t.row.State], next) {
		return fmt.Errorf("agentcore: no way from %q to %q", t.row.State, next)
	}
	t.row.State = next
	t.emit(Status{State: next, ContextTokens: t.contextTokens, Window: t.window})
	return nil
}

// halted is what an ended context means for the turn.
func (t *turn) halted(ctx context.Context) (record.TurnState, error) {
	cause := context.Cause(ctx)
	if interrupted(cause) {
		return record.TurnInterrupted, cause
	}
	return record.TurnSuspended, cause
}

// broken is what an error of the journal means: what is not durable is not acted
// upon. A context that ended meanwhile explains it better.
func (t *turn) broken(ctx context.Context, err error) (record.TurnState, error) {
	if ctx.Err() != nil {
		return t.halted(ctx)
	}
	return record.TurnSuspended, err
}
