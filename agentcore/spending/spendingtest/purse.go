// Package spendingtest has a ledger in memory for tests.
package spendingtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/store/record"
)

// Purse is a ledger with one limit for everything, whatever scopes are asked for. It
// is safe for concurrent use, and its fields are for before and after.
type Purse struct {
	Limit, Spent, Extra float64
	// Err is what each reservation fails with, if set.
	Err error
	// Reserved are the amounts that were asked for.
	Reserved []float64
	Noted    []record.UsageEntry

	mu sync.Mutex
}

// Reserve implements spending.Ledger.
func (p *Purse) Reserve(_ context.Context, _ time.Time, limits []record.SpendingLimit, amount float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Err != nil {
		return p.Err
	}
	p.Reserved = append(p.Reserved, amount)
	if p.Spent+amount > p.Limit+p.Extra {
		return &record.SpendingError{SpendingLimit: limits[0], Spent: p.Spent, Allowed: p.Limit + p.Extra}
	}
	p.Spent += amount
	return nil
}

// Adjust implements spending.Ledger.
func (p *Purse) Adjust(_ context.Context, _ time.Time, _ []record.SpendingLimit, delta float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Spent += delta
	return nil
}

// AllowMore implements spending.Ledger.
func (p *Purse) AllowMore(_ context.Context, _ time.Time, _ string, amount float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Extra += amount
	return nil
}

// AddUsage implements spending.Ledger.
func (p *Purse) AddUsage(_ context.Context, e record.UsageEntry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Noted = append(p.Noted, e)
	return nil
}

// Now returns what is spent and noted while others use the purse.
func (p *Purse) Now() (spent float64, noted []record.UsageEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Spent, slices.Clone(p.Noted)
}
