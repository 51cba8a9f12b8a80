package spending_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/agentcore/spending/spendingtest"
	"parley/store/record"
)

var price = func(llm.ModelID) llm.Price { return llm.Price{Input: 1, CachedInput: 0.5, Output: 10} }

func book(p *spendingtest.Purse, c spending.Config) *spending.Book {
	return spending.New(c, spending.Deps{Ledger: p, Price: price})
}

func TestWhatIsReservedBecomesWhatItCost(t *testing.T) {
	p := &spendingtest.Purse{Limit: 10}
	b := book(p, spending.Config{TotalDaily: 10})
	payer := record.Payer{Conversation: "c", Person: "x:1", Purpose: record.ForTitle}
	r, err := b.Reserve(t.Context(), payer, "m", llm.Usage{Input: 1e6, Output: 1e5})
	if err != nil || p.Spent != 2 {
		t.Fatalf("reserved %f, %v", p.Spent, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what has happened is booked all the same
	used := llm.Usage{Input: 1e6, CachedInput: 1e6, Output: 1e4}
	got := b.Settle(ctx, r, "m", used)
	if math.Abs(got.Cost-0.6) > 1e-9 || math.Abs(p.Spent-0.6) > 1e-9 {
		t.Errorf("cost %f, booked %f, want 0.6", got.Cost, p.Spent)
	}
	if diff := cmp.Diff([]record.UsageEntry{{Payer: payer, Model: "m", Usage: got}}, p.Noted); diff != "" {
		t.Error(diff)
	}
	// A failed call gives all of it back, and leaves nothing to note.
	if r, err = b.Reserve(t.Context(), payer, "m", llm.Usage{Input: 1e6}); err != nil {
		t.Fatal(err)
	}
	b.Settle(t.Context(), r, "m", llm.Usage{})
	if math.Abs(p.Spent-0.6) > 1e-9 || len(p.Noted) != 1 {
		t.Errorf("booked %f, noted %d", p.Spent, len(p.Noted))
	}
}

// What a provider says about the cost is believed, and a turn notes its own usage.
func TestAProvidersCostIsBelieved(t *testing.T) {
	p := &spendingtest.Purse{}
	b := book(p, spending.Config{})
	r, err := b.Reserve(t.Context(), record.Payer{Conversation: "c"}, "m", llm.Usage{Input: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	if u := b.Settle(t.Context(), r, "m", llm.Usage{Input: 1e6, Cost: 7}); u.Cost != 7 || p.Spent != 0 || len(p.Noted) != 0 || len(p.Reserved) != 0 {
		t.Errorf("%+v, %+v", u, p)
	}
}

// scopes is a ledger that keeps which limits were asked for.
type scopes struct {
	spendingtest.Purse
	got []record.SpendingLimit
}

func (s *scopes) Reserve(_ context.Context, _ time.Time, limits []record.SpendingLimit, _ float64) error {
	s.got = limits
	return nil
}

func TestLimitsOfAPayer(t *testing.T) {
	c := spending.Config{TotalDaily: 3, ConversationDaily: 2, PersonDaily: 1}
	all := []record.SpendingLimit{{Scope: "total", Limit: 3}, {Scope: "conversation:c", Limit: 2}, {Scope: "person:x:1", Limit: 1}}
	for _, tt := range []struct {
		payer record.Payer
		cfg   spending.Config
		want  []record.SpendingLimit
	}{
		{record.Payer{Conversation: "c", Person: "x:1"}, c, all},
		{record.Payer{Conversation: "c"}, c, all[:2]}, // nobody in particular
		{record.Payer{Conversation: "c", Person: "x:1"}, spending.Config{PersonDaily: 1}, all[2:]},
	} {
		s := &scopes{}
		if _, err := spending.New(tt.cfg, spending.Deps{Ledger: s}).Reserve(t.Context(), tt.payer, "m", llm.Usage{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, s.got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestALimitSaysWhatWouldHaveBeenBooked(t *testing.T) {
	p := &spendingtest.Purse{Limit: 1}
	b := book(p, spending.Config{TotalDaily: 1})
	r, err := b.Reserve(t.Context(), record.Payer{}, "m", llm.Usage{Input: 2e6})
	var over *record.SpendingError
	if !errors.As(err, &over) || r.Amount != 2 || p.Spent != 0 {
		t.Fatalf("%v, %+v, %f", err, r, p.Spent)
	}
	if err := b.AllowMore(t.Context(), r, over, 1); err != nil || p.Extra != 1 {
		t.Error(err, p.Extra)
	}
}

func TestNoBookLimitsNothing(t *testing.T) {
	var b *spending.Book
	r, err := b.Reserve(t.Context(), record.Payer{}, "m", llm.Usage{Input: 1e9})
	if u := b.Settle(t.Context(), r, "m", llm.Usage{Input: 1}); err != nil || u != (llm.Usage{Input: 1}) {
		t.Error(u, err)
	}
}

func TestValidate(t *testing.T) {
	if errs := (spending.Config{PersonDaily: -1}).Validate(); len(errs) != 1 {
		t.Error(errs)
	}
}
