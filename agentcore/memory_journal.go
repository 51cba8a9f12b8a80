package agentcore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/agentcore/llm"
	"parley/store/record"
)

// MemoryJournal is a Journal in memory, for the plain Go API and for tests. It
// keeps the rules of the real one: sequences, reserved results, one end. It is
// safe for concurrent use.
type MemoryJournal struct {
	mu           sync.Mutex
	conversation record.Conversation
	sessions     []record.Session // the last one is where the turn stands
	rows         []record.Message
	runs         []record.ToolRun
	turn         record.Turn
	ended        *record.TurnEnd
	next         int64
	children     map[string]*MemoryJournal // of delegated tasks
}

var _ Journal = (*MemoryJournal)(nil)

// NewMemoryJournal begins a session with a history. Missing ids are made.
func NewMemoryJournal(c record.Conversation, past ...record.Message) *MemoryJournal {
	c.ID = cmp.Or(c.ID, record.ConversationID(record.NewID()))
	c.Session = cmp.Or(c.Session, record.SessionID(record.NewID()))
	m := &MemoryJournal{conversation: c, next: 1}
	m.sessions = []record.Session{{ID: c.Session, Root: c.Session, Conversation: c.ID, Reason: record.ReasonNew, CreatedAt: time.Now()}}
	m.append(past)
	return m
}

// Conversation is the one the journal belongs to.
func (m *MemoryJournal) Conversation() record.Conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conversation
}

// Turn is the row as it was last set.
func (m *MemoryJournal) Turn() record.Turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turn
}

// Ended is the end of the turn; ok is false while it is open.
func (m *MemoryJournal) Ended() (e record.TurnEnd, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == nil {
		return e, false
	}
	return *m.ended, true
}

// Begin opens the journal for another turn of the same conversation.
func (m *MemoryJournal) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.runs, m.turn = nil, nil, record.Turn{}
}

func (m *MemoryJournal) session() *record.Session { return &m.sessions[len(m.sessions)-1] }

// append stores rows; the caller holds the lock.
func (m *MemoryJournal) append(rows []record.Message) []record.Message {
	stored := make([]record.Message, 0, len(rows))
	for _, r := range rows {
		r.Session = m.session().ID
		if r.Seq == 0 {
			r.Seq = m.next
		}
		m.next = max(m.next, r.Seq+1)
		at, _ := slices.BinarySearchFunc(m.rows, r.Seq, func(x record.Message, seq int64) int { return cmp.Compare(x.Seq, seq) })
		m.rows = slices.Insert(m.rows, at, r)
		stored = append(stored, r)
	}
	return stored
}

// Session implements Journal.
func (m *MemoryJournal) Session(ctx context.Context) (record.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.session(), ctx.Err()
}

// History implements Journal.
func (m *MemoryJournal) History(ctx context.Context) ([]record.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rows), ctx.Err()
}

// Append implements Journal.
func (m *MemoryJournal) Append(ctx context.Context, msgs ...record.Message) ([]record.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.append(msgs), nil
}

// SetSession implements Journal.
func (m *MemoryJournal) SetSession(ctx context.Context, s record.Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	*m.session() = s
	return ctx.Err()
}

// Freeze implements Journal.
func (m *MemoryJournal) Freeze(ctx context.Context, seq int64, wire string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.rows {
		if m.rows[i].Seq == seq {
			m.rows[i].Wire = wire
			return ctx.Err()
		}
	}
	return record.ErrNotFound
}

// Swap implements Journal.
func (m *MemoryJournal) Swap(ctx context.Context, c record.Compression) (record.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return record.Session{}, err
	}
	if m.session().ID != c.Parent.ID {
		return record.Session{}, record.ErrConflict
	}
	newer := slices.DeleteFunc(slices.Clone(m.rows), func(r record.Message) bool { return r.Seq <= c.UpTo })
	child := c.Child
	child.Parent, child.Root, child.Conversation, child.Reason = c.Parent.ID, c.Parent.Root, c.Parent.Conversation, record.ReasonCompression
	kept := slices.Concat(c.Tail, newer)
	summary := c.Summary
	summary.Seq = max(c.UpTo, 1)
	if len(kept) > 0 {
		summary.Seq = max(kept[0].Seq-1, 1)
	}
	for i := range kept {
		if kept[i].OriginSession == "" {
			kept[i].OriginSession, kept[i].OriginSeq = c.Parent.ID, kept[i].Seq
		}
	}
	m.sessions, m.rows = append(m.sessions, child), nil
	m.append(kept)
	m.append([]record.Message{summary}) // whose sequence is before them
	m.turn.Session = child.ID
	return child, nil
}

// Delegate implements Journal.
func (m *MemoryJournal) Delegate(ctx context.Context, d record.Delegation) (record.Delegated, Journal, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return record.Delegated{}, nil, err
	}
	key := fmt.Sprintf("%s/%s/%d", d.Parent, d.CallID, d.Task)
	if child := m.children[key]; child != nil {
		return child.delegated(), child, nil
	}
	c := m.conversation
	c.Session = ""
	child := NewMemoryJournal(c, d.Message)
	child.sessions[0].Parent, child.sessions[0].Reason, child.sessions[0].Title = m.session().ID, record.ReasonDelegation, d.Title
	child.turn = d.Turn
	child.turn.ID, child.turn.Session, child.turn.Parent = record.TurnID(record.NewID()), child.sessions[0].ID, d.Parent
	if m.children == nil {
		m.children = map[string]*MemoryJournal{}
	}
	m.children[key] = child
	return record.Delegated{Turn: child.turn, New: true}, child, nil
}

// delegated is the journal's turn as its parent finds it again.
func (m *MemoryJournal) delegated() record.Delegated {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := record.Delegated{Turn: m.turn}
	for _, r := range m.rows {
		if r.Role == llm.Assistant && r.Content != "" {
			d.Text = r.Content
		}
	}
	return d
}

// SetTurn implements Journal.
func (m *MemoryJournal) SetTurn(ctx context.Context, t record.Turn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.turn = t
	return nil
}

// Plan implements Journal.
func (m *MemoryJournal) Plan(ctx context.Context, assistant record.Message, runs []record.ToolRun) (record.Message, []record.ToolRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return assistant, nil, err
	}
	assistant = m.append([]record.Message{assistant})[0]
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].ResultSeq = m.next
		m.next++
	}
	m.runs = append(m.runs, runs...)
	return assistant, runs, nil
}

// Runs implements Journal.
func (m *MemoryJournal) Runs(ctx context.Context) ([]record.ToolRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.runs), ctx.Err()
}

// Start implements Journal.
func (m *MemoryJournal) Start(ctx context.Context, r record.ToolRun) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.setRun(r)
}

// Finish implements Journal.
func (m *MemoryJournal) Finish(ctx context.Context, r record.ToolRun, result record.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.setRun(r); err != nil {
		return err
	}
	result.Seq = r.ResultSeq
	m.append([]record.Message{result})
	return nil
}

func (m *MemoryJournal) setRun(r record.ToolRun) error {
	for i := range m.runs {
		if m.runs[i].CallID == r.CallID && m.runs[i].Iteration == r.Iteration {
			if m.runs[i].State == record.ToolDone {
				return fmt.Errorf("agentcore: call %s has its result already", r.CallID)
			}
			m.runs[i] = r
			return nil
		}
	}
	return record.ErrNotFound
}

// End implements Journal.
func (m *MemoryJournal) End(ctx context.Context, e record.TurnEnd) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.ended != nil {
		return fmt.Errorf("agentcore: the turn has ended already")
	}
	for _, r := range m.rows {
		if e.Seen > 0 && r.Role == llm.User && r.Seq > e.Seen {
			return record.ErrConflict
		}
	}
	m.append(e.Messages)
	if s := m.session(); e.PromptTokens > 0 {
		s.PromptTokens, s.PromptSeq = e.PromptTokens, m.next-1
	}
	m.turn.State, m.turn.Cause, m.turn.Reference, m.turn.Usage = e.State, e.Cause, e.Reference, e.Usage
	m.ended = &e
	return nil
}
