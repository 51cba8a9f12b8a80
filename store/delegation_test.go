package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/store/record"
)

// delegation is the first task of a call of a turn.
func (w *world) delegation(t record.Turn, task int) record.Delegation {
	return record.Delegation{
		Parent: t.ID, CallID: "call", Task: task, Title: "a task", Message: userRow("do it"),
		Turn: record.Turn{Person: ann, Trust: record.TrustUntrusted, Budget: record.Budget{Initial: 5, Cap: 5}, Address: t.Address},
	}
}

func (w *world) delegate(k talk, t record.Turn, task int) record.Delegated {
	w.t.Helper()
	d, err := w.Delegate(w.t.Context(), k.fence, w.delegation(t, task))
	w.check(err)
	return d
}

// A task has one subagent, whatever takes the call up again; it works in a session
// below its parent's that no listing shows.
func TestDelegateOnce(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	parent := w.turn(k)
	first, second := w.delegate(k, parent, 0), w.delegate(k, parent, 1)
	if !first.New || !second.New || first.Turn.ID == second.Turn.ID || first.Turn.Trust != record.TrustUntrusted {
		t.Fatalf("%+v %+v", first, second)
	}
	again := w.delegate(k, parent, 0)
	if again.New || again.Turn.ID != first.Turn.ID || again.Turn.Parent != parent.ID || again.Turn.Budget.Cap != 5 {
		t.Errorf("%+v", again)
	}
	if got := contents(w.history(first.Turn.Session)); !cmp.Equal(got, []string{"do it"}) {
		t.Error(got)
	}
	s, err := w.Session(t.Context(), first.Turn.Session)
	w.check(err)
	if s.Parent != k.session || s.Root != s.ID || s.Reason != record.ReasonDelegation || s.Title != "a task" {
		t.Errorf("%+v", s)
	}
	if work := w.work(k.fence); work.Turn == nil || work.Turn.ID != parent.ID {
		t.Errorf("the conversation's turn is %+v", work.Turn)
	}
	end := record.TurnEnd{
		Turn: first.Turn.ID, State: record.TurnDone, Usage: llm.Usage{Input: 3, Output: 2},
		Messages: []record.Message{{Role: llm.Assistant, Content: "it is done"}},
	}
	w.check(w.EndTurn(t.Context(), k.fence, end))
	if d := w.delegate(k, parent, 0); d.Turn.State != record.TurnDone || d.Text != "it is done" {
		t.Errorf("%+v", d)
	}
	list, err := w.Sessions(t.Context(), k.fence.Conversation, 10)
	w.check(err)
	if len(list) != 1 || list[0].ID != k.session {
		t.Errorf("listed: %+v", list)
	}
	own, err := w.Session(t.Context(), k.session)
	w.check(err)
	tree, err := w.Tree(t.Context(), own)
	w.check(err)
	if len(tree) != 3 || tree[0].ID != k.session || !tree[0].Current || tree[1].ID != first.Turn.Session || tree[2].Parent != k.session {
		t.Errorf("the tree is %+v", tree)
	}
	if u, err := w.UsageOf(t.Context(), k.fence.Conversation, parent.StartedAt.AddDate(-1, 0, 0)); err != nil || len(u) != 1 || u[0].Usage.Input != 3 {
		t.Errorf("what a subagent uses is the conversation's: %+v %v", u, err)
	}
}

// What subagents say to themselves is not found, and what schedules said comes last.
func TestSearchKnowsWhoseWordsTheyAre(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	parent := w.turn(k)
	d := w.delegation(parent, 0)
	d.Message = userRow("pears of a subagent")
	_, err := w.Delegate(t.Context(), k.fence, d)
	w.check(err)
	w.check(w.EndTurn(t.Context(), k.fence, record.TurnEnd{Turn: parent.ID, State: record.TurnDone}))
	w.append(k, k.session, "pears of a person, among many other words that make it rank lower")
	_, err = w.StartTurn(t.Context(), k.fence, record.TurnStart{
		Turn: record.Turn{Person: ann, Trust: record.TrustSchedule}, Messages: []record.Message{userRow("pears pears pears")},
		Root: &record.BeginRoot{ID: record.SessionID(record.NewID()), Reason: record.ReasonSchedule},
	})
	w.check(err)
	for _, query := range []string{"pears", "pear"} {
		hits, err := w.Search(t.Context(), k.fence.Conversation, query, 10)
		w.check(err)
		if len(hits) != 2 || hits[0].Session != k.session || hits[0].Root != k.session || hits[1].Content != "pears pears pears" {
			t.Errorf("%q found %+v", query, hits)
		}
	}
}

// STP-001: the end of a turn leaves no subagent behind, nor what it has used unbooked.
func TestEndTurnEndsSubagents(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	parent := w.turn(k)
	child := w.delegate(k, parent, 0).Turn
	grandchild := w.delegate(k, child, 0).Turn
	grandchild.Usage = llm.Usage{Input: 7}
	w.check(w.SetTurn(t.Context(), k.fence, grandchild))
	w.check(w.EndTurn(t.Context(), k.fence, record.TurnEnd{Turn: parent.ID, State: record.TurnInterrupted}))
	if n := query[int](w, `SELECT count(*) FROM turns WHERE ended_at IS NULL`); n != 0 {
		t.Errorf("%d turns are open", n)
	}
	if n := query[int](w, `SELECT sum(input_tokens) FROM usage`); n != 7 {
		t.Errorf("%d tokens are booked", n)
	}
	_, err := w.Delegate(t.Context(), k.fence, w.delegation(parent, 3))
	w.want(err, record.ErrConflict)
	w.want(w.EndTurn(t.Context(), k.fence, record.TurnEnd{Turn: child.ID, State: record.TurnDone}), record.ErrConflict)
}

// A subagent's session is compressed for itself: the conversation stays where it is.
func TestCompressSubagent(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	child := w.delegate(k, w.turn(k), 0).Turn
	s, err := w.Session(t.Context(), child.Session)
	w.check(err)
	swap := record.Compression{Parent: s, Summary: record.Message{Role: llm.User, Content: "summary"}, UpTo: 1, Turn: child.ID}
	next, err := w.Compress(t.Context(), k.fence, swap)
	w.check(err)
	if next.Root != s.ID {
		t.Errorf("%+v", next)
	}
	if got := query[string](w, `SELECT session_id::text FROM conversations`); got != string(k.session) {
		t.Error("the conversation moved")
	}
	if got := query[string](w, `SELECT session_id::text FROM turns WHERE parent_id IS NOT NULL`); got != string(next.ID) {
		t.Error("the subagent did not move")
	}
	if list, err := w.Sessions(t.Context(), k.fence.Conversation, 10); err != nil || len(list) != 1 {
		t.Errorf("listed: %+v %v", list, err)
	}
}
