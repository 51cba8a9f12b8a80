package agentcore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/store/record"
)

// usualOutput is the size of an answer, in tokens, that is reserved for: the
// model's limit would block people over answers that are never that long.
const usualOutput = 2000

// payer is on whose account the turn's calls are.
func (t *turn) payer() record.Payer {
	return record.Payer{Conversation: t.row.Conversation, Person: t.row.Person}
}

// reserve books what the next call will probably cost. At a limit an admin is
// asked to allow more; without that the turn ends with a word about it.
func (t *turn) reserve(ctx context.Context) (spending.Reservation, error) {
	for {
		r, err := t.a.deps.Book.Reserve(ctx, t.payer(), t.model, llm.Usage{Input: t.contextTokens, Output: usualOutput})
		var over *record.SpendingError
		if !errors.As(err, &over) {
			return r, err
		}
		if err := t.askForMore(ctx, over, r); err != nil {
			return spending.Reservation{}, err
		}
	}
}

// askForMore asks an admin, once for each time that a limit is reached: what was
// answered before a restart is not asked again.
func (t *turn) askForMore(ctx context.Context, over *record.SpendingError, r spending.Reservation) error {
	more := max(over.Limit, r.Amount)
	cur := t.a.deps.Book.Currency()
	reached := "T" + over.Words(cur)[1:] + "."
	t.emit(Status{State: t.row.State, Text: "the daily limit is reached; an admin is asked", Visible: true, ContextTokens: t.contextTokens, Window: t.window})
	now := t.a.deps.Now()
	a, err := t.req.Asker.Ask(ctx, record.Approval{
		ID: record.ApprovalID(record.NewID()), Conversation: t.row.Conversation, Turn: t.row.ID, Kind: record.AskSpending,
		CallID:   fmt.Sprintf("spending/%s/%s/%.4f", r.Day.Format(time.DateOnly), over.Scope, over.Allowed),
		Question: fmt.Sprintf("💸 **%s** Allow %.2f %s more today? Only an admin can.", reached, more, cur),
		State:    record.ApprovalOpen, Asked: t.row.Person, CreatedAt: now, ExpiresAt: now.Add(t.a.deps.ApprovalTimeout),
	})
	if err != nil {
		return err
	}
	if a.State != record.ApprovalApproved {
		return &userError{text: reached + " It begins anew at midnight UTC; an admin can allow more before."}
	}
	return t.a.deps.Book.AllowMore(ctx, r, over, more)
}
