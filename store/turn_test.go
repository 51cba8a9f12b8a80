package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// KEY-004, RST-001: what came in is in the database, and the conversation's pointer
// with it, from the first message to the delivered answer.
func TestTurnFromMessageToAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)

	work := w.work(k.fence)
	if len(work.Inbox) != 0 || work.Turn == nil || work.Turn.ID != turn.ID || work.Turn.State != record.TurnPreparing {
		t.Fatalf("work after the start: %+v", work)
	}
	turn.State, turn.Iteration, turn.Budget.Granted = record.TurnCalling, 1, 10
	turn.Usage = llm.Usage{Input: 5, CachedInput: 4, CacheWrite: 3, Output: 2, Reasoning: 1, Cost: 0.5}
	w.check(w.SetTurn(ctx, k.fence, turn))
	got := w.work(k.fence).Turn
	if d := cmp.Diff(turn, *got); d != "" {
		t.Fatalf("the turn is not what was stored:\n%s", d)
	}

	usage := llm.Usage{Input: 10, CachedInput: 4, CacheWrite: 3, Output: 6, Reasoning: 1, Cost: 1.5}
	final := record.Delivery{ID: record.DeliveryID(record.NewID()), Turn: turn.ID, Kind: record.DeliverFinal, Key: "k/0", Address: turn.Address,
		Out: chat.Outgoing{Key: "k/0", Text: "hi"}, State: record.DeliveryPending}
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{
		Turn: turn.ID, State: record.TurnDone, Usage: usage, Model: "fake/model", PromptTokens: 77,
		Messages:   []record.Message{{Role: llm.Assistant, Content: "hi"}},
		Deliveries: []record.Delivery{final},
	}))

	if d := cmp.Diff([]string{"hello", "hi"}, contents(w.history(k.session))); d != "" {
		t.Fatal(d)
	}
	s, err := w.Session(ctx, k.session)
	w.check(err)
	if s.PromptTokens != 77 || s.PromptSeq != 1 {
		t.Errorf("the prompt of %d tokens covered row %d, want 77 and 1", s.PromptTokens, s.PromptSeq)
	}
	u, err := w.UsageOf(ctx, k.fence.Conversation, time.Time{})
	w.check(err)
	if len(u) != 1 || u[0].Usage != usage {
		t.Errorf("usage %+v, want %+v", u, usage)
	}
	if u, err = w.UsageOf(ctx, k.fence.Conversation, time.Now().Add(time.Hour)); err != nil || len(u) != 0 {
		t.Errorf("usage since later: %+v, %v", u, err)
	}
	work = w.work(k.fence)
	if work.Turn != nil || len(work.Inbox) != 0 || len(work.Deliveries) != 1 {
		t.Fatalf("work after the end: %+v", work)
	}
	work.Deliveries[0].CreatedAt, work.Deliveries[0].UpdatedAt, final.Conversation = time.Time{}, time.Time{}, k.fence.Conversation
	if d := cmp.Diff(final, work.Deliveries[0]); d != "" {
		t.Fatal(d)
	}

	why, err := w.Explain(ctx, "fake/main", "", "1")
	w.check(err)
	if why.Item.State != record.InboxDone || why.Item.Reason != "done" || why.Turn == nil || why.Turn.State != record.TurnDone || len(why.Deliveries) != 1 {
		t.Errorf("explanation: %+v", why)
	}
	_, err = w.Explain(ctx, "fake/main", "", "unknown")
	w.want(err, record.ErrNotFound)
	elsewhere := said("1", "a chat counts its own messages")
	elsewhere.Key, elsewhere.Address.Chat = "message/elsewhere/1", "elsewhere"
	w.receive(elsewhere)
	why, err = w.Explain(ctx, "fake/main", k.fence.Conversation, "1")
	w.check(err)
	if why.Item.Conversation != k.fence.Conversation {
		t.Error("a message of another chat is explained")
	}
	w.want(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone}), record.ErrConflict)
}

// CON-008: an answer that has not seen what joined the turn meanwhile is not an end.
func TestTurnDoesNotEndOverAMessageItHasNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)
	seen := w.history(k.session)[0].Seq
	w.check(w.JoinTurn(ctx, k.fence, turn.ID, nil, []record.Message{{Role: llm.User, Content: "one more thing"}}))
	end := record.TurnEnd{Turn: turn.ID, State: record.TurnDone, Seen: seen, Messages: []record.Message{{Role: llm.Assistant, Content: "hi"}}}
	w.want(w.EndTurn(ctx, k.fence, end), record.ErrConflict)
	end.Seen = w.history(k.session)[1].Seq
	w.check(w.EndTurn(ctx, k.fence, end))
}
