package engine

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/store/record"
)

// blockedAfter compressions in a row that did not help stop further tries.
const blockedAfter = 2

// cooldowns are what failed tries in a row of one session cost.
var cooldowns = []time.Duration{60 * time.Second, 300 * time.Second, 900 * time.Second}

// forgivenAfter is how long after its cooldown a failure counts no more.
const forgivenAfter = time.Hour

// Deps are what the Compressor works with.
type Deps struct {
	// Summarise makes the summary call; it retries and falls back by itself.
	Summarise llm.Provider
	// Model is the one to ask.
	Model llm.ModelID
	// Window is the smallest context window of the models that may answer, in
	// tokens; a middle that does not fit is summarised in several calls (CMP-012,
	// CMP-015). 0: what is known about Model.
	Window int
	// Book keeps what the summary calls cost; nil: nothing is limited.
	Book *spending.Book
}

// Compressor is the default ContextEngine: it folds the middle of a history into
// one summary row and keeps the newest rows as they are. It is safe for
// concurrent use.
type Compressor struct {
	cfg  Config
	deps Deps
}

// New makes a Compressor.
func New(cfg Config, deps Deps) (*Compressor, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	if deps.Summarise == nil || deps.Model == "" {
		return nil, errors.New("engine: a provider and a model for summaries are needed")
	}
	if deps.Window == 0 {
		deps.Window = llm.FactsOf(deps.Model, nil).ContextWindow
	}
	return &Compressor{cfg: cfg, deps: deps}, nil
}

// Decide implements ContextEngine. The limit is window × fraction. A
// cooldown and a block hold back everything but /compress; after a compression
// it waits for the first real prompt size, which tells whether that one helped
// (the caller counts the ones that did not in Session.Ineffective).
func (c *Compressor) Decide(s State) Decision {
	window := windowOf(s.Window, s.Session)
	d := Decision{Tokens: PromptTokens(s.Session, s.Messages, s.Tools), Limit: c.limit(s.Trigger, window, fixedTokens(s.Session, s.Tools))}
	switch {
	case s.Trigger == Manual:
		d.Compress, d.Why = true, "over"
	case !c.cfg.Enabled:
		d.Why = "off"
	case d.Tokens < d.Limit:
		d.Why = "below"
	case s.Session.Ineffective >= blockedAfter:
		d.Why = "blocked"
	case s.Now.Before(s.Session.CoolUntil):
		d.Why = "cooling down"
	case s.Trigger != Overflow && unmeasured(s.Session):
		d.Why = "unmeasured"
	default:
		d.Compress, d.Why = true, "over"
	}
	return d
}

// limit is what the next prompt is held against. An overflow needs no estimate:
// the provider has measured. Where what no compression makes smaller takes more than
// the half of it, the conversation has a quarter of the window all the same, within
// what the limit between turns allows: otherwise a small window would be compressed
// each turn, without effect (CTX-007).
func (c *Compressor) limit(t Trigger, window, fixed int) int {
	between := int(float64(window) * c.cfg.GatewayThreshold)
	switch t {
	case Preflight:
		return max(int(float64(window)*c.cfg.Threshold), min(fixed+window/4, between))
	case Between:
		return between
	default:
		return 0
	}
}

// unmeasured says that a compression made the session and no prompt of it has
// been measured yet.
func unmeasured(s record.Session) bool {
	return s.Reason == record.ReasonCompression && s.PromptTokens == 0
}

func windowOf(window int, s record.Session) int {
	if window <= 0 {
		return llm.FactsOf(s.Model, nil).ContextWindow // a careful default (CMP-002)
	}
	return window
}

// Compress implements ContextEngine. Nothing is ever cut or dropped because a
// summary failed: the outcome is Aborted then, with a growing cooldown. The only
// error is ctx's own.
func (c *Compressor) Compress(ctx context.Context, in Input) (Result, error) {
	in.Window = windowOf(in.Window, in.Session)
	if in.Trigger != Manual {
		if in.Session.Ineffective >= blockedAfter {
			return Result{Outcome: Blocked, Reason: "the last compressions made no room; use /new, or /compress with a topic"}, nil
		}
		if left := in.Session.CoolUntil.Sub(in.Now); left > 0 {
			return Result{Outcome: CoolingDown, Reason: "the last try failed", Cooldown: left}, nil
		}
	}
	budget := c.tailBudget(in)
	p := divide(in.Messages, c.cfg, budget)
	if p.idle(in.Messages) {
		return Result{Outcome: NothingToDo}, nil
	}
	folded, tail := p.folded(in.Messages), p.tail(in.Messages, budget)
	text, facts, usage, err := c.summarise(ctx, in, earlier(in.Messages, p), folded)
	if err != nil {
		return c.unmade(ctx, in, usage, err)
	}
	r := Result{Outcome: Compressed, Folded: len(folded), Usage: usage, Before: total(in.Messages)}
	r.Compression = assemble(in, content(beginning(in.Messages[p.first:p.first+p.head]), text), tail, facts)
	r.After = MessageTokens(&r.Compression.Summary) + total(tail)
	if r.After >= r.Before {
		return aborted(in, usage, "the summary is longer than what it would replace"), nil
	}
	return r, nil
}

// unmade is a compression without a summary. At a spending limit nothing has failed:
// it is made once there is room again.
func (c *Compressor) unmade(ctx context.Context, in Input, u llm.Usage, err error) (Result, error) {
	var over *record.SpendingError
	switch {
	case ctx.Err() != nil:
		return Result{Usage: u}, ctx.Err()
	case errors.As(err, &over):
		return Result{Outcome: OverLimit, Usage: u, Reason: over.Words(c.deps.Book.Currency()), Over: over}, nil
	}
	return aborted(in, u, err.Error()), nil
}

// tailBudget is half the threshold. Where system prompt, tools and summary take so
// much of a small window that this would not bring the prompt clearly below, it is
// what keeps a quarter free: otherwise each turn would compress again (CTX-007).
func (c *Compressor) tailBudget(in Input) int {
	fixed := fixedTokens(in.Session, in.Tools)
	limit := c.limit(Preflight, in.Window, fixed)
	return min(limit/2, limit*3/4-fixed-mostSummary(in.Window))
}

// earlier is the summary that the new one goes on from. Older ones were its own
// base (CMP-020).
func earlier(msgs []record.Message, p partition) string {
	if p.first == 0 {
		return ""
	}
	return msgs[p.first-1].Content
}

// summarise folds rows into base, one call for each chunk.
func (c *Compressor) summarise(ctx context.Context, in Input, base string, rows []record.Message) (string, []fact, llm.Usage, error) {
	var usage llm.Usage
	var facts []fact
	// A token is three bytes or so; half the window leaves room for the base, the
	// instructions and the answer.
	limit := max(min(chunkBytes, c.deps.Window*3/2), 4*maxSaid)
	for _, chunk := range transcript(rows, limit) {
		resp, err := c.call(ctx, in, base, chunk)
		usage = usage.Add(resp.Usage)
		if err != nil {
			return "", nil, usage, err
		}
		text, more, err := body(resp)
		if err != nil {
			return "", nil, usage, err
		}
		base, facts = text, append(facts, more...)
	}
	return base, facts, usage, nil
}

// call asks for the summary of one chunk, within what may be spent.
func (c *Compressor) call(ctx context.Context, in Input, base, chunk string) (llm.Response, error) {
	req := ask(c.deps.Model, in, base, chunk)
	probably := llm.Usage{Input: TextTokens(instructions) + TextTokens(base) + TextTokens(chunk), Output: summaryTokens(in.Window, base, chunk)}
	booked, err := c.deps.Book.Reserve(ctx, in.Payer, c.deps.Model, probably)
	if err != nil {
		return llm.Response{}, err
	}
	resp, err := llm.Collect(ctx, c.deps.Summarise.Stream(ctx, req))
	resp.Usage = c.deps.Book.Settle(ctx, booked, cmp.Or(resp.Model, c.deps.Model), resp.Usage)
	return resp, err
}

// assemble makes the child. The caller sets its id, system prompt and model.
func assemble(in Input, summary string, tail []record.Message, facts []fact) record.Compression {
	scope := in.Scope
	if scope == "" {
		scope = "conversation:" + string(in.Session.Conversation)
	}
	s := in.Session
	child := record.Session{
		Conversation: s.Conversation, Parent: s.ID, Root: s.Root, Reason: record.ReasonCompression,
		Title: s.Title, Model: s.Model, Ineffective: s.Ineffective, CreatedAt: in.Now,
	}
	if in.Trigger == Overflow && unmeasured(s) {
		child.Ineffective++ // the parent was refused before it could be measured
	}
	if in.Trigger == Manual {
		child.Ineffective = 0 // a person asked for a new start
	}
	return record.Compression{
		Parent: s, Child: child, Tail: tail, UpTo: in.Messages[len(in.Messages)-1].Seq,
		Summary: record.Message{Role: llm.User, Kind: record.KindSummary, Content: strings.ToValidUTF8(summary, "\uFFFD"), CreatedAt: in.Now},
		Facts:   keep(facts, scope, in.Now),
	}
}

// aborted is a failed try: what it costs grows with the failures before it, which
// are on the session's row.
func aborted(in Input, u llm.Usage, reason string) Result {
	before := in.Session.FailedCompressions
	if in.Now.Sub(in.Session.CoolUntil) > forgivenAfter {
		before = 0
	}
	return Result{Outcome: Aborted, Usage: u, Reason: reason, Cooldown: cooldowns[min(before, len(cooldowns)-1)], Failures: before + 1}
}
