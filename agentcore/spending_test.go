package agentcore_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/store/record"
)

// purse is a ledger with one limit.
type purse struct {
	mu                  sync.Mutex
	limit, spent, extra float64
	err                 error
}

func (p *purse) Reserve(_ context.Context, _ time.Time, limits []record.SpendingLimit, amount float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if p.spent+amount > p.limit+p.extra {
		return &record.SpendingError{SpendingLimit: limits[0], Spent: p.spent, Allowed: p.limit + p.extra}
	}
	p.spent += amount
	return nil
}

func (p *purse) Adjust(_ context.Context, _ time.Time, _ []record.SpendingLimit, delta float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += delta
	return nil
}

func (p *purse) AllowMore(_ context.Context, _ time.Time, _ string, amount float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extra += amount
	return nil
}

func spendingAgent(t *testing.T, m *agentcoretest.Model, p *purse, asker agentcore.Asker) *agentcore.Agent {
	t.Helper()
	a, err := agentcore.New(agentcore.DefaultConfig(), agentcore.Deps{
		Model: m, DefaultModel: "test/model", Engine: &agentcoretest.Engine{}, Asker: asker,
		Facts: func(llm.ModelID) llm.Facts {
			return llm.Facts{ContextWindow: 100_000, MaxOutput: 1000, Price: llm.Price{Input: 1, Output: 100}}
		},
		Ledger: p, Spending: agentcore.SpendingConfig{Currency: "USD", PersonDaily: p.limit},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSpendingIsSettledWithTheRealCost(t *testing.T) {
	p := &purse{limit: 1}
	m := agentcoretest.NewModel(agentcoretest.Say("hello"))
	a := spendingAgent(t, m, p, agentcore.DenyAsker{})
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.State != record.TurnDone {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Usage.Cost <= 0 || math.Abs(p.spent-res.Usage.Cost) > 1e-12 {
		t.Errorf("booked %f, the turn cost %f", p.spent, res.Usage.Cost)
	}
}

func TestSpendingLimitEndsTheTurnWithAWord(t *testing.T) {
	p := &purse{limit: 0.01} // less than the reservation for one answer
	m := agentcoretest.NewModel()
	a := spendingAgent(t, m, p, agentcore.DenyAsker{})
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.State != record.TurnFailed || !strings.Contains(res.Text, "limit of 0.01 USD for one person is reached") {
		t.Fatalf("%+v, %v", res, err)
	}
	if p.spent != 0 {
		t.Errorf("%f is booked for a call that was not made", p.spent)
	}
}

func TestAdminAllowsMore(t *testing.T) {
	p := &purse{limit: 0.01}
	m := agentcoretest.NewModel(agentcoretest.Say("hello"))
	asker := &allowAll{}
	a := spendingAgent(t, m, p, asker)
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.Text != "hello" {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(asker.asked) != 1 || asker.asked[0].Kind != record.AskSpending || p.extra == 0 {
		t.Errorf("asked %+v, extra %f", asker.asked, p.extra)
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
	p := &purse{limit: 1, err: errors.Join(record.ErrUnavailable)}
	a := spendingAgent(t, agentcoretest.NewModel(), p, agentcore.DenyAsker{})
	res, err := a.RunConversation(t.Context(), agentcore.Request{Message: "hi"})
	if err != nil || res.State != record.TurnSuspended {
		t.Fatalf("%+v, %v", res, err)
	}
}
