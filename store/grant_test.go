package store_test

import (
	"testing"
	"time"

	"parley/gateway/chat"
	"parley/store/record"
)

// A lasting consent holds for its person, conversation, tool and exact pattern only;
// one for a session ends with it, and each can be revoked once.
func TestGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)
	ask := func(turn record.Turn, by chat.Person, tool, pattern string) record.Approval {
		t.Helper()
		a, card, err := w.OpenApproval(ctx, k.fence,
			record.Approval{Turn: turn.ID, CallID: record.NewID(), Kind: record.AskApproval, Question: "may it?", Asked: by, Tool: tool, Pattern: pattern, ExpiresAt: time.Now().Add(time.Hour)},
			record.Delivery{Kind: record.DeliverCard, Key: record.NewID(), Address: turn.Address, Out: chat.Outgoing{Text: "may it?"}, State: record.DeliveryPending})
		w.check(err)
		if (a.State == record.ApprovalOpen) != (card.ID != "") {
			t.Errorf("%s has the card %q", a.State, card.ID)
		}
		return a
	}
	allow := func(a record.Approval, scope record.GrantScope) {
		t.Helper()
		_, ok, err := w.DecideApproval(ctx, k.fence, a.ID, record.ApprovalApproved, "fake:admin", string(scope))
		w.check(err)
		if !ok {
			t.Fatal("not decided")
		}
	}
	allow(ask(turn, ann, "terminal", "ls /"), record.GrantSession)
	allow(ask(turn, ann, "terminal", "make"), record.GrantAlways)
	allow(ask(turn, ann, "terminal", "once"), record.GrantOnce)
	allow(ask(turn, ann, "terminal", ""), record.GrantAlways)
	check := func(turn record.Turn, want map[[3]string]record.ApprovalState) {
		t.Helper()
		for q, state := range want {
			a := ask(turn, chat.Person(q[0]), q[1], q[2])
			if a.State != state || (state == record.ApprovalApproved) != (a.DecidedBy == "fake:admin") {
				t.Errorf("%v is %s by %q, want %s", q, a.State, a.DecidedBy, state)
			}
		}
	}
	const open, yes = record.ApprovalOpen, record.ApprovalApproved
	me := string(ann)
	check(turn, map[[3]string]record.ApprovalState{
		{me, "terminal", "ls /"}: yes, {me, "terminal", "make"}: yes, {me, "terminal", "once"}: open, {me, "terminal", ""}: open,
		{me, "terminal", "ls  /"}: open, {me, "process", "make"}: open, {"fake:other", "terminal", "make"}: open,
	})
	list, err := w.Grants(ctx, k.fence.Conversation)
	w.check(err)
	if len(list) != 2 || list[0].Pattern != "ls /" || list[0].ExpiresAt.IsZero() || list[1].Scope != record.GrantAlways || !list[1].ExpiresAt.IsZero() || list[1].By != "fake:admin" {
		t.Fatalf("%+v", list)
	}

	// Another session, and a grant that is revoked.
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone}))
	k.session = record.SessionID(record.NewID())
	_, err = w.EndItems(ctx, k.fence, nil, "", record.BeginRoot{Reason: record.ReasonNew, ID: k.session}, nil)
	w.check(err)
	k.Item = w.receive(said("2", "again")).Item
	turn = w.turn(k)
	check(turn, map[[3]string]record.ApprovalState{{me, "terminal", "ls /"}: open, {me, "terminal", "make"}: yes})
	revoke := record.RevokeGrant{ID: list[1].ID, By: ann}
	_, err = w.EndItems(ctx, k.fence, nil, "", revoke, nil)
	w.check(err)
	_, err = w.EndItems(ctx, k.fence, nil, "", revoke, nil)
	w.want(err, record.ErrNotFound)
	check(turn, map[[3]string]record.ApprovalState{{me, "terminal", "make"}: open})
	if list, err = w.Grants(ctx, k.fence.Conversation); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}

	// Time ends them too.
	allow(ask(turn, ann, "terminal", "late"), record.GrantSession)
	check(turn, map[[3]string]record.ApprovalState{{me, "terminal", "late"}: yes})
	w.exec(`UPDATE grants SET expires_at = now() - interval '1 second'`)
	check(turn, map[[3]string]record.ApprovalState{{me, "terminal", "late"}: open})
}
