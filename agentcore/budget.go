package agentcore

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"parley/agentcore/prompt"
	"parley/agentcore/tool"
	"parley/store/record"
)

// lastCallNote goes with the one call without tools that ends a turn early.
const lastCallNote = "[This is the last model call of this turn; tools are off. Reason: %s Sum up for the user in their language what was done, what was found out and what remains.]"

// limit is how many model calls the turn may make now.
func (t *turn) limit() int { return t.row.Budget.Initial + t.row.Budget.Granted }

// exhausted says that the budget is used up, for people.
func (t *turn) exhausted() string {
	return fmt.Sprintf("Stopped: this turn's limit of %d model calls is reached.", t.limit())
}

// grow extends the budget by a step up to the cap; granted is 0 at the cap.
func grow(b record.Budget) (_ record.Budget, granted int) {
	granted = max(min(b.Step, b.Cap-b.Initial-b.Granted), 0)
	b.Granted += granted
	return b, granted
}

// notices are for the next call only and never stored: that it is the last one,
// how many are left, how full the context is.
func (t *turn) notices() string {
	var lines []string
	if t.answer.note != "" {
		lines = append(lines, t.answer.note)
	}
	limit := t.limit()
	switch {
	case t.last != "":
		lines = append(lines, fmt.Sprintf(lastCallNote, t.last))
	case limit > 1 && limit-t.row.Iteration <= limit/10:
		lines = append(lines, prompt.BudgetWarning(t.row.Iteration, limit))
	}
	if p := t.pressure; p.limit > 0 && t.contextTokens*100 >= p.limit*85 && t.last == "" {
		lines = append(lines, prompt.ContextPressure(t.contextTokens, p.limit))
	}
	return strings.Join(lines, "\n")
}

const moreIterationsName = "request_more_iterations"

type moreIterationsInput struct {
	Reason string `json:"reason,omitempty" jsonschema:"what is left to do and why the calls so far were not enough"`
}

// moreIterations is the tool by which the model asks for a larger budget. Without
// a turn it only declares itself.
func moreIterations(t *turn) (tool.Tool, error) {
	spec := tool.Spec{}
	spec.Name = moreIterationsName
	spec.Description = "Ask for more model calls for this turn. Use it only when the work is progressing and cannot be finished with the calls that are left; " +
		"each use grants a few more until a fixed cap. When the cap is reached, finish with what you have."
	return tool.New(spec, func(ctx context.Context, _ tool.Call, in moreIterationsInput) (tool.Result, error) {
		if t == nil {
			return tool.Failure("This works only inside a turn."), nil
		}
		return t.grantMore(ctx, in.Reason)
	})
}

// grantMore is durable before the model hears of it.
func (t *turn) grantMore(ctx context.Context, reason string) (tool.Result, error) {
	b, granted := grow(t.row.Budget)
	if granted == 0 {
		return tool.Failure("The cap of %d model calls is reached; no more are granted. Finish with what you have.", b.Cap), nil
	}
	row := t.row
	row.Budget, row.State = b, record.TurnActing
	if err := t.req.Journal.SetTurn(ctx, row); err != nil {
		return tool.Result{}, err
	}
	t.row.Budget = b
	t.log.Info("budget extended", zap.Int("limit", t.limit()), zap.String("reason", clipLine(reason, 200)))
	return tool.Result{Text: fmt.Sprintf("Granted %d more model calls: %d in all, %d used. The cap is %d.", granted, t.limit(), t.row.Iteration, b.Cap)}, nil
}
