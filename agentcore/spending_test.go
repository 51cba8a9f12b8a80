package agentcore_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/agentcore/spending/spendingtest"
	"parley/store/record"
)

func spendingAgent(t *testing.T, m *agentcoretest.Model, p *spendingtest.Purse, asker agentcore.Asker) *agentcore.Agent {
	t.Helper()
	a, err := agentcore.New(agentcore.DefaultConfig(), agentcore.Deps{
		Model: m, DefaultModel: "test/model", Engine: &agentcoretest.Engine{}, Asker: asker,
		Facts: func(llm.ModelID) llm.Facts {
			return llm.Facts{ContextWindow: 100_000, MaxOutput: 1000}
		},
		Book: spending.New(spending.Config{Currency: "USD", ConversationDaily: p.Limit}, spending.Deps{
			Ledger: p, Price: func(llm.ModelID) llm.Price { return llm.Price{Input: 1, Output: 100} },
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSpendingIsSettledWithTheRealCost(t *testing.T) {
	p := &spendingtest.Purse{Limit: 1}
	m := agentcoretest.NewModel(agentcoretest.Say("hello"))
	a := spendingAgent(t, m, p, agentcore.DenyAsker{})
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.State != record.TurnDone {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Usage.Cost <= 0 || math.Abs(p.Spent-res.Usage.Cost) > 1e-12 {
		t.Errorf("booked %f, the turn cost %f", p.Spent, res.Usage.Cost)
	}
}

func TestSpendingLimitEndsTheTurnWithAWord(t *testing.T) {
	p := &spendingtest.Purse{Limit: 0.01} // less than the reservation for one answer
	m := agentcoretest.NewModel()
	a := spendingAgent(t, m, p, agentcore.DenyAsker{})
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.State != record.TurnFailed || !strings.Contains(res.Text, "limit of 0.01 USD for this chat is reached") {
		t.Fatalf("%+v, %v", res, err)
	}
	if p.Spent != 0 {
		t.Errorf("%f is booked for a call that was not made", p.Spent)
	}
}

func TestAdminAllowsMore(t *testing.T) {
	p := &spendingtest.Purse{Limit: 0.01}
	m := agentcoretest.NewModel(agentcoretest.Say("hello"))
	asker := &allowAll{}
	a := spendingAgent(t, m, p, asker)
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.Text != "hello" {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(asker.asked) != 1 || asker.asked[0].Kind != record.AskSpending || p.Extra == 0 {
		t.Errorf("asked %+v, extra %f", asker.asked, p.Extra)
	}
}

// allowAll approves everything and remembers what it was asked.
type allowAll struct{ asked []record.Approval }

func (a *allowAll) Ask(_ context.Context, q record.Approval) (record.Approval, error) {
	a.asked = append(a.asked, q)
	q.State = record.ApprovalApproved
	return q, nil
}

// Without the ledger nothing is spent: the turn waits for the database.
func TestLedgerOutOfReachSuspends(t *testing.T) {
	p := &spendingtest.Purse{Limit: 1, Err: errors.Join(record.ErrUnavailable)}
	a := spendingAgent(t, agentcoretest.NewModel(), p, agentcore.DenyAsker{})
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.State != record.TurnSuspended {
		t.Fatalf("%+v, %v", res, err)
	}
}

// Without room in the context a turn cannot go on: what the compression costs is asked
// for, and refused it ends the turn.
func TestOverflowAtALimitAsks(t *testing.T) {
	over := &record.SpendingError{SpendingLimit: record.SpendingLimit{Scope: "total", Limit: 1}, Spent: 1, Allowed: 1}
	for _, answer := range []record.ApprovalState{record.ApprovalApproved, record.ApprovalDenied} {
		p := &spendingtest.Purse{Limit: 10}
		asker := agentcoretest.Decide(answer, "")
		b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) {
			d.Book = spending.New(spending.Config{TotalDaily: 10}, spending.Deps{Ledger: p})
		}, overflow(), agentcoretest.Say("fits"))
		b.req.Asker = asker
		tries := 0
		b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) {
			if tries++; tries == 1 {
				return engine.Result{Outcome: engine.OverLimit, Reason: over.Words("USD"), Over: over}, nil
			}
			return summarised(in), nil
		}
		res := b.run(t.Context())
		if q := asker.Questions(); len(q) != 1 || q[0].Kind != record.AskSpending {
			t.Fatalf("%s: asked %+v", answer, q)
		}
		if allowed := answer == record.ApprovalApproved; allowed && (res.Text != "fits" || p.Extra == 0) || !allowed && res.State != record.TurnFailed {
			t.Errorf("%s: %s %q, extra %f", answer, res.State, res.Text, p.Extra)
		}
	}
}

// One question for each level of a limit, so that an answer holds over a restart and
// is not taken for the next question's.
func TestEachLimitIsAskedForOnce(t *testing.T) {
	p := &spendingtest.Purse{Limit: 0.25} // room for the answer to one call of a turn
	asker := &allowAll{}
	m := agentcoretest.NewModel(agentcoretest.Say("one"))
	a := spendingAgent(t, m, p, asker)
	p.Spent = 0.25
	if _, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"}); err != nil {
		t.Fatal(err)
	}
	p.Spent = 0.5
	m.Then(agentcoretest.Say("two"))
	if _, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"}); err != nil {
		t.Fatal(err)
	}
	if len(asker.asked) != 2 || asker.asked[0].CallID == asker.asked[1].CallID {
		t.Errorf("asked %+v", asker.asked)
	}
}
