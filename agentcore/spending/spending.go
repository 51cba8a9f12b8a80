// Package spending keeps what models cost within what may be spent on a day. What a
// call will probably cost is booked before it is made, against all limits or none, and
// corrected when it is known. It guarantees that calls made side by side never get
// over a limit together but for what an answer costs beyond the usual, and that what a
// process had booked when it died stays booked: a limit is kept, not guessed.
package spending

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/store/record"
)

// Config is `budgets:`, what may be spent on a day (UTC); 0: no limit.
type Config struct {
	Currency          string  `yaml:"currency"`
	PersonDaily       float64 `yaml:"person_daily"`
	ConversationDaily float64 `yaml:"conversation_daily"`
	TotalDaily        float64 `yaml:"total_daily"`
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	if c.PersonDaily < 0 || c.ConversationDaily < 0 || c.TotalDaily < 0 {
		return []error{errors.New("budgets: a limit must not be negative; 0 means no limit")}
	}
	return nil
}

// Ledger keeps what was spent, across processes; *store.DB is one.
type Ledger interface {
	// Reserve books an amount against every limit, all or none; a limit without room
	// is a *record.SpendingError.
	Reserve(ctx context.Context, day time.Time, limits []record.SpendingLimit, amount float64) error
	// Adjust corrects what was booked.
	Adjust(ctx context.Context, day time.Time, limits []record.SpendingLimit, delta float64) error
	// AllowMore raises a scope's limit for one day.
	AllowMore(ctx context.Context, day time.Time, scope string, amount float64) error
	// AddUsage notes what was used outside turns.
	AddUsage(ctx context.Context, e record.UsageEntry) error
}

// Deps are what a Book works with. A nil Ledger limits and notes nothing.
type Deps struct {
	Ledger Ledger
	// Price is what a model costs; nil: what is built in.
	Price func(llm.ModelID) llm.Price
	Now   func() time.Time
	Log   *zap.Logger
}

// Book is kept by whoever asks models. It is safe for concurrent use; a nil one prices
// by the built-in table and limits nothing.
type Book struct {
	cfg  Config
	deps Deps
}

// New opens a Book.
func New(cfg Config, d Deps) *Book {
	if d.Price == nil {
		d.Price = func(m llm.ModelID) llm.Price { return llm.FactsOf(m, nil).Price }
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	return &Book{cfg: cfg, deps: d}
}

// Reservation is what was booked for a call before it was made.
type Reservation struct {
	Day    time.Time
	Amount float64
	payer  record.Payer
	limits []record.SpendingLimit
}

// Currency is what amounts are in.
func (b *Book) Currency() string { return b.cfg.Currency }

// Reserve books what a call to a model will probably use. A limit without room is a
// *record.SpendingError, and nothing is booked then; the Reservation says what would
// have been. Any other error is the ledger's.
func (b *Book) Reserve(ctx context.Context, p record.Payer, m llm.ModelID, probably llm.Usage) (Reservation, error) {
	if b == nil {
		return Reservation{payer: p}, nil
	}
	r := Reservation{Day: b.deps.Now().UTC(), payer: p, limits: b.cfg.limits(p)}
	if b.deps.Ledger == nil || len(r.limits) == 0 {
		return r, nil
	}
	r.Amount = b.deps.Price(m).Cost(probably)
	return r, b.deps.Ledger.Reserve(ctx, r.Day, r.limits, r.Amount)
}

// Settle replaces what was reserved for a call by what it cost, and returns its usage
// with that. What no turn accounts for is noted too. It is booked whatever became of
// ctx.
func (b *Book) Settle(ctx context.Context, r Reservation, m llm.ModelID, u llm.Usage) llm.Usage {
	if b == nil {
		return u
	}
	if u.Cost == 0 {
		u.Cost = b.deps.Price(m).Cost(u)
	}
	if b.deps.Ledger == nil {
		return u
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var err error
	if delta := u.Cost - r.Amount; delta != 0 && len(r.limits) > 0 {
		err = b.deps.Ledger.Adjust(ctx, r.Day, r.limits, delta)
	}
	if r.payer.Purpose != "" && u != (llm.Usage{}) {
		err = errors.Join(err, b.deps.Ledger.AddUsage(ctx, record.UsageEntry{Payer: r.payer, Model: m, Usage: u}))
	}
	if err != nil {
		b.deps.Log.Error("what a call cost was not booked", zap.Float64("cost", u.Cost), zap.Error(err))
	}
	return u
}

// settleTimeout bounds a write that is made although the caller's context ended.
const settleTimeout = 5 * time.Second

// AllowMore raises the limit that was reached, for the reservation's day.
func (b *Book) AllowMore(ctx context.Context, r Reservation, over *record.SpendingError, amount float64) error {
	return b.deps.Ledger.AllowMore(ctx, r.Day, over.Scope, amount)
}

// limits are the scopes that a payer spends from.
func (c Config) limits(p record.Payer) []record.SpendingLimit {
	all := []record.SpendingLimit{
		{Scope: "total", Limit: c.TotalDaily},
		{Scope: "conversation:" + string(p.Conversation), Limit: c.ConversationDaily},
		{Scope: "person:" + string(p.Person), Limit: c.PersonDaily},
	}
	if p.Person == "" {
		all = all[:2]
	}
	used := all[:0]
	for _, l := range all {
		if l.Limit > 0 {
			used = append(used, l)
		}
	}
	return used
}
