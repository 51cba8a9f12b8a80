package gateway

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// drain ends the conversation at shutdown: a turn gets the grace period, then is
// suspended; what is settled meanwhile is settled; the claim is released.
func (c *conversation) drain(ctx context.Context) {
	c.draining = true
	grace := time.NewTimer(c.g.cfg.Shutdown.Grace)
	defer grace.Stop()
	hurry := c.g.hurry
	if c.compression != nil {
		c.compression.cancel(errShutdown)
	}
	for c.turn != nil || c.compression != nil {
		select {
		case <-grace.C:
			c.cancelTurn(errShutdown)
		case <-hurry:
			hurry = nil
			c.cancelTurn(errShutdown)
		case <-c.box.ring:
			for _, it := range c.box.take() {
				c.guard(ctx, func() { c.handle(ctx, it) })
			}
			c.guard(ctx, func() { c.control(ctx) })
		}
	}
	c.settleAndRelease(ctx)
}

// settleAndRelease gives the deliveries time to settle and the claim up (SHD-002).
func (c *conversation) settleAndRelease(ctx context.Context) {
	close(c.flush)
	limit := time.NewTimer(flushLimit)
	defer limit.Stop()
	select {
	case <-c.posted:
	case <-limit.C:
	case <-c.g.hurry:
	}
	if _, err := c.g.store.Release(ctx, c.fence, true); err != nil {
		c.log.Warn("release", zap.Error(err))
	}
}

// control lets stop and the answers to questions through while draining.
func (c *conversation) control(ctx context.Context) {
	for _, it := range slices.Clone(c.inbox) {
		ev, err := it.Event()
		if err != nil {
			continue
		}
		switch ev := ev.(type) {
		case chat.ButtonPressed:
			c.button(ctx, it, ev)
		case chat.StopPressed:
			c.command(ctx, it, ev.Meta(), "stop", "")
		case chat.MessageReceived:
			if name, args, ok := parseCommand(ev.Text); ok && commands[name].urgent {
				c.command(ctx, it, ev.Meta(), name, args)
			}
		}
	}
}
