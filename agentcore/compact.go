package agentcore

import (
	"context"

	"parley/agentcore/engine"
	"parley/store/record"
)

// CompactRequest asks about, or for, a compression outside a turn.
type CompactRequest struct {
	Conversation record.Conversation
	// Journal is used for reading only.
	Journal Journal
	Trigger engine.Trigger
	// Topic focuses the summary.
	Topic string
	// PlatformHint is as in Request, for the child's system prompt.
	PlatformHint string
}

// NeedsCompression says whether the next prompt of the conversation would be over
// the trigger's limit.
func (a *Agent) NeedsCompression(ctx context.Context, r CompactRequest) (bool, error) {
	t, err := a.reading(ctx, r)
	if err != nil {
		return false, err
	}
	d := a.deps.Engine.Decide(engine.State{
		Session: t.session, Messages: t.rows, Window: t.window, Tools: t.tools.Specs(), Trigger: r.Trigger, Now: a.deps.Now(),
	})
	return d.Compress, nil
}

// Compact makes a compression and changes nothing: the caller commits it. The
// only errors are ctx's own and those of reading.
func (a *Agent) Compact(ctx context.Context, r CompactRequest) (engine.Result, error) {
	t, err := a.reading(ctx, r)
	if err != nil {
		return engine.Result{}, err
	}
	if len(t.rows) == 0 {
		return engine.Result{Outcome: engine.NothingToDo}, nil
	}
	res, err := a.deps.Engine.Compress(ctx, engine.Input{
		Session: t.session, Messages: t.rows, Window: t.window, Tools: t.tools.Specs(), Trigger: r.Trigger, Topic: r.Topic,
		Payer: record.Payer{Conversation: r.Conversation.ID, Person: t.row.Person, Purpose: record.ForCompression}, Now: a.deps.Now(),
	})
	if err != nil || res.Outcome != engine.Compressed {
		return res, err
	}
	return res, t.complement(ctx, &res.Compression)
}

// reading loads a session without a turn of its own.
func (a *Agent) reading(ctx context.Context, r CompactRequest) (*turn, error) {
	t, err := a.turn(Request{Conversation: r.Conversation, Journal: r.Journal, PlatformHint: r.PlatformHint})
	if err != nil {
		return nil, err
	}
	if t.session, err = t.req.Journal.Session(ctx); err != nil {
		return nil, err
	}
	t.rows, err = t.req.Journal.History(ctx)
	return t, err
}
