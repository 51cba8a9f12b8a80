package engine

import (
	"math"
	"strings"
	"testing"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/agentcore/spending/spendingtest"
	"parley/store/record"
)

// paying is a compressor whose calls are booked in a purse, at one for a thousand
// tokens.
func paying(t *testing.T, p *spendingtest.Purse, answers ...answer) (*Compressor, *script) {
	t.Helper()
	c, s := newCompressor(t, DefaultConfig(), answers...)
	c.deps.Book = spending.New(spending.Config{Currency: "USD", TotalDaily: p.Limit}, spending.Deps{
		Ledger: p, Price: func(llm.ModelID) llm.Price { return llm.Price{Input: 1000, Output: 1000} },
	})
	return c, s
}

// Every summary call is reserved for with about what it will use, and settled with
// what it did.
func TestSummariesArePaidFor(t *testing.T) {
	p := &spendingtest.Purse{Limit: 1000}
	c, s := paying(t, p, answer{text: goodSummary})
	in := input(said("uauauauauauauauauauauauauauauauauauauaua", 4000))
	in.Payer = record.Payer{Conversation: "conv", Purpose: record.ForCompression}
	r, err := c.Compress(t.Context(), in)
	if err != nil || r.Outcome != Compressed {
		t.Fatalf("%+v, %v", r, err)
	}
	calls := len(s.asked)
	if want := 0.012 * float64(calls); math.Abs(p.Spent-want) > 1e-9 || math.Abs(r.Usage.Cost-want) > 1e-9 || len(p.Noted) != calls {
		t.Errorf("%d calls: booked %f, reported %f, noted %d times; want %f", calls, p.Spent, r.Usage.Cost, len(p.Noted), want)
	}
	sent := 0
	for _, req := range s.asked {
		sent += TextTokens(req.System) + TextTokens(req.Messages[0].Text())
	}
	var reserved float64
	for _, a := range p.Reserved {
		reserved += a
	}
	if low := float64(sent) / 1000; reserved < 0.9*low || reserved > low+float64(calls)*11 {
		t.Errorf("reserved %f for requests of %d tokens", reserved, sent)
	}
}

// At a limit no call is made and nothing has failed: there is no cooldown.
func TestCompressionAtALimitIsNotMade(t *testing.T) {
	p := &spendingtest.Purse{Limit: 1}
	c, s := paying(t, p, answer{text: goodSummary})
	r, err := c.Compress(t.Context(), input(said("uauauauauauauauauauauauauauauauauauauaua", 4000)))
	if err != nil || r.Outcome != OverLimit || r.Over == nil || !strings.Contains(r.Reason, "today's limit of 1.00 USD for all chats together") {
		t.Fatalf("%+v, %v", r, err)
	}
	session := parent()
	if len(s.asked) != 0 || p.Spent != 0 || r.CoolDown(&session, now) {
		t.Errorf("asked %d times, booked %f", len(s.asked), p.Spent)
	}
}
