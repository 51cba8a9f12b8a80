package gateway

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"parley/store/record"
)

const (
	// sweepInterval is how often orphans are looked for; claimBatch at a time.
	sweepInterval = 2 * time.Second
	claimBatch    = 64
	// clearEvery is how many sweeps pass before the outbox is looked through again.
	clearEvery = int(time.Hour / sweepInterval)
)

// listen wakes conversations that other replicas stored events for.
func (g *Gateway) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := g.store.Listen(ctx, g.replica(), func(id record.ConversationID) {
			g.mu.Lock()
			c := g.conversations[id]
			g.mu.Unlock()
			if id == "" || c == nil {
				g.lookEverywhere(ctx)
				return
			}
			c.box.put(wake{})
		})
		if err != nil && ctx.Err() == nil {
			g.log.Warn("listen", zap.Error(err))
			pause(ctx, time.Second)
		}
	}
}

// sweep takes over the conversations of dead replicas, at the start and for ever,
// and looks for what a lost notification would have told.
func (g *Gateway) sweep(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		if n%clearEvery == 0 {
			g.clearOutbox()
		}
		g.claim(ctx)
		if n%5 == 4 {
			g.lookEverywhere(ctx)
		}
		pause(ctx, sweepInterval)
	}
}

func (g *Gateway) claim(ctx context.Context) {
	for ctx.Err() == nil {
		fences, err := g.store.ClaimOrphans(ctx, g.replica(), claimBatch)
		if err != nil {
			if ctx.Err() == nil {
				g.log.Warn("claim orphans", zap.Error(err))
			}
			return
		}
		for _, f := range fences {
			g.log.Info("conversation taken over", zap.String("conversation", string(f.Conversation)))
			g.wake(f, nil)
		}
		if len(fences) < claimBatch {
			return
		}
	}
}

// lookEverywhere wakes every owned conversation with open work.
func (g *Gateway) lookEverywhere(ctx context.Context) {
	fences, err := g.store.Owned(ctx, g.replica())
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("look for open work", zap.Error(err))
		}
		return
	}
	for _, f := range fences {
		g.wake(f, nil)
	}
}

// recoverDeliveries settles what the rows say is unsettled. Live parts belong to
// their turn, and cards of questions that are no longer open are let be.
func (c *conversation) recoverDeliveries(w record.Work) {
	for _, d := range w.Deliveries {
		ofTurn := w.Turn != nil && d.Turn == w.Turn.ID && d.Kind == record.DeliverLive
		if ofTurn || d.State.Settled() || (d.Kind == record.DeliverCard && c.questions[d.Approval] == nil) {
			continue
		}
		c.post.addMissing(d)
	}
}

// recoverTurn resumes an open turn, or ends it with a word when it broke off too
// often.
func (c *conversation) recoverTurn(ctx context.Context, t record.Turn, ds []record.Delivery) {
	posted := slices.DeleteFunc(slices.Clone(ds), func(d record.Delivery) bool { return d.Turn != t.ID || d.Kind == record.DeliverFinal })
	if t.Crashes >= crashLimit {
		c.log.Error("a turn is ended: it broke off too often", zap.String("turn", string(t.ID)), zap.Int("crashes", t.Crashes))
		c.post.begin(t, newLive(c.conv, c.post.ring), posted)
		c.endBroken(ctx, t, c.g.reference(), "it broke off three times")
		c.stale = true
		return
	}
	c.resume(ctx, t, posted)
}
