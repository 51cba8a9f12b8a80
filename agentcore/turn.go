package agentcore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/engine"
	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/tool"
	"parley/gateway/chat"
	"parley/store/record"
)

// writeTimeout bounds a write that is made although the turn's context ended.
const writeTimeout = 5 * time.Second

// turn is one run of the state machine. Only its own goroutine touches it.
type turn struct {
	a       *Agent
	req     Request
	row     record.Turn
	log     *zap.Logger
	resumed bool
	loaded  bool
	stale   bool // somebody joined: the rows are to be read again
	// attached is the newest message for which skills and memories were looked up.
	attached int64

	session record.Session
	rows    []record.Message
	runs    []record.ToolRun // the calls of the newest assistant message
	decided decisions
	// pictures are those that were read, by path; nil for what cannot be shown.
	pictures map[string]*llm.Image
	tools    *tool.Set

	model                 llm.ModelID
	facts                 llm.Facts
	window, contextTokens int
	answer                answer
	pressure              pressure
	stall                 stall
	end                   record.TurnEnd
	events                chan Event // from the goroutines of the running tools
	suspended             error
	// last says why the next model call is the last one, without tools; "" before.
	last string
}

// decisions are what others said of the turn's calls, by the calls' ids: people, and
// the owner's hooks.
type decisions struct {
	people map[string]record.Approval
	hooks  map[string]tool.Change
}

// turn makes the run of a request, with what a plain Go call leaves out.
func (a *Agent) turn(req Request) (*turn, error) {
	if req.Journal == nil {
		m := NewMemoryJournal(req.Conversation, req.History...)
		req.Conversation, req.Journal = m.Conversation(), m
	} else if len(req.History) > 0 {
		return nil, errors.New("agentcore: History is only for a request without a Journal")
	}
	if req.Asker == nil {
		req.Asker = a.deps.Asker
	}
	req.Kind = cmp.Or(req.Kind, req.Conversation.Kind, chat.Direct)
	t := &turn{a: a, req: req, row: req.Turn, decided: decisions{people: map[string]record.Approval{}, hooks: map[string]tool.Change{}}}
	t.row.ID = cmp.Or(t.row.ID, req.TaskID, record.TurnID(record.NewID()))
	t.row.Conversation = cmp.Or(t.row.Conversation, req.Conversation.ID)
	t.row.Person = cmp.Or(t.row.Person, req.Conversation.Key.Participant)
	t.row.Trust = cmp.Or(t.row.Trust, record.TrustUser)
	if t.row.Budget.Initial == 0 {
		t.row.Budget = a.cfg.Budget(t.row.Trust)
	}
	t.tools = a.tools
	if t.row.Budget.Cap > t.row.Budget.Initial {
		t.tools = a.growing
	}
	t.tools = a.offered(t.tools)
	t.setModel(cmp.Or(req.Conversation.Model, a.deps.DefaultModel))
	t.log = a.deps.Log.With(zap.String("turn", string(t.row.ID)))
	return t, nil
}

func (t *turn) setModel(m llm.ModelID) {
	t.model, t.facts = m, t.a.deps.Facts(m)
	t.window = t.facts.ContextWindow
}

// preparing brings the rows up to date, takes what people said meanwhile, and
// decides what comes next.
func (t *turn) preparing(ctx context.Context) (record.TurnState, error) {
	if ctx.Err() != nil {
		return t.halted(ctx)
	}
	if err := t.gather(ctx); err != nil {
		return t.broken(ctx, err)
	}
	if len(t.open()) > 0 {
		return record.TurnActing, nil
	}
	if t.last == "" && t.row.Iteration >= t.limit() {
		t.last = t.exhausted()
	}
	d := t.a.deps.Engine.Decide(engine.State{
		Session: t.session, Messages: t.rows, Window: t.window, Tools: t.tools.Specs(), Trigger: engine.Preflight, Now: t.a.deps.Now(),
	})
	t.contextTokens, t.pressure.limit = d.Tokens, d.Limit
	if d.Compress && !t.pressure.futile {
		t.pressure.trigger = engine.Preflight
		return record.TurnCompressing, nil
	}
	t.attach(ctx)
	if ctx.Err() != nil {
		return t.halted(ctx)
	}
	return record.TurnCalling, nil
}

// gather loads the turn at first, and afterwards again if somebody joined it.
func (t *turn) gather(ctx context.Context) error {
	if !t.loaded {
		if err := t.load(ctx); err != nil {
			return err
		}
		t.loaded = true
	}
	t.stale = t.req.Restart.take() || t.stale
	if t.req.Steering != nil {
		rows, err := t.req.Steering.Take(ctx)
		if err != nil {
			return err
		}
		t.stale = t.stale || len(rows) > 0
	}
	if !t.stale {
		return nil
	}
	rows, err := t.req.Journal.History(ctx)
	if err != nil {
		return err
	}
	t.rows, t.stale = rows, false
	return nil
}

// load reads session, history and runs, stores a plain request's message, and
// makes the system prompt of a new session.
func (t *turn) load(ctx context.Context) (err error) {
	j := t.req.Journal
	if t.session, err = j.Session(ctx); err != nil {
		return err
	}
	t.row.Session = t.session.ID
	if t.req.Message != "" {
		m := record.Message{
			Role: llm.User, Content: t.req.Message, From: t.row.Person, Turn: t.row.ID, CreatedAt: t.a.deps.Now(),
			Importance: history.Importance(llm.User, t.req.Message),
		}
		if _, err := j.Append(ctx, m); err != nil {
			return err
		}
		t.req.Message = "" // stored now, should loading be tried again
	}
	if t.rows, err = j.History(ctx); err != nil {
		return err
	}
	if t.resumed {
		if err := t.loadRuns(ctx); err != nil {
			return err
		}
		// It runs again: should its process die now, that is a crash of this turn.
		if err := t.save(ctx, record.TurnPreparing); err != nil {
			return err
		}
	}
	if t.session.SystemPrompt == "" {
		if t.session.SystemPrompt, err = t.systemPrompt(ctx); err != nil {
			return err
		}
		if err := j.SetSession(ctx, t.session); err != nil {
			return err
		}
	}
	t.route()
	return ctx.Err()
}

// loadRuns finds the calls that were open when the turn was left.
func (t *turn) loadRuns(ctx context.Context) error {
	runs, err := t.req.Journal.Runs(ctx)
	if err != nil {
		return err
	}
	for _, r := range runs {
		t.row.Iteration = max(t.row.Iteration, r.Iteration)
		t.answer.acted = true
	}
	for _, r := range runs {
		if r.Iteration == t.row.Iteration {
			t.runs = append(t.runs, r)
		}
	}
	return nil
}

func (t *turn) historyOptions() history.Options {
	return history.Options{Shared: t.shared(), Location: t.a.deps.Location}
}

// shared says that several people write in the conversation.
func (t *turn) shared() bool {
	return t.req.depth == 0 && t.req.Kind == chat.Group && t.req.Conversation.Key.Participant == ""
}

// place decides whose memory the turn may use.
func (t *turn) place() memory.Place {
	return memory.Place{Conversation: t.row.Conversation, Kind: t.req.Kind, Person: t.row.Person}
}

// open lists the calls that have no result yet, in order.
func (t *turn) open() []*record.ToolRun {
	var open []*record.ToolRun
	for i := range t.runs {
		if t.runs[i].State != record.ToolDone {
			open = append(open, &t.runs[i])
		}
	}
	return open
}

// newestSeq is the newest row of a role that the turn knows; any role if "".
func (t *turn) newestSeq(r llm.Role) int64 {
	for _, m := range slices.Backward(t.rows) {
		if r == "" || m.Role == r {
			return m.Seq
		}
	}
	return 0
}

// save stores the turn's row; row.State is what it will be.
func (t *turn) save(ctx context.Context, s record.TurnState) error {
	row := t.row
	row.State = s
	return t.req.Journal.SetTurn(ctx, row)
}

func (t *turn) emit(ev Event) {
	if t.req.Sink != nil {
		t.req.Sink.Emit(ev)
	}
}

// detached is for writes of what has happened, whatever became of ctx.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

func (t *turn) result() *Result {
	return &Result{
		Text: t.end.Text, Messages: t.rows, Usage: t.row.Usage, Iterations: t.row.Iteration, State: t.row.State, Cause: t.row.Cause, Err: t.suspended,
		Session: t.session.ID, ContextTokens: t.contextTokens, Window: t.window,
	}
}
