package provider

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// The waits of the mission's section 3.
const (
	firstWait     = 2 * time.Second // doubled for each further call
	limitWait     = 5 * time.Second // a rate limit that says nothing
	longestWait   = time.Minute     // of what a server may ask for
	pointlessWait = 10 * time.Minute
	worthSaying   = time.Second // shorter waits pass unnoticed
)

// How often a model is called in all.
const (
	callsWithFallback = 2
	callsOfLast       = 4
	callsOfEmpty      = 4
	callsRepaired     = 4
)

// How long a failed model is passed over, so that the next turns do not pay for
// its failure again.
const (
	coolTransient = time.Minute
	coolBroken    = 5 * time.Minute // a key, an account or a name does not mend itself
)

// Recovery calls the models of a chain until one answers. Only the kind of an
// error decides:
//
//	rate limit                  wait what the server asks, once; then the next model
//	timeout, network, 5xx       wait 2 s, once; then the next; the last model is called 4 times (2, 4, 8 s)
//	empty answer                like these, 4 calls of each model
//	auth                        if the key can be read again and has changed, once more with
//	                            it, once; then the next model
//	billing, no model,
//	content filter, off         the next model at once
//	repaired by the client      again at once
//	overflow, malformed, other  returned
//
// A server that asks for more than ten minutes is not waited for. Before each
// further call it yields Restarted: whatever came before is void. Every wait ends
// at once with the context. It is safe for concurrent use.
type Recovery struct {
	set    *Set
	models []llm.ModelID
}

var _ llm.Provider = (*Recovery)(nil)

// errStopped: the consumer wants no more events.
var errStopped = errors.New("stopped")

// Stream implements llm.Provider.
func (r *Recovery) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		models := Chain{Model: req.Model, Fallback: r.models}.models()
		c := &call{set: r.set, req: *req, yield: yield}
		err := c.run(ctx, r.set.order(models))
		switch {
		case err == nil || errors.Is(err, errStopped):
			return
		case ctx.Err() != nil:
			err = ctx.Err()
		}
		yield(nil, err)
	}
}

// call is one request on its way through the chain.
type call struct {
	set   *Set
	req   llm.Request
	yield func(llm.Event, error) bool
}

// run asks the models in order.
func (c *call) run(ctx context.Context, models []llm.ModelID) error {
	err := error(&llm.Error{Kind: llm.KindUnavailable, Message: "no model is configured"})
	for i, m := range models {
		if i > 0 {
			if err := c.restart(ctx, 0, m, reason(err)); err != nil {
				return err
			}
		}
		c.req.Model = m
		var next bool
		next, err = c.model(ctx, i == len(models)-1)
		if err == nil || !next {
			return err
		}
	}
	return err
}

// model calls one model until it answers or nothing more can be done; next says
// whether another model may.
func (c *call) model(ctx context.Context, last bool) (next bool, err error) {
	e, err := c.set.endpoint(c.req.Model)
	if err != nil {
		return true, &llm.Error{Kind: llm.KindUnavailable, Model: c.req.Model, Message: err.Error(), Err: err}
	}
	renewed := false
	for calls := 1; ; calls++ {
		client, key := e.current()
		err := c.attempt(ctx, e.gate, client)
		if err == nil {
			c.set.warm(c.req.Model)
			return false, nil
		}
		var failure *llm.Error
		switch {
		case ctx.Err() != nil || errors.Is(err, errStopped):
			return false, err
		case !errors.As(err, &failure):
			failure = &llm.Error{Kind: llm.KindUnknown, Model: c.req.Model, Err: err}
		}
		d := decide(failure, calls, last)
		if failure.Kind == llm.KindAuth && !renewed && c.renew(ctx, e, key) {
			renewed, calls = true, calls-1 // the key was at fault, not the call
			d = decision{again: true}
		}
		wait := time.Duration(float64(d.wait) * c.jitterOf(failure))
		c.set.log.Warn("model call failed",
			zap.String("model", string(c.req.Model)), zap.String("kind", string(failure.Kind)), zap.Int("status", failure.Status),
			zap.String("message", failure.Message), zap.Int("call", calls), zap.Bool("again", d.again), zap.Duration("wait", wait))
		if failure.Kind == llm.KindRateLimit {
			e.gate.throttle(min(wait, longestWait))
		}
		if !d.again {
			if d.cool > 0 {
				c.set.cool(c.req.Model, d.cool)
			}
			return d.next, failure
		}
		if err := c.restart(ctx, wait, c.req.Model, reason(failure)); err != nil {
			return false, err
		}
	}
}

// renew reads a refused key again, if that is possible.
func (c *call) renew(ctx context.Context, e *endpoint, refused secret.String) bool {
	ok, err := e.renew(ctx, refused)
	if err != nil {
		c.set.log.Warn("the key cannot be read again", zap.String("model", string(c.req.Model)), zap.Error(err))
	}
	return ok
}

// jitterOf spreads waits; what a server asks for is never shortened.
func (c *call) jitterOf(e *llm.Error) float64 {
	if e.Kind == llm.KindRateLimit && e.RetryAfter > 0 {
		return 1
	}
	return c.set.jitter()
}

// decision is what happens after a failed call.
type decision struct {
	again bool // the same model once more, after wait
	wait  time.Duration
	next  bool // or the next model
	cool  time.Duration
}

// decide applies the table; calls counts the calls of this model so far, last says
// that there is no other.
func decide(e *llm.Error, calls int, last bool) decision {
	switch e.Kind {
	case llm.KindRateLimit:
		d := decision{wait: limitWait, next: true, cool: coolTransient}
		if e.RetryAfter > 0 {
			d.wait = min(e.RetryAfter, longestWait)
			d.cool = max(d.cool, min(e.RetryAfter, time.Hour))
		}
		d.again = calls < 2 && e.RetryAfter <= pointlessWait
		return d
	case llm.KindTimeout, llm.KindNetwork, llm.KindOverloaded:
		limit := callsWithFallback
		if last {
			limit = callsOfLast
		}
		return decision{again: calls < limit, wait: firstWait << (calls - 1), next: true, cool: coolTransient}
	case llm.KindEmpty:
		return decision{again: calls < callsOfEmpty, wait: firstWait << (calls - 1), next: true}
	case llm.KindAuth, llm.KindBilling, llm.KindNotFound:
		return decision{next: true, cool: coolBroken}
	case llm.KindFiltered, llm.KindUnavailable:
		return decision{next: true}
	case llm.KindMalformed:
		return decision{again: e.Repaired && calls < callsRepaired}
	default:
		return decision{}
	}
}

// restart tells that the call is made again and waits.
func (c *call) restart(ctx context.Context, wait time.Duration, m llm.ModelID, why string) error {
	if !c.yield(llm.Restarted{Wait: wait, Model: m, Reason: why}, nil) {
		return errStopped
	}
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt is one call. An answer without text, calls and thinking is an error, and
// so is one that announces calls and has none (PRV-035).
func (c *call) attempt(ctx context.Context, g *gate, client llm.Provider) error {
	// A pause that an earlier call was asked to make is this one's too, and shown.
	if rest := g.rest(); rest >= worthSaying {
		limited := &llm.Error{Kind: llm.KindRateLimit}
		if !c.yield(llm.Restarted{Wait: rest, Model: c.req.Model, Reason: reason(limited)}, nil) {
			return errStopped
		}
	}
	if err := g.enter(ctx); err != nil {
		return err
	}
	answered := false
	defer func() { g.leave(answered) }()
	var something, calls bool
	for ev, err := range client.Stream(ctx, &c.req) {
		if err != nil {
			return err
		}
		switch ev := ev.(type) {
		case llm.TextDelta:
			something = something || ev.Text != ""
		case llm.ReasoningDelta:
			something = something || ev.Text != ""
		case llm.ToolCallDelta:
			something, calls = true, true
		case llm.Finished:
			if empty(ev, something, calls) {
				return &llm.Error{Kind: llm.KindEmpty, Model: c.req.Model, Message: "the model answered nothing"}
			}
			answered = true
		}
		if !c.yield(ev, nil) {
			return errStopped
		}
	}
	if answered {
		return nil
	}
	if ctx.Err() == nil {
		return &llm.Error{Kind: llm.KindNetwork, Model: c.req.Model, Message: "the answer was cut off"}
	}
	return ctx.Err()
}

// empty leaves answers that a limit or a filter ended to the turn, which knows
// what to say.
func empty(f llm.Finished, something, calls bool) bool {
	switch f.Reason {
	case llm.FinishStop:
		return !something
	case llm.FinishToolCalls:
		return !calls
	default:
		return false
	}
}

// reason says for people why a call is made again.
func reason(err error) string {
	var e *llm.Error
	if !errors.As(err, &e) {
		return "failed"
	}
	switch e.Kind {
	case llm.KindAuth:
		return "the key was refused"
	case llm.KindBilling:
		return "the account's quota is used up"
	case llm.KindRateLimit:
		return "rate limited"
	case llm.KindOverloaded:
		return "the provider has trouble"
	case llm.KindNetwork:
		return "the connection broke"
	case llm.KindTimeout:
		return "no answer in time"
	case llm.KindNotFound:
		return "the model does not exist"
	case llm.KindFiltered:
		return "refused by a content filter"
	case llm.KindEmpty:
		return "an empty answer"
	case llm.KindUnavailable:
		return "the provider is off"
	case llm.KindMalformed:
		return "the request is put differently"
	default:
		return "failed"
	}
}
