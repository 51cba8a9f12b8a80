package store_test

import (
	"fmt"
	"testing"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

// BenchmarkMessage is what the store does for a message with a short answer: intake,
// start, state, live part (three writes), end, final part.
func BenchmarkMessage(b *testing.B) {
	db := storetest.New(b)
	ctx := b.Context()
	r, err := db.Register(ctx, "bench", func(err error) { b.Error(err) })
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if err := oneMessage(b, db, r, i); err != nil {
			b.Fatal(err)
		}
	}
}

func oneMessage(b *testing.B, db *store.DB, r record.ReplicaID, i int) error {
	ctx := b.Context()
	rc, err := db.Receive(ctx, record.ReceiveRequest{Replica: r, Event: said(fmt.Sprint(i), "hello"), Model: "m"}, accept)
	if err != nil {
		return err
	}
	begun, err := db.StartTurn(ctx, rc.Fence, record.TurnStart{Turn: record.Turn{Session: rc.Conversation.Session, Trust: record.TrustUser},
		Items: []record.InboxItem{rc.Item}, Messages: []record.Message{userRow("hello")}})
	if err != nil {
		return err
	}
	turn := begun.Turn
	turn.State, turn.Iteration = record.TurnCalling, 1
	if err := db.SetTurn(ctx, rc.Fence, turn); err != nil {
		return err
	}
	d := record.Delivery{ID: record.DeliveryID(record.NewID()), Turn: turn.ID, Kind: record.DeliverLive, Key: string(turn.ID), Out: chat.Outgoing{Text: "so far"}}
	for _, d.State = range []record.DeliveryState{record.DeliveryPending, record.DeliverySending, record.DeliverySent} {
		if err := db.SaveDelivery(ctx, rc.Fence, d); err != nil {
			return err
		}
	}
	d.Kind, d.State = record.DeliverFinal, record.DeliveryPending
	err = db.EndTurn(ctx, rc.Fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone, Usage: llm.Usage{Input: 1, Output: 1}, Model: "m", PromptTokens: 9,
		Messages: []record.Message{{Role: llm.Assistant, Content: "an answer of some words"}}, Deliveries: []record.Delivery{d}})
	if err != nil {
		return err
	}
	d.State, d.Message = record.DeliverySent, "m1"
	return db.SaveDelivery(ctx, rc.Fence, d)
}
