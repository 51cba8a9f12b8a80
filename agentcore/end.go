package agentcore

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// finish commits an end. It leads back to Preparing if somebody joined the turn
// after its answer was begun.
func (t *turn) finish(ctx context.Context, s record.TurnState, why error) (record.TurnState, error) {
	wctx, cancel := detached(ctx)
	defer cancel()
	if err := t.closeCalls(wctx, s, why); err != nil {
		return record.TurnSuspended, err
	}
	switch s {
	case record.TurnFailed:
		t.failed(why)
	case record.TurnInterrupted:
		t.interrupted(why)
	case record.TurnDone:
		t.end.Seen = t.newestSeq(llm.User)
	default: // the other ends have said all
	}
	t.end.Turn, t.end.State, t.end.Cause, t.end.Reference = t.row.ID, s, t.row.Cause, t.row.Reference
	t.end.Usage, t.end.Model = t.row.Usage, t.answer.model
	now := t.a.deps.Now()
	for i := range t.end.Messages {
		t.end.Messages[i].CreatedAt = now
	}
	killpoint.Here(killpoint.TurnEnding)
	err := t.req.Journal.End(wctx, t.end)
	if errors.Is(err, record.ErrConflict) && t.joinedSince(wctx, t.end.Seen) {
		t.end = record.TurnEnd{}
		return t.again(), nil
	}
	if err != nil {
		return record.TurnSuspended, err
	}
	if t.a.deps.Recall != nil {
		t.a.deps.Recall.Saved(t.payer(), t.session.ID)
	}
	t.row.EndedAt = now
	t.rows = append(t.rows, t.end.Messages...)
	return s, nil
}

// joinedSince tells a message that joined from the other reasons for a conflict.
func (t *turn) joinedSince(ctx context.Context, seen int64) bool {
	rows, err := t.req.Journal.History(ctx)
	return err == nil && seen > 0 && slices.ContainsFunc(rows, func(m record.Message) bool { return m.Role == llm.User && m.Seq > seen })
}

// failed makes the message that people see of an error. Only errors that carry
// words for people speak; others become a reference that is in the log.
func (t *turn) failed(why error) {
	text, known := userText(why)
	if !known {
		t.row.Reference = reference()
		text = "An internal error ended this turn (reference " + t.row.Reference + "). What you wrote is kept."
	}
	t.row.Cause = text
	t.log.Error("turn failed", zap.Error(why), zap.String("reference", t.row.Reference))
	t.notice(text)
	t.end.Text = text
}

// interrupted leaves a mark for the model, so that it does not take up again what
// was stopped. Nothing of the partial answer is kept.
func (t *turn) interrupted(why error) {
	text := "[The user stopped this turn here. What was asked for before is not to be done unless they ask again.]"
	t.row.Cause = "stopped by the user"
	if errors.Is(why, ErrInterrupted) {
		text = "[A new message interrupted this turn here, before the answer was complete.]"
		t.row.Cause = "interrupted by a new message"
	}
	t.notice(text)
	t.end.Text = ""
}

func (t *turn) notice(text string) {
	t.end.Messages = []record.Message{{Role: llm.Assistant, Kind: record.KindNotice, Content: text, Turn: t.row.ID, Importance: 0.1}}
}

// closeCalls gives every open call a result (STP-001).
func (t *turn) closeCalls(ctx context.Context, s record.TurnState, why error) error {
	for _, r := range t.open() {
		text := "Not run: the turn ended before."
		switch {
		case s == record.TurnInterrupted && r.State == record.ToolStarted:
			text = "Interrupted by the user while it was running; it may have had an effect."
		case s == record.TurnInterrupted:
			text = "Not run: interrupted by the user."
		case r.State == record.ToolStarted:
			text = "The turn ended while this was running; it may have had an effect."
		}
		if errors.Is(why, ErrInterrupted) {
			text += " They wrote a new message."
		}
		if err := t.finishRun(ctx, r, outcome{text: text, word: "interrupted"}); err != nil {
			return err
		}
	}
	return nil
}
