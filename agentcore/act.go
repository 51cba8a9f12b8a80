package agentcore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway/killpoint"
	"parley/store/record"
)

const (
	// maxParallel bounds the tools of a batch that run beside each other.
	maxParallel = 8
	// resultLimit bounds one result and batchLimit all results of a batch, in bytes
	// (TOL-003).
	resultLimit = 50_000
	batchLimit  = 200_000
	// reasonLimit bounds the reason of a refusal, in characters.
	reasonLimit = 500
)

// job is one call of a batch on its way: what it is, and why it will not run.
type job struct {
	run  *record.ToolRun
	call llm.ToolCall
	tool tool.Tool
	spec tool.Spec
	// refused is the result of a call that must not run; ask is why a person has to
	// consent first.
	refused *outcome
	ask     string
	// pattern is what a lasting consent would cover; empty: this call only.
	pattern string
	// note tells the model what was changed about the call.
	note string
}

// outcome is how a call ended.
type outcome struct {
	text string
	word string // ok, error, denied, interrupted, unknown
	// by and why tell people of a call that was refused.
	by   record.Refuser
	why  string
	err  error // ends the turn
	took time.Duration
}

// plan commits the assistant's message and its calls before any of them runs.
func (t *turn) plan(ctx context.Context, m llm.Message) (record.TurnState, error) {
	text := strings.Join(append(t.answer.fragments, m.Text()), "")
	calls := t.distinct(m.ToolCalls)
	row := record.Message{
		Role: llm.Assistant, Content: text, ToolCalls: calls, Reasoning: m.Reasoning, Turn: t.row.ID,
		Importance: history.Importance(llm.Assistant, text), CreatedAt: t.a.deps.Now(),
	}
	runs := make([]record.ToolRun, len(calls))
	for i, c := range calls {
		runs[i] = record.ToolRun{
			Turn: t.row.ID, Iteration: t.row.Iteration, Index: i, CallID: c.ID, Tool: c.Name,
			Arguments: json.RawMessage(c.Arguments), State: record.ToolPending,
		}
	}
	row, runs, err := t.req.Journal.Plan(ctx, row, runs)
	if err != nil {
		return t.broken(ctx, err)
	}
	killpoint.Here(killpoint.ToolsPlanned)
	t.rows, t.runs = append(t.rows, row), runs
	t.answer = answer{acted: true, model: t.answer.model}
	if err := t.save(ctx, record.TurnActing); err != nil {
		return t.broken(ctx, err)
	}
	t.emit(Step{Iteration: t.row.Iteration, Text: text, Calls: calls})
	return record.TurnActing, nil
}

// distinct makes ids that are unique in the session, since a question or a result
// belongs to a call by its id alone, and names that can be sent back (PRV-030,
// PRV-032).
func (t *turn) distinct(calls []llm.ToolCall) []llm.ToolCall {
	seen := map[string]bool{"": true}
	for _, m := range t.rows {
		for _, c := range m.ToolCalls {
			seen[c.ID] = true
		}
	}
	calls = slices.Clone(calls)
	for i := range calls {
		for n := 2; seen[calls[i].ID]; n++ {
			base := strings.TrimSuffix(calls[i].ID, fmt.Sprintf("_%d", n-1))
			if base == "" {
				base = "call"
			}
			calls[i].ID = fmt.Sprintf("%s_%d", base, n)
		}
		seen[calls[i].ID] = true
		calls[i].Name = history.ToolName(calls[i].Name)
	}
	return calls
}

// acting works off the open calls: all at once where each of them allows it,
// otherwise one by one in the order of the calls.
func (t *turn) acting(ctx context.Context) (record.TurnState, error) {
	for {
		if ctx.Err() != nil {
			return t.halted(ctx)
		}
		if err := t.askHooks(ctx); err != nil {
			return t.halted(ctx)
		}
		jobs := t.jobs()
		if len(jobs) == 0 {
			return t.acted(), nil
		}
		if !concurrent(jobs) {
			jobs = jobs[:1]
		}
		jobs = jobs[:min(len(jobs), maxParallel)]
		if jobs[0].ask != "" {
			return record.TurnApproving, nil
		}
		if err := t.perform(ctx, jobs); err != nil {
			var own *toolError
			away := errors.Is(err, record.ErrUnavailable) || errors.Is(err, record.ErrFenced)
			if ctx.Err() == nil && errors.As(err, &own) && !away {
				return record.TurnFailed, err
			}
			return t.broken(ctx, err)
		}
	}
}

// acted ends a round of calls.
func (t *turn) acted() record.TurnState {
	why, waited := "", false
	for _, r := range t.runs {
		if tl, ok := t.tools.Get(r.Tool); ok && tl.Spec().Waits {
			waited = true
			continue
		}
		if s := t.stall.ran(r.Tool, string(r.Arguments), t.resultOf(r)); s != "" {
			why = s
		}
	}
	if s := t.stall.spoke(t.textBeside()); s != "" && !waited {
		why = s
	}
	if t.last == "" {
		t.last = why
	}
	t.runs = nil
	return record.TurnPreparing
}

func (t *turn) resultOf(r record.ToolRun) string {
	for _, m := range slices.Backward(t.rows) {
		if m.Role == llm.ToolRole && m.ToolCallID == r.CallID {
			return m.Content
		}
	}
	return ""
}

// textBeside is what the newest assistant message said beside its calls.
func (t *turn) textBeside() string {
	for _, m := range slices.Backward(t.rows) {
		if m.Role == llm.Assistant {
			return m.Content
		}
	}
	return ""
}

// jobs makes the open calls ready.
func (t *turn) jobs() []job {
	open := t.open()
	jobs := make([]job, 0, len(open))
	for _, r := range open {
		jobs = append(jobs, t.job(r))
	}
	return jobs
}

// job resolves a call and puts it before the policy, the one point that every
// call passes.
func (t *turn) job(r *record.ToolRun) job {
	j := job{run: r, call: llm.ToolCall{ID: r.CallID, Name: r.Tool, Arguments: string(r.Arguments)}}
	var ok bool
	j.tool, ok = t.resolve(r.Tool)
	if r.State == record.ToolStarted && (!ok || !j.tool.Spec().Resumes) {
		j.refused = &outcome{
			text: "The process ended while this was running. Whether it took effect is not known: check before you do it again.", word: "unknown",
		}
		return j
	}
	if !ok {
		j.refused = failure("There is no tool %q. The tools are: %s.", r.Tool, strings.Join(t.tools.Names(), ", "))
		return j
	}
	j.spec = j.tool.Spec()
	if args, ok := history.Canonical(j.call.Arguments); args == "{}" {
		j.call.Arguments = args
	} else if !ok {
		j.refused = failure("The arguments of %s are not a JSON object, so it was not run. Send them again, completely and correctly escaped.", r.Tool)
		return j
	}
	if t.changed(&j) {
		return j
	}
	ruling := t.a.deps.Policy.Decide(tool.Subject{Judgement: t.judge(&j), Trust: t.row.Trust, Role: t.req.Role})
	switch ruling.Verdict {
	case tool.Deny:
		j.refused = &outcome{
			text: "Not allowed: " + ruling.Reason + ". Do not try to reach the same end otherwise.", word: "denied",
			by: record.RefusedByPolicy, why: ruling.Reason,
		}
	case tool.Ask:
		t.consent(&j, ruling)
	case tool.Allow:
	}
	return j
}

// judge asks the tool what this call does. One that panics over it is not to be
// trusted with it.
func (t *turn) judge(j *job) (found tool.Judgement) {
	defer func() {
		if r := recover(); r != nil {
			t.log.Error("tool panicked judging a call", zap.String("name", j.spec.Name), zap.Any("panic", r), zap.Stack("stack"))
			found = tool.Judgement{Needs: j.spec.Needs, Danger: tool.Forbidden, Reason: "the tool cannot tell what this call does"}
		}
	}()
	return tool.Judge(j.tool, t.toolCall(j))
}

// resolve finds a tool. Those that work on the turn itself are bound to it; they
// never run beside others, and the turn waits for them.
func (t *turn) resolve(name string) (tool.Tool, bool) {
	tl, ok := t.tools.Get(name)
	if !ok {
		return nil, false
	}
	var err error
	switch name {
	case clarifyName:
		tl, err = clarify(t)
	case sendFileName:
		tl, err = sendFile(t)
	case delegateName:
		tl, err = t.a.delegate(t)
	case searchName:
		tl, err = t.a.sessionSearch(t.live())
	case scheduleName:
		tl, err = t.a.scheduleTool(t)
	case moreIterationsName:
		tl, err = moreIterations(t)
	}
	return tl, err == nil
}

// concurrent says whether the calls may run beside each other.
func concurrent(jobs []job) bool {
	for _, j := range jobs {
		if j.ask != "" || j.refused == nil && (!j.spec.Parallel || j.spec.Interactive) {
			return false
		}
	}
	return len(jobs) > 1
}

func failure(format string, args ...any) *outcome {
	return &outcome{text: fmt.Sprintf(format, args...), word: "error"}
}

// finishRun commits a result and adds it to the rows at its place. ctx is one
// that outlives an interruption: what happened is written down.
func (t *turn) finishRun(ctx context.Context, r *record.ToolRun, o outcome) error {
	now := t.a.deps.Now()
	result := record.Message{
		Seq: r.ResultSeq, Role: llm.ToolRole, Content: o.text, ToolCallID: r.CallID, ToolName: r.Tool, Turn: t.row.ID,
		Importance: history.Importance(llm.ToolRole, o.text), CreatedAt: now,
	}
	started := r.State == record.ToolStarted
	r.State, r.Outcome, r.EndedAt = record.ToolDone, o.word, now
	r.RefusedBy, r.Reason = o.by, clipLine(t.a.mask(o.why), reasonLimit)
	if err := t.req.Journal.Finish(ctx, *r, result); err != nil {
		return err
	}
	killpoint.Here(killpoint.ToolFinished)
	at, _ := slices.BinarySearchFunc(t.rows, r.ResultSeq, func(m record.Message, seq int64) int { return int(m.Seq - seq) })
	t.rows = slices.Insert(t.rows, at, result)
	call := llm.ToolCall{ID: r.CallID, Name: r.Tool, Arguments: string(r.Arguments)}
	if !started {
		t.emit(ToolStarted{Call: call, Summary: Summary(call)})
	}
	t.emit(ToolFinished{Call: call, Outcome: o.word, Result: o.text, Took: o.took})
	t.log.Info("tool", zap.String("name", r.Tool), zap.String("call", r.CallID), zap.String("outcome", o.word), zap.Duration("took", o.took))
	return nil
}
