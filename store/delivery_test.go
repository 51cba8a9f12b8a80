package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/gateway/chat"
	"parley/store/record"
)

// DUP-006, DEL-001: what was posted is a row of its own, saved at each step, and found
// again by the next owner until it is settled.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)
	d := record.Delivery{ID: record.DeliveryID(record.NewID()), Turn: turn.ID, Kind: record.DeliverLive, Key: "turn/0", Address: turn.Address,
		Out:   chat.Outgoing{Key: "turn/0", Text: "so far", Live: true, Progress: []string{"⚙ tool"}, Buttons: [][]chat.Button{{{Label: "Stop", Data: "s", Style: chat.Danger}}}},
		State: record.DeliverySending, Attempts: 1}
	w.check(w.SaveDelivery(ctx, k.fence, d))
	same := func(got record.Delivery) {
		t.Helper()
		want := d
		want.Conversation = k.fence.Conversation
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(record.Delivery{}, "CreatedAt", "UpdatedAt")); diff != "" {
			t.Fatal(diff)
		}
	}
	same(w.work(k.fence).Deliveries[0])
	// Posted, the live part is the turn's as long as it runs.
	d.State, d.Message = record.DeliverySent, "m1"
	w.check(w.SaveDelivery(ctx, k.fence, d))
	same(w.work(k.fence).Deliveries[0])
	// The end of the turn makes it a final one that is to be edited.
	d.Kind, d.State, d.Out = record.DeliverFinal, record.DeliveryPending, chat.Outgoing{Key: "turn/0", Text: "the answer"}
	second := d
	second.ID, second.Key, second.Part, second.Message = record.DeliveryID(record.NewID()), "turn/1", 1, ""
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone, Deliveries: []record.Delivery{d, second}}))
	open := w.work(k.fence).Deliveries
	if len(open) != 2 || open[1].Part != 1 {
		t.Fatalf("open deliveries %+v", open)
	}
	same(open[0])
	for i, state := range []record.DeliveryState{record.DeliverySent, record.DeliveryGone} {
		o := open[i]
		o.State, o.Marked, o.Error = state, true, "blocked\x00"
		w.check(w.SaveDelivery(ctx, k.fence, o))
	}
	if work := w.work(k.fence); !work.Empty() {
		t.Errorf("settled deliveries are open work: %+v", work)
	}
	all, err := w.TurnDeliveries(ctx, turn.ID)
	w.check(err)
	if len(all) != 2 || all[0].State != record.DeliverySent || !all[1].Marked || all[1].Error != "blocked\uFFFD" {
		t.Errorf("deliveries %+v", all)
	}
	second.ID = record.DeliveryID(record.NewID())
	w.want(w.SaveDelivery(ctx, k.fence, second), record.ErrConflict) // its key is taken
}

func (w *world) ask(k talk, turn record.Turn, call string) (record.Approval, record.Delivery) {
	w.t.Helper()
	a, card, err := w.OpenApproval(w.t.Context(), k.fence,
		record.Approval{Turn: turn.ID, CallID: call, Kind: record.AskClarify, Question: "which?", Options: []string{"a", "b\x00"}, Asked: ann, ExpiresAt: time.Now().Add(time.Hour)},
		record.Delivery{Kind: record.DeliverCard, Key: record.NewID(), Address: turn.Address, Out: chat.Outgoing{Text: "which?"}, State: record.DeliveryPending})
	w.check(err)
	return a, card
}

// APR-003: a question is asked once, across restarts, and decided once.
func TestApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)
	a, card := w.ask(k, turn, "call")
	if a.State != record.ApprovalOpen || card.Approval != a.ID || card.State != record.DeliveryPending || !cmp.Equal(a.Options, []string{"a", "b\uFFFD"}) {
		t.Fatalf("approval %+v, card %+v", a, card)
	}
	card.State, card.Message = record.DeliverySent, "m1"
	w.check(w.SaveDelivery(ctx, k.fence, card))
	again, stands := w.ask(k, turn, "call")
	if again.ID != a.ID || stands.ID != card.ID || stands.Message != "m1" {
		t.Errorf("asked again: %+v, %+v", again, stands)
	}
	if other, _ := w.ask(k, turn, "other call"); other.ID == a.ID {
		t.Error("two calls share a question")
	}

	var mu sync.Mutex
	var wg sync.WaitGroup
	decided := 0
	for i := range 8 {
		wg.Go(func() {
			to := []record.ApprovalState{record.ApprovalAnswered, record.ApprovalDenied}[i%2]
			got, ok, err := w.DecideApproval(ctx, k.fence, a.ID, to, chat.Person(fmt.Sprint("fake:", i)), "b")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				decided++
				if got.DecidedBy != chat.Person(fmt.Sprint("fake:", i)) || got.State != to {
					t.Errorf("decision %+v", got)
				}
			} else if got.State == record.ApprovalOpen {
				t.Error("refused, and still open")
			}
		})
	}
	wg.Wait()
	if decided != 1 {
		t.Errorf("decided %d times", decided)
	}
	if again, _ = w.ask(k, turn, "call"); again.State == record.ApprovalOpen || again.Answer != "b" {
		t.Errorf("asked after the decision: %+v", again)
	}
	got, gotCard, err := w.ApprovalCard(ctx, a.ID)
	w.check(err)
	if got.ID != a.ID || gotCard.ID != card.ID {
		t.Errorf("card %+v", gotCard)
	}
	unknown := record.ApprovalID(record.NewID())
	_, _, err = w.ApprovalCard(ctx, unknown)
	w.want(err, record.ErrNotFound)
	_, _, err = w.DecideApproval(ctx, k.fence, unknown, record.ApprovalDenied, ann, "")
	w.want(err, record.ErrNotFound)
	if _, _, err = w.DecideApproval(ctx, k.fence, a.ID, record.ApprovalOpen, ann, ""); err == nil {
		t.Error("a question was opened again")
	}
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone}))
	_, _, err = w.OpenApproval(ctx, k.fence, record.Approval{Turn: turn.ID, CallID: "late", Kind: record.AskApproval, ExpiresAt: time.Now()}, record.Delivery{Kind: record.DeliverCard, Key: "late", State: record.DeliveryPending})
	w.want(err, record.ErrNotFound)
}

// APR-005: nobody can approve after the deadline; it may still be withdrawn.
func TestApprovalAfterItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	turn := w.turn(k)
	for to, want := range map[record.ApprovalState]record.ApprovalState{
		record.ApprovalApproved:  record.ApprovalExpired,
		record.ApprovalExpired:   record.ApprovalExpired,
		record.ApprovalWithdrawn: record.ApprovalWithdrawn,
	} {
		a, _ := w.ask(k, turn, string(to))
		w.exec(`UPDATE approvals SET expires_at = now() - interval '1 second' WHERE id = $1`, a.ID)
		got, ok, err := w.DecideApproval(t.Context(), k.fence, a.ID, to, ann, "yes")
		w.check(err)
		if got.State != want || ok != (to == want) || (!ok && (got.DecidedBy != "" || got.Answer != "")) {
			t.Errorf("to %s: %v, %+v", to, ok, got)
		}
	}
}
