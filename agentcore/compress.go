package agentcore

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// maxOverflows bounds how often a turn compresses because the provider refused
// the request as too long.
const maxOverflows = 3

// pressure is what the turn knows about the size of its context.
type pressure struct {
	trigger   engine.Trigger
	limit     int // tokens at which the preflight compresses
	overflows int
	futile    bool // a preflight in this turn found nothing to do
}

// overflowed compresses and tries again after the provider refused the request as
// too long (CTX-003). The refused call does not count.
func (t *turn) overflowed(failure *llm.Error) (record.TurnState, error) {
	t.row.Iteration--
	if failure.Window > 0 {
		t.window = failure.Window // what the provider really has (CMP-002)
	}
	if t.pressure.overflows == maxOverflows {
		return record.TurnFailed, failure
	}
	t.pressure.overflows++
	t.pressure.trigger = engine.Overflow
	t.answer.fragments = nil
	t.emit(StreamReset{Reason: "the context is too long"})
	return record.TurnCompressing, nil
}

// compressing moves the turn to a child session with a summary in the place of
// the middle. Only /stop and a suspension cut it off; a new message waits for it
// (CMP-004, CMP-014).
func (t *turn) compressing(ctx context.Context) (record.TurnState, error) {
	cctx, stop := uninterrupted(ctx)
	defer stop()
	t.emit(Status{State: record.TurnCompressing, Text: "summarising the earlier conversation", Visible: true, ContextTokens: t.contextTokens, Window: t.window})
	killpoint.Here(killpoint.CompressionBegun)
	res, err := t.compress(cctx)
	for res.Outcome == engine.OverLimit && t.pressure.trigger == engine.Overflow {
		// The turn cannot go on without.
		if err := t.askForMore(ctx, res.Over, spending.Reservation{Day: t.a.deps.Now().UTC()}); err != nil {
			return t.reserveFailed(ctx, err)
		}
		res, err = t.compress(cctx)
	}
	if cctx.Err() != nil {
		return t.halted(ctx)
	}
	if err != nil {
		t.log.Warn("compression failed", zap.Error(err))
		res = engine.Result{Outcome: engine.Aborted, Reason: err.Error()}
	}
	if res.Outcome != engine.Compressed {
		return t.notCompressed(ctx, res)
	}
	killpoint.Here(killpoint.CompressionMade)
	return t.swap(cctx, res)
}

// compress asks the engine, and accounts for it.
func (t *turn) compress(ctx context.Context) (engine.Result, error) {
	res, err := t.a.deps.Engine.Compress(ctx, engine.Input{
		Session: t.session, Messages: t.rows, Window: t.window, Tools: t.tools.Specs(), Trigger: t.pressure.trigger,
		Payer: t.payer(), Now: t.a.deps.Now(),
	})
	t.row.Usage = t.row.Usage.Add(res.Usage)
	return res, err
}

// swap commits the compression and goes on in the child.
func (t *turn) swap(ctx context.Context, res engine.Result) (record.TurnState, error) {
	c := res.Compression
	if err := t.complement(ctx, &c); err != nil {
		return t.broken(ctx, err)
	}
	c.Turn = t.row.ID
	child, err := t.req.Journal.Swap(ctx, c)
	if errors.Is(err, record.ErrConflict) {
		// The lineage moved; the turn goes on uncompressed where it stands.
		t.pressure.futile = true
		return record.TurnPreparing, t.reload(ctx)
	}
	if err != nil {
		return t.broken(ctx, err)
	}
	killpoint.Here(killpoint.CompressionSwap)
	t.log.Info("compressed", zap.String("session", string(child.ID)), zap.Int("folded", res.Folded), zap.Int("before", res.Before), zap.Int("after", res.After))
	t.session, t.row.Session = child, child.ID
	t.stale = true
	return record.TurnPreparing, nil
}

// complement adds what the engine does not know of the child: its id and a system
// prompt with what memory holds now.
func (t *turn) complement(ctx context.Context, c *record.Compression) error {
	prompt, err := t.systemPrompt(ctx)
	if err != nil {
		return err
	}
	c.Parent, c.UpTo = t.session, t.newestSeq("")
	c.Child.ID, c.Child.SystemPrompt, c.Child.Model = record.SessionID(record.NewID()), prompt, t.session.Model
	return nil
}

// reload reads session and history again.
func (t *turn) reload(ctx context.Context) (err error) {
	t.stale = true
	t.session, err = t.req.Journal.Session(ctx)
	t.row.Session = t.session.ID
	return err
}

// notCompressed goes on without: a preflight is a precaution, but a request that
// was refused cannot be sent again as it is (CTX-005, CTX-007, CMP-009).
func (t *turn) notCompressed(ctx context.Context, res engine.Result) (record.TurnState, error) {
	if res.CoolDown(&t.session, t.a.deps.Now()) {
		if err := t.req.Journal.SetSession(ctx, t.session); err != nil {
			return t.broken(ctx, err)
		}
	}
	if t.pressure.trigger == engine.Overflow {
		text := kindTexts[llm.KindOverflow]
		if res.Reason != "" {
			text += " (" + res.Reason + ")"
		}
		return record.TurnFailed, &userError{text: text}
	}
	t.pressure.futile = true
	t.emit(Status{State: record.TurnCompressing, Text: res.Reason, Visible: res.Outcome == engine.Blocked, ContextTokens: t.contextTokens, Window: t.window})
	return record.TurnPreparing, nil
}

// judgeCompression compares the first real prompt of a compressed session with
// the limit, whoever compressed it: two that did not help stop further tries.
func (t *turn) judgeCompression(ctx context.Context, promptTokens int) error {
	first := t.session.PromptTokens == 0
	if promptTokens == 0 {
		return nil
	}
	t.session.PromptTokens, t.session.PromptSeq = promptTokens, t.newestSeq("")
	if !first || t.session.Reason != record.ReasonCompression || t.pressure.limit == 0 {
		return nil
	}
	ineffective := 0
	if promptTokens >= t.pressure.limit {
		ineffective = t.session.Ineffective + 1
	}
	if ineffective == t.session.Ineffective {
		return nil
	}
	t.session.Ineffective = ineffective
	return t.req.Journal.SetSession(ctx, t.session)
}

// uninterrupted derives a context that a new message does not end.
func uninterrupted(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, ErrInterrupted) {
			cancel(cause)
		}
	})
	return inner, func() { stop(); cancel(nil) }
}
