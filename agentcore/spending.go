package agentcore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/store/record"
)

// SpendingConfig is `budgets:`, what may be spent on a day (UTC); 0: no limit.
type SpendingConfig struct {
	Currency          string  `yaml:"currency"`
	PersonDaily       float64 `yaml:"person_daily"`
	ConversationDaily float64 `yaml:"conversation_daily"`
	TotalDaily        float64 `yaml:"total_daily"`
}

// Validate reports every wrong value with its key and what is allowed.
func (c SpendingConfig) Validate() []error {
	if c.PersonDaily < 0 || c.ConversationDaily < 0 || c.TotalDaily < 0 {
		return []error{errors.New("budgets: a limit must not be negative; 0 means no limit")}
	}
	return nil
}

// Limited says whether anything is limited at all.
func (c SpendingConfig) Limited() bool {
	return c.PersonDaily+c.ConversationDaily+c.TotalDaily > 0
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
}

// usualOutput is the size of an answer, in tokens, that is reserved for: the
// model's limit would block people over answers that are never that long.
const usualOutput = 2000

// reservation is what was booked for a model call before it was made.
type reservation struct {
	day    time.Time
	amount float64
}

// limits are the scopes that the turn spends from.
func (t *turn) limits() []record.SpendingLimit {
	c := t.a.deps.Spending
	all := []record.SpendingLimit{
		{Scope: "total", Limit: c.TotalDaily},
		{Scope: "person:" + string(t.row.Person), Limit: c.PersonDaily},
		{Scope: "conversation:" + string(t.row.Conversation), Limit: c.ConversationDaily},
	}
	used := all[:0]
	for _, l := range all {
		if l.Limit > 0 {
			used = append(used, l)
		}
	}
	return used
}

// reserve books what the next call will probably cost. At a limit an admin is
// asked to allow more; without that the turn ends with a word about it.
func (t *turn) reserve(ctx context.Context) (reservation, error) {
	limits := t.limits()
	if t.a.deps.Ledger == nil || len(limits) == 0 {
		return reservation{}, nil
	}
	r := reservation{day: t.a.deps.Now().UTC(), amount: cost(llm.Usage{Input: t.contextTokens, Output: usualOutput}, t.facts.Price)}
	for try := 0; ; try++ {
		err := t.a.deps.Ledger.Reserve(ctx, r.day, limits, r.amount)
		var over *record.SpendingError
		if !errors.As(err, &over) {
			return r, err
		}
		if err := t.askForMore(ctx, over, r, try); err != nil {
			return reservation{}, err
		}
	}
}

// askForMore asks an admin, once for each time that the limit is reached.
func (t *turn) askForMore(ctx context.Context, over *record.SpendingError, r reservation, try int) error {
	more := max(over.Limit, r.amount)
	cur := t.a.deps.Spending.Currency
	what := map[byte]string{'t': "all chats together", 'p': "one person", 'c': "this chat"}[over.Scope[0]]
	reached := fmt.Sprintf("Today's limit of %.2f %s for %s is reached (%.2f spent).", over.Allowed, cur, what, over.Spent)
	t.emit(Status{State: t.row.State, Text: "the daily limit is reached; an admin is asked", Visible: true, ContextTokens: t.contextTokens, Window: t.window})
	now := t.a.deps.Now()
	a, err := t.req.Asker.Ask(ctx, record.Approval{
		ID: record.ApprovalID(record.NewID()), Conversation: t.row.Conversation, Turn: t.row.ID, Kind: record.AskSpending,
		CallID:   fmt.Sprintf("spending-%d-%d", t.row.Iteration, try),
		Question: fmt.Sprintf("💸 **%s** Allow %.2f %s more today? Only an admin can.", reached, more, cur),
		State:    record.ApprovalOpen, Asked: t.row.Person, CreatedAt: now, ExpiresAt: now.Add(t.a.deps.ApprovalTimeout),
	})
	if err != nil {
		return err
	}
	if a.State != record.ApprovalApproved {
		return &userError{text: reached + " It begins anew at midnight UTC; an admin can allow more before."}
	}
	return t.a.deps.Ledger.AllowMore(ctx, r.day, over.Scope, more)
}

// settle replaces what was reserved for a call by what it cost. It is booked
// whatever became of the turn's context.
func (t *turn) settle(ctx context.Context, r reservation, u llm.Usage) {
	if t.a.deps.Ledger == nil {
		return
	}
	limits := t.limits()
	delta := u.Cost - r.amount
	if len(limits) == 0 || delta == 0 {
		return
	}
	if r.day.IsZero() {
		r.day = t.a.deps.Now().UTC()
	}
	wctx, cancel := detached(ctx)
	defer cancel()
	if err := t.a.deps.Ledger.Adjust(wctx, r.day, limits, delta); err != nil {
		t.log.Error("what a call cost was not booked", zap.Float64("cost", u.Cost), zap.Error(err))
	}
}

// priced fills in what a call cost where the provider does not say.
func (t *turn) priced(u llm.Usage, m llm.ModelID) llm.Usage {
	if u.Cost == 0 {
		u.Cost = cost(u, t.a.deps.Facts(m).Price)
	}
	return u
}

// cost is what usage costs at prices per million tokens. What the cache served
// costs less where a price for it is known.
func cost(u llm.Usage, p llm.Price) float64 {
	cached := p.CachedInput
	if cached == 0 {
		cached = p.Input
	}
	fresh := u.Input - u.CachedInput
	return (float64(fresh)*p.Input + float64(u.CachedInput)*cached + float64(u.Output)*p.Output) / 1e6
}
