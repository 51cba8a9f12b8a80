package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// summaryOrEcho answers a request for a summary with one.
func summaryOrEcho(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
	if summarising(r) {
		say(llm.TextDelta{Text: "## Goal\nTell more."})
		return nil
	}
	return echo(ctx, r, say)
}

// A compression between turns is on the account of its conversation and its person:
// what it cost stands in the ledger and in /usage.
func TestCompressionBetweenTurnsIsPaidFor(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(summaryOrEcho), gatewaytest.Options{Budgets: spending.Config{PersonDaily: 1e6, TotalDaily: 1e6}})
	for range 12 {
		h.Platform.AwaitReaction(t, h.Say(owner, strings.Repeat("tell me more ", 100)), chat.ReactDone)
	}
	conv, _ := standing(t, h.Store)
	posts := len(h.Platform.Posts(""))
	h.Say(owner, "/compress")
	h.Platform.Await(t, "", "the end of the compression", func(ps []gatewaytest.Post) bool {
		return len(ps) > posts && strings.Contains(ps[len(ps)-1].Out.Text, "folded into a summary")
	})
	all, err := h.Store.UsageOf(t.Context(), conv.ID, time.Time{})
	if err != nil || len(all) != 2 || all[1].Purpose != record.ForCompression || all[1].Usage.Cost == 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	// The ledger has exactly that: what has room beside it is the rest of the limit.
	spent := all[0].Usage.Cost + all[1].Usage.Cost
	limits := []record.SpendingLimit{{Scope: "person:" + string(owner.ID), Limit: 1e6}, {Scope: "total", Limit: 1e6}}
	if err := h.Store.Reserve(t.Context(), time.Now(), limits, 1e6-spent-0.001); err != nil {
		t.Errorf("more is booked than the %f that were spent: %v", spent, err)
	}
	if err := h.Store.Reserve(t.Context(), time.Now(), limits, 0.002); err == nil {
		t.Errorf("less is booked than the %f that were spent", spent)
	}
	h.Say(owner, "/usage")
	h.Platform.Await(t, "", "the part of the compression", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "of it for folding between turns: ")
	})
}

// At a limit a compression between turns is not made: /compress says why, nobody is
// asked, nothing cools down.
func TestCompressionAtALimitIsNotMade(t *testing.T) {
	m := gatewaytest.NewModel(summaryOrEcho)
	h := gatewaytest.New(t, m, gatewaytest.Options{Budgets: spending.Config{ConversationDaily: 1e6}})
	talk(t, h)
	conv, s := standing(t, h.Store)
	if err := h.Store.Adjust(t.Context(), time.Now(), []record.SpendingLimit{{Scope: "conversation:" + string(conv.ID)}}, 1e6); err != nil {
		t.Fatal(err)
	}
	asked := len(m.Requests())
	h.Say(owner, "/compress")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the reason", func(ps []gatewaytest.Post) bool {
		text := ps[len(ps)-1].Out.Text
		return strings.HasPrefix(text, "Nothing was compressed") && strings.Contains(text, "for this chat is reached") && len(ps[len(ps)-1].Out.Buttons) == 0
	})
	_, after := standing(t, h.Store)
	if len(m.Requests()) != asked || after.ID != s.ID || !after.CoolUntil.IsZero() {
		t.Errorf("asked %d times more, session %s, cools until %s", len(m.Requests())-asked, after.ID, after.CoolUntil)
	}
}
