package agentcore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/engine"
	"parley/agentcore/prompt"
	"parley/agentcore/tool"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// abandonAfter is how long a turn that was cut off waits for its tools to return
// (STP-007).
const abandonAfter = 800 * time.Millisecond

// toolError is a tool's Go error, which ends the turn.
type toolError struct {
	name string
	err  error
}

func (e *toolError) Error() string { return fmt.Sprintf("agentcore: tool %s: %v", e.name, e.err) }
func (e *toolError) Unwrap() error { return e.err }

// batch is the jobs that run now. Its channel has room for all of them, so that a
// tool that was left behind can end.
type batch struct {
	jobs    []job
	cancel  []context.CancelCauseFunc // nil for jobs that do not run
	returns chan returned
	running int
	// finishing counts the tools that an interruption lets finish.
	finishing int
	failed    error
}

type returned struct {
	index   int
	outcome outcome
}

// perform runs the jobs and commits each result as it comes. An error means that
// the turn cannot go on; calls without a result are then still open.
func (t *turn) perform(ctx context.Context, jobs []job) error {
	if t.events == nil { // most turns run no tool
		t.events = make(chan Event, 64)
	}
	b := &batch{jobs: jobs, cancel: make([]context.CancelCauseFunc, len(jobs)), returns: make(chan returned, len(jobs))}
	defer b.cancelAll(nil)
	for i := range jobs {
		if err := t.begin(ctx, b, i); err != nil {
			b.failed = err
			b.cancelAll(err)
			break
		}
	}
	return t.attend(ctx, b)
}

// begin refuses a job or starts it, the start being committed first.
func (t *turn) begin(ctx context.Context, b *batch, i int) error {
	j := &b.jobs[i]
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if j.refused != nil {
		wctx, cancel := detached(ctx)
		defer cancel()
		return t.finishRun(wctx, j.run, *j.refused)
	}
	t.emit(ToolStarted{Call: j.call, Summary: Summary(j.call), ReadOnly: j.spec.ReadOnly})
	if j.run.State == record.ToolPending {
		j.run.State, j.run.StartedAt = record.ToolStarted, t.a.deps.Now()
		if err := t.req.Journal.Start(ctx, *j.run); err != nil {
			return err
		}
	}
	killpoint.Here(killpoint.ToolStarted)
	tctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	b.cancel[i] = cancel
	b.running++
	work, call := *j, t.toolCall(j)
	limit := min(resultLimit, batchLimit/len(b.jobs))
	t.a.running.Go(func() {
		b.returns <- returned{index: i, outcome: t.a.runTool(tctx, work, call, limit)}
	})
	return nil
}

// attend waits for the running jobs, emits what they report, and cuts them off
// when the turn's context ends.
func (t *turn) attend(ctx context.Context, b *batch) error {
	ended := ctx.Done()
	var abandon <-chan time.Time
	for b.running > 0 {
		if abandon == nil && b.finishing == 0 && (ended == nil || b.failed != nil) {
			timer := time.NewTimer(abandonAfter)
			defer timer.Stop()
			abandon = timer.C
		}
		select {
		case ev := <-t.events:
			t.emit(ev)
		case r := <-b.returns:
			t.returned(ctx, b, r)
		case <-ended:
			ended = nil
			b.interrupt(context.Cause(ctx))
		case <-abandon:
			t.log.Warn("tools did not return in time and were left behind", zap.Int("tools", b.running))
			return errors.Join(b.failed, context.Cause(ctx))
		}
	}
	if b.failed == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.failed
}

// returned commits what a tool brought back. What a tool that was cut off says is
// not its result: the end of the turn says what became of the call.
func (t *turn) returned(ctx context.Context, b *batch, r returned) {
	b.running--
	j := b.jobs[r.index]
	wasCut := b.cancel[r.index] == nil
	b.drop(r.index)
	for len(t.events) > 0 {
		t.emit(<-t.events)
	}
	switch {
	case r.outcome.err != nil && b.failed == nil:
		b.failed = &toolError{name: j.spec.Name, err: r.outcome.err}
		b.cancelAll(b.failed)
	case r.outcome.err != nil || wasCut:
	default:
		killpoint.Here(killpoint.ToolRan)
		wctx, cancel := detached(ctx)
		defer cancel()
		if err := t.finishRun(wctx, j.run, r.outcome); err != nil {
			b.failed = errors.Join(b.failed, err)
			b.cancelAll(err)
		}
	}
}

// interrupt cuts the jobs off; a new message lets those finish that change
// something.
func (b *batch) interrupt(cause error) {
	for i, cancel := range b.cancel {
		if cancel == nil {
			continue
		}
		if errors.Is(cause, ErrInterrupted) && !b.jobs[i].spec.ReadOnly {
			b.finishing++
			continue
		}
		cancel(cause)
		b.cancel[i] = nil
	}
}

// drop forgets a job that has returned.
func (b *batch) drop(i int) {
	if b.cancel[i] == nil {
		return
	}
	b.cancel[i](nil)
	b.cancel[i] = nil
	b.finishing = max(b.finishing-1, 0)
}

func (b *batch) cancelAll(cause error) {
	for i, cancel := range b.cancel {
		if cancel != nil {
			cancel(cause)
			b.cancel[i] = nil
		}
	}
	b.finishing = 0
}

// toolCall is what the tool gets to know of the conversation.
func (t *turn) toolCall(j *job) tool.Call {
	call := j.call
	return tool.Call{
		ID: call.ID, Arguments: []byte(call.Arguments), Conversation: t.row.Conversation, Key: t.req.Conversation.Key, Kind: t.req.Kind,
		Session: t.session.ID, Root: t.session.Root, Turn: t.row.ID, Person: t.row.Person, Role: t.req.Role, Trust: t.row.Trust,
		Progress: func(line string) { t.report(ToolProgress{Call: call, Line: clipLine(t.a.mask(line), 200)}) },
	}
}

// report hands an event from a tool's goroutine to the turn's. It never blocks:
// what nobody takes is dropped.
func (t *turn) report(ev Event) {
	select {
	case t.events <- ev:
	default:
	}
}

// runTool is the door of a tool: a panic is a result.
func (a *Agent) runTool(ctx context.Context, j job, c tool.Call, limit int) (o outcome) {
	begun := time.Now()
	defer func() {
		if r := recover(); r != nil {
			ref := reference()
			a.deps.Log.Error("tool panicked", zap.String("name", j.spec.Name), zap.String("reference", ref), zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			o = *failure("The tool failed with an internal error (reference %s). Whether it took effect is not known.", ref)
		}
		o.took = time.Since(begun)
	}()
	res, err := j.tool.Run(ctx, c)
	if err != nil {
		return outcome{err: err}
	}
	if !j.spec.Interactive { // what a person says is theirs to say
		res.Text, res.Untrusted = a.mask(res.Text), a.mask(res.Untrusted)
	}
	if a.deps.Policy.Hook != nil {
		res = a.deps.Policy.Hook.After(ctx, j.spec.Name, c, res)
	}
	res.Text = j.note + res.Text
	o = outcome{text: resultText(res, limit), word: res.Outcome}
	if o.word == "" {
		o.word = "ok"
		if res.Failed {
			o.word = "error"
		}
	}
	if strings.TrimSpace(o.text) == "" {
		o.text = "(no output)"
	}
	return o
}

// mask takes secrets out of what a tool brought back: the one point that every
// result passes before the model, the history, the log and the chat see it (SEC-002,
// SEC-003).
func (a *Agent) mask(text string) string { return engine.Redact(a.deps.Redact(text)) }

// resultText is what the model reads: the tool's words, then what others wrote, framed.
// Each is cut before the frame is put around it, so that the frame is always whole.
func resultText(res tool.Result, limit int) string {
	if strings.TrimSpace(res.Untrusted) == "" {
		return tool.Clip(res.Text, limit)
	}
	text := tool.Clip(res.Text, limit/4)
	if text != "" {
		text += "\n"
	}
	return text + prompt.Frame(tool.Clip(res.Untrusted, limit-len(text)-prompt.FrameLen))
}

// clipLine makes one bounded line of a text.
func clipLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
