package agentcore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/gateway/killpoint"
	"parley/store/record"
)

const (
	// maxContinuations bounds how often an answer that was cut at the output limit
	// is continued, and a cut tool call asked for again.
	maxContinuations = 3
	// minRoom is how many tokens must be free in the window to continue an answer.
	minRoom = 512
)

const (
	continueNote = "[Your answer was cut off at the output limit. Continue exactly where it stopped, without repeating anything.]"
	cutCallNote  = "Your last tool call was cut off at the output limit and was not run. Send it again in smaller pieces."
	silent       = "*(The model has nothing to say to this.)*"
	cutMark      = "\n\n*(The answer was cut off at the model's output limit.)*"
)

// answer is what has been heard of the answer under way. None of it is history
// before it is complete.
type answer struct {
	fragments []string // pieces of an answer that was cut at the output limit
	cutCalls  int      // tool calls that were cut
	empty     int      // answers that said neither text nor call
	note      string   // a notice for the next call
	acted     bool     // a tool was planned in this turn
	model     llm.ModelID
}

// calling asks the model once and decides what its answer means.
func (t *turn) calling(ctx context.Context) (record.TurnState, error) {
	t.row.Iteration++
	booked, err := t.reserve(ctx)
	if err != nil {
		t.row.Iteration--
		return t.reserveFailed(ctx, err)
	}
	resp, err := t.call(ctx)
	resp.Usage = t.a.deps.Book.Settle(ctx, booked, cmp.Or(resp.Model, t.model), resp.Usage)
	if err != nil {
		return t.callFailed(ctx, err)
	}
	t.heard(resp)
	if err := t.judgeCompression(ctx, resp.Usage.Input); err != nil {
		return t.broken(ctx, err)
	}
	text, cut := resp.Message.Text(), resp.Finish == llm.FinishLength
	switch {
	case t.last != "":
		return t.wound(strings.Join(append(t.answer.fragments, text), "")), nil
	case !t.answer.acted && (t.stale || t.req.Restart.take()):
		return t.again(), nil
	case len(resp.Message.ToolCalls) > 0 && cut:
		return t.cutCall()
	case len(resp.Message.ToolCalls) > 0:
		return t.plan(ctx, resp.Message)
	case cut:
		return t.cutText(text, resp.Usage)
	case strings.TrimSpace(text) == "" && len(t.answer.fragments) == 0:
		return t.heardNothing(resp)
	}
	return t.answered(text, resp)
}

// call streams one answer and shows it as it comes.
func (t *turn) call(ctx context.Context) (llm.Response, error) {
	ctx, stop := t.restartable(ctx)
	defer stop()
	t.emit(Thinking{On: true})
	defer t.emit(Thinking{On: false})
	req := t.request()
	killpoint.Here(killpoint.ModelCalled)
	var c llm.Collector
	first := true
	for ev, err := range t.a.deps.Model.Stream(ctx, req) {
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return llm.Response{}, err
		}
		if first {
			first = false
			killpoint.Here(killpoint.ModelFirstToken)
		}
		c.Add(ev)
		t.show(ev)
	}
	resp, ok := c.Response()
	if ok {
		return resp, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return resp, cause
	}
	return resp, &llm.Error{Kind: llm.KindNetwork, Message: "the answer was cut off", Model: t.model}
}

// restartable derives the context of a model call, which ends with errJoined when
// somebody joins the turn before a tool was planned.
func (t *turn) restartable(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if t.req.Restart == nil || t.answer.acted || t.last != "" {
		return ctx, func() { cancel(nil) }
	}
	t.req.Restart.attach(cancel)
	return ctx, func() {
		t.req.Restart.attach(nil)
		cancel(nil)
		// The signal may come as the answer ends: it is taken all the same.
		t.stale = t.stale || errors.Is(context.Cause(ctx), errJoined)
	}
}

// request builds what the model is asked now.
func (t *turn) request() *llm.Request {
	o := t.historyOptions()
	o.Pictures = t.seen()
	msgs := history.Build(t.rows, o)
	req := &llm.Request{
		Model: t.model, System: t.session.SystemPrompt, Messages: msgs, Tools: t.tools.Specs(), NoTools: t.last != "",
		Ephemeral: t.notices(), CacheKey: string(t.session.ID),
	}
	if t.req.System != "" {
		req.System += "\n\n" + t.req.System
	}
	if cut := strings.Join(t.answer.fragments, ""); cut != "" {
		req.Messages = append(req.Messages, llm.Text(llm.Assistant, strings.TrimRight(cut, " \t\r\n")), llm.Text(llm.User, continueNote))
	}
	if len(t.answer.fragments) > 0 || t.answer.cutCalls > 0 {
		req.MaxOutput = t.facts.MaxOutput
	}
	return req
}

// show turns a stream event into the surfaces.
func (t *turn) show(ev llm.Event) {
	switch ev := ev.(type) {
	case llm.TextDelta:
		t.emit(StreamDelta{Text: ev.Text})
	case llm.ReasoningDelta:
		t.emit(ReasoningDelta{Text: ev.Text})
	case llm.ToolCallDelta:
		if ev.Name != "" {
			t.emit(ToolGenerating{Name: ev.Name})
		}
	case llm.Restarted:
		t.emit(StreamReset{Reason: ev.Reason})
		if s := strings.Join(t.answer.fragments, ""); s != "" {
			t.emit(StreamDelta{Text: s})
		}
		t.emit(Status{State: t.row.State, Text: ev.Reason, Visible: ev.Wait > 0, ContextTokens: t.contextTokens, Window: t.window})
	case llm.ReasoningItem, llm.Finished:
	}
}

// heard books a complete answer.
func (t *turn) heard(resp llm.Response) {
	t.row.Usage = t.row.Usage.Add(resp.Usage)
	t.answer.model, t.answer.note = resp.Model, ""
	if resp.Usage.Input > 0 {
		t.contextTokens = resp.Usage.Input + resp.Usage.Output
		t.end.PromptTokens = resp.Usage.Input
	}
}

// callFailed decides what an error of the model call means.
func (t *turn) callFailed(ctx context.Context, err error) (record.TurnState, error) {
	var failure *llm.Error
	switch {
	case ctx.Err() != nil:
		return t.halted(ctx)
	case errors.Is(err, errJoined):
		return t.again(), nil
	case errors.As(err, &failure) && failure.Kind == llm.KindOverflow:
		return t.overflowed(failure)
	case t.last != "":
		t.log.Warn("no closing summary", zap.Error(err))
		return t.wound(""), nil
	}
	return record.TurnFailed, err
}

// reserveFailed tells a limit from a ledger that cannot be reached.
func (t *turn) reserveFailed(ctx context.Context, err error) (record.TurnState, error) {
	var limit *userError
	if errors.As(err, &limit) && ctx.Err() == nil {
		return record.TurnFailed, err
	}
	return t.broken(ctx, err)
}

// again drops what was heard and asks once more with what was joined.
func (t *turn) again() record.TurnState {
	t.row.Iteration--
	t.answer = answer{acted: t.answer.acted}
	t.stale = true
	t.emit(StreamReset{Reason: "a further message"})
	return record.TurnPreparing
}

// cutCall asks again for a tool call that was cut: incomplete arguments are never
// run, even if they happen to parse (PRV-019).
func (t *turn) cutCall() (record.TurnState, error) {
	t.answer.cutCalls++
	if t.answer.cutCalls > maxContinuations {
		return record.TurnFailed, &userError{text: "The model's tool call did not fit into its output limit, even when asked for smaller pieces."}
	}
	t.answer.note = cutCallNote
	t.emit(StreamReset{Reason: "a tool call was cut off"})
	return record.TurnPreparing, nil
}

// cutText continues an answer that was cut, within bounds.
func (t *turn) cutText(text string, u llm.Usage) (record.TurnState, error) {
	if strings.TrimSpace(text) == "" {
		if len(t.answer.fragments) == 0 {
			return record.TurnFailed, &userError{text: "The model used its whole output limit for thinking and gave no answer. Ask for something smaller, or raise the model's output limit."}
		}
		return t.complete(strings.Join(t.answer.fragments, "") + cutMark), nil
	}
	repeated := slices.Contains(t.answer.fragments, text)
	if !repeated {
		t.answer.fragments = append(t.answer.fragments, text)
	}
	full := t.window > 0 && u.Input > 0 && t.window-u.Input-u.Output < minRoom
	if repeated || full || len(t.answer.fragments) > maxContinuations {
		return t.complete(strings.Join(t.answer.fragments, "") + cutMark), nil
	}
	return record.TurnPreparing, nil
}

// heardNothing asks once more after an answer with neither text nor call; the
// provider has tried again already (PRV-035).
func (t *turn) heardNothing(resp llm.Response) (record.TurnState, error) {
	switch resp.Finish {
	case llm.FinishFilter:
		return record.TurnFailed, &llm.Error{Kind: llm.KindFiltered, Model: resp.Model}
	case llm.FinishSilent:
		t.notice(silent)
		t.end.Text = silent
		return record.TurnDone, nil
	default: // nothing was meant by it
	}
	t.answer.empty++
	if t.answer.empty > 1 {
		return record.TurnFailed, &llm.Error{Kind: llm.KindEmpty, Model: resp.Model}
	}
	return record.TurnPreparing, nil
}

// answered is a complete text.
func (t *turn) answered(text string, resp llm.Response) (record.TurnState, error) {
	full := strings.Join(append(t.answer.fragments, text), "")
	t.end.Messages = []record.Message{{
		Role: llm.Assistant, Content: full, Reasoning: resp.Message.Reasoning, Turn: t.row.ID, Importance: history.Importance(llm.Assistant, full),
	}}
	t.end.Text = full
	return record.TurnDone, nil
}

// complete ends the turn with a text that was put together.
func (t *turn) complete(text string) record.TurnState {
	t.answer.fragments = nil
	next, _ := t.answered(text, llm.Response{})
	return next
}

// wound is the end of a turn that ran out of calls: the model's summary, if there
// is one, and always a line that says why (TRN-004).
func (t *turn) wound(summary string) record.TurnState {
	text := "*" + t.last + "*"
	if s := strings.TrimSpace(summary); s != "" {
		text = s + "\n\n" + text
	}
	t.complete(text)
	t.row.Cause = t.last
	return record.TurnExhausted
}
