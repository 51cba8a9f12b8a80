package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/store/record"
)

// planned is a turn whose model has asked for n tools.
func (w *world) planned(n int) (talk, record.Turn, []record.ToolRun) {
	w.t.Helper()
	k := w.talk()
	turn := w.turn(k)
	assistant := record.Message{Role: llm.Assistant, Turn: turn.ID}
	var runs []record.ToolRun
	for i := range n {
		id := fmt.Sprint("call", i)
		assistant.ToolCalls = append(assistant.ToolCalls, llm.ToolCall{ID: id, Name: "t", Arguments: `{"n":1}`})
		runs = append(runs, record.ToolRun{Turn: turn.ID, Iteration: 1, Index: i, CallID: id, Tool: "t", Arguments: json.RawMessage(`{"n":1}`)})
	}
	m, runs, err := w.PlanTools(w.t.Context(), k.fence, k.session, assistant, runs)
	w.check(err)
	if m.Seq != 2 {
		w.t.Fatalf("the assistant's row has sequence %d, want 2", m.Seq)
	}
	return k, turn, runs
}

func result(r record.ToolRun, text string) record.Message {
	return record.Message{Role: llm.ToolRole, ToolCallID: r.CallID, ToolName: r.Tool, Content: text}
}

// RST-005: results are kept as they come, in the order of the calls, whatever order
// they come in and whatever is said meanwhile.
func TestToolResultsKeepTheOrderOfTheCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k, turn, runs := w.planned(3)
	rc := w.receive(said("2", "wait"))
	w.check(w.JoinTurn(ctx, k.fence, turn.ID, []record.InboxItem{rc.Item}, []record.Message{userRow("wait")}))
	for _, i := range []int{2, 0} {
		w.check(w.StartTool(ctx, k.fence, runs[i]))
		runs[i].Outcome = "ok"
		w.check(w.FinishTool(ctx, k.fence, k.session, runs[i], result(runs[i], fmt.Sprint("result ", i))))
	}
	w.want(w.StartTool(ctx, k.fence, runs[0]), record.ErrConflict)
	w.want(w.FinishTool(ctx, k.fence, k.session, runs[0], result(runs[0], "again")), record.ErrConflict)
	w.check(w.StartTool(ctx, k.fence, runs[1]))
	w.want(w.StartTool(ctx, k.fence, runs[1]), record.ErrConflict)

	if d := cmp.Diff([]string{"hello", "", "result 0", "result 2", "wait"}, contents(w.history(k.session))); d != "" {
		t.Fatal(d)
	}
	got, err := w.ToolRuns(ctx, turn.ID)
	w.check(err)
	states := map[string]record.ToolState{}
	for _, r := range got {
		states[r.CallID] = r.State
		if r.State == record.ToolDone && (r.Outcome != "ok" || r.StartedAt.IsZero() || r.EndedAt.IsZero()) {
			t.Errorf("run %+v", r)
		}
	}
	if d := cmp.Diff(map[string]record.ToolState{"call0": record.ToolDone, "call1": record.ToolStarted, "call2": record.ToolDone}, states); d != "" {
		t.Error(d)
	}
	w.check(w.FinishTool(ctx, k.fence, k.session, runs[1], result(runs[1], "result 1")))
	if d := cmp.Diff([]string{"hello", "", "result 0", "result 1", "result 2", "wait"}, contents(w.history(k.session))); d != "" {
		t.Fatal(d)
	}
}

// STP-002, RST-009: a turn that is stopped is over in the database too: each open call
// has its result at its place, its runs are closed, its questions withdrawn.
func TestEndOfATurnClosesWhatIsOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state   record.TurnState
		started string
	}{{record.TurnInterrupted, "interrupted"}, {record.TurnFailed, "unknown"}} {
		t.Run(string(c.state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := t.Context()
			k, turn, runs := w.planned(3)
			w.check(w.StartTool(ctx, k.fence, runs[0]))
			w.check(w.StartTool(ctx, k.fence, runs[1]))
			runs[1].Outcome = "ok"
			w.check(w.FinishTool(ctx, k.fence, k.session, runs[1], result(runs[1], "done")))
			a, _, err := w.OpenApproval(ctx, k.fence, record.Approval{Turn: turn.ID, CallID: "call2", Kind: record.AskApproval, ExpiresAt: time.Now().Add(time.Hour)}, record.Delivery{Kind: record.DeliverCard, Key: "card", State: record.DeliveryPending})
			w.check(err)
			open0, open2 := result(runs[0], "stopped"), result(runs[2], "not run")
			open0.Seq, open2.Seq = runs[0].ResultSeq, runs[2].ResultSeq
			w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: c.state, Cause: "by /stop", Reference: "E1",
				Messages: []record.Message{open0, open2, {Role: llm.Assistant, Kind: record.KindNotice, Content: "stopped here"}}}))
			if d := cmp.Diff([]string{"hello", "", "stopped", "done", "not run", "stopped here"}, contents(w.history(k.session))); d != "" {
				t.Error(d)
			}
			got, err := w.ToolRuns(ctx, turn.ID)
			w.check(err)
			var outcomes []string
			for _, r := range got {
				outcomes = append(outcomes, string(r.State)+" "+r.Outcome)
			}
			if d := cmp.Diff([]string{"done " + c.started, "done ok", "done interrupted"}, outcomes); d != "" {
				t.Error(d)
			}
			if a, _, err = w.ApprovalCard(ctx, a.ID); err != nil || a.State != record.ApprovalWithdrawn {
				t.Errorf("approval %v, %v", a.State, err)
			}
			why, err := w.Explain(ctx, "", "", "1")
			w.check(err)
			if why.Item.Reason != string(c.state)+": by /stop" || why.Turn.Reference != "E1" {
				t.Errorf("explanation %+v", why)
			}
		})
	}
}

// A tool that ends after its turn writes nothing any more.
func TestToolEndsAfterItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k, turn, runs := w.planned(2)
	w.check(w.StartTool(t.Context(), k.fence, runs[0]))
	w.check(w.EndTurn(t.Context(), k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnFailed}))
	w.want(w.FinishTool(t.Context(), k.fence, k.session, runs[0], result(runs[0], "late")), record.ErrConflict)
	w.want(w.StartTool(t.Context(), k.fence, runs[1]), record.ErrConflict)
}

// A row can only go to a place that was reserved.
func TestUnreservedPlacesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.turn(k)
	m := userRow("x")
	m.Seq = 99
	if _, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{m}); err == nil {
		t.Error("a row was written beyond the last sequence")
	}
	m.Seq = 1
	_, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{m})
	w.want(err, record.ErrConflict)
	_, err = w.AppendMessages(t.Context(), k.fence, record.SessionID(record.NewID()), []record.Message{userRow("x")})
	w.want(err, record.ErrNotFound)
	bob := said("b", "x")
	bob.From.ID = "fake:bob"
	_, err = w.AppendMessages(t.Context(), w.receive(bob).Fence, k.session, []record.Message{userRow("x")})
	w.want(err, record.ErrNotFound)
}

// CON-014: there is one turn at a time, and an event belongs to one turn.
func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)
	next := w.receive(said("2", "more")).Item
	start := record.TurnStart{Turn: record.Turn{Session: k.session, Trust: record.TrustUser}, Items: []record.InboxItem{next}, Messages: []record.Message{userRow("more")}}
	_, err := w.StartTurn(ctx, k.fence, start)
	w.want(err, record.ErrConflict)
	w.want(w.JoinTurn(ctx, k.fence, turn.ID, []record.InboxItem{k.Item, next}, []record.Message{userRow("more")}), record.ErrConflict)
	if d := cmp.Diff([]string{"hello"}, contents(w.history(k.session))); d != "" {
		t.Errorf("a refused join left rows: %s", d)
	}
	w.check(w.JoinTurn(ctx, k.fence, turn.ID, []record.InboxItem{next}, []record.Message{userRow("more")}))
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone}))
	if n := query[int](w, `SELECT count(*) FROM inbox WHERE state = 'done'`); n != 2 {
		t.Errorf("%d rows are done, want 2", n)
	}
	w.want(w.JoinTurn(ctx, k.fence, turn.ID, nil, []record.Message{userRow("late")}), record.ErrConflict)
	w.want(w.SetTurn(ctx, k.fence, turn), record.ErrConflict)
	w.want(w.SuspendTurn(ctx, k.fence, turn.ID, "x", false), record.ErrConflict)
	_, err = w.StartTurn(ctx, k.fence, start)
	w.want(err, record.ErrConflict) // its row is done
	turn.State = record.TurnDone
	if w.SetTurn(ctx, k.fence, turn) == nil || w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnCalling}) == nil {
		t.Error("SetTurn ended a turn, or EndTurn did not")
	}
}
