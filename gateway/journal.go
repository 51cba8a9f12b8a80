package gateway

import (
	"context"
	"errors"
	"sync"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// journal implements agentcore.Journal for one turn: the store with the
// conversation's fence. The end of the turn carries the parts of the answer.
type journal struct {
	store  Store
	fence  record.Fence
	live   *live
	post   *poster
	limits chat.Limits

	mu   sync.Mutex
	turn record.Turn // its session moves with a compression
	// opening is what the start of the turn has read, until the turn has taken it.
	opening *record.Started
}

var _ agentcore.Journal = (*journal)(nil)

func (j *journal) session() record.SessionID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.turn.Session
}

func (j *journal) Session(ctx context.Context) (record.Session, error) {
	if o := j.opened(false); o != nil {
		return o.Session, nil
	}
	return j.store.Session(ctx, j.session())
}

func (j *journal) History(ctx context.Context) ([]record.Message, error) {
	if o := j.opened(true); o != nil {
		return o.History, nil
	}
	return j.store.History(ctx, j.session())
}

// opened returns what the start of the turn has read; taken says that it is not to be
// trusted a second time.
func (j *journal) opened(taken bool) *record.Started {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.opening
	if taken {
		j.opening = nil
	}
	return o
}

func (j *journal) Append(ctx context.Context, msgs ...record.Message) ([]record.Message, error) {
	for i := range msgs {
		msgs[i].Turn = j.turn.ID
	}
	return j.store.AppendMessages(ctx, j.fence, j.session(), msgs)
}

func (j *journal) SetSession(ctx context.Context, s record.Session) error {
	return j.store.SetSession(ctx, j.fence, s)
}

func (j *journal) Freeze(ctx context.Context, seq int64, wire string) error {
	return j.store.SetWire(ctx, j.fence, j.session(), seq, wire)
}

func (j *journal) Swap(ctx context.Context, c record.Compression) (record.Session, error) {
	c.Turn = j.turn.ID
	s, err := j.store.Compress(ctx, j.fence, c)
	if err == nil {
		j.mu.Lock()
		j.turn.Session = s.ID
		j.mu.Unlock()
	}
	return s, err
}

func (j *journal) Plan(ctx context.Context, assistant record.Message, runs []record.ToolRun) (record.Message, []record.ToolRun, error) {
	assistant.Turn = j.turn.ID
	return j.store.PlanTools(ctx, j.fence, j.session(), assistant, runs)
}

func (j *journal) Runs(ctx context.Context) ([]record.ToolRun, error) {
	return j.store.ToolRuns(ctx, j.turn.ID)
}

func (j *journal) Start(ctx context.Context, r record.ToolRun) error {
	return j.store.StartTool(ctx, j.fence, r)
}

func (j *journal) Finish(ctx context.Context, r record.ToolRun, result record.Message) error {
	result.Turn = j.turn.ID
	return j.store.FinishTool(ctx, j.fence, j.session(), r, result)
}

func (j *journal) SetTurn(ctx context.Context, t record.Turn) error {
	return j.store.SetTurn(ctx, j.fence, t)
}

// Delegate implements agentcore.Journal.
func (j *journal) Delegate(ctx context.Context, d record.Delegation) (record.Delegated, agentcore.Journal, error) {
	got, err := j.store.Delegate(ctx, j.fence, d)
	return got, &childJournal{journal{store: j.store, fence: j.fence, turn: got.Turn}}, err
}

// childJournal is the journal of a subagent's turn: nobody sees its end but the turn
// that waits for it.
type childJournal struct{ journal }

// End implements agentcore.Journal.
func (j *childJournal) End(ctx context.Context, e record.TurnEnd) error {
	for i := range e.Messages {
		e.Messages[i].Turn = j.turn.ID
	}
	return j.store.EndTurn(ctx, j.fence, e)
}

// End commits the answer together with the messages that show it. A turn that
// was interrupted keeps what people saw of it, with a word about its end.
func (j *journal) End(ctx context.Context, e record.TurnEnd) error {
	f := j.post.freeze()
	text := e.Text
	if e.State == record.TurnInterrupted {
		text = interruptedText(j.live.show(), f)
	}
	j.mu.Lock()
	t := j.turn
	j.mu.Unlock()
	ds := finals(t, text, f, j.limits)
	if trace := j.live.trace(); text != "" && fits(ds[0].Out.Text, trace, j.limits) {
		ds[0].Out.Progress = trace
	}
	e.Deliveries = append(e.Deliveries, ds...)
	for i := range e.Messages {
		e.Messages[i].Turn = t.ID
	}
	e.Beside = besideOf(t, e, text)
	if err := j.store.EndTurn(ctx, j.fence, e); err != nil {
		if errors.Is(err, record.ErrConflict) {
			j.post.thaw(t, j.live, f) // somebody joined: the answer is made again
		}
		return err
	}
	killpoint.Here(killpoint.TurnEnded)
	j.post.add(e.Deliveries...)
	return nil
}

// interruptedText is what stays visible of an interrupted answer. Where nothing
// was visible nothing is posted: the reply to /stop, or the next answer, says it.
func interruptedText(p picture, f frozen) string {
	switch posted := len(f.parts)+len(f.buried) > 0; {
	case !posted && (!f.drafted || p.text == ""):
		return ""
	case p.text == "":
		return "⏹ *Stopped.*"
	}
	return p.text + "\n\n⏹ *Stopped here.*"
}

// steering implements agentcore.Steering: the conversation's goroutine hands the
// messages over.
type steering struct{ box *mailbox }

func (s steering) Take(ctx context.Context) ([]record.Message, error) {
	reply := make(chan []record.Message, 1)
	s.box.put(steerWanted{reply: reply})
	select {
	case m := <-reply:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
