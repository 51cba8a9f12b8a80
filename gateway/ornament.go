package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

// Ornaments are best-effort signs of life: a reaction on the message that is
// being worked on, or waits, and the typing notice until something is visible. They
// never hold anything up and are never repeated. An ordinary message costs one
// reaction before its answer and one after; "seen" is for those that have to wait.

// typingAfter is how long an answer may take to begin before a notice is worth a
// call to the platform.
const typingAfter = 400 * time.Millisecond

// typing keeps the typing notice alive until something is visible or stop is
// called; no notice comes after that (DEL-005). A timer that finds the
// turn ended does nothing.
func (c *conversation) typing(rt *runningTurn) (stop func()) {
	t, ok := c.account.adapter.(chat.Typer)
	ttl := c.account.adapter.Limits().TypingTTL
	if !ok || ttl <= 0 {
		return func() {}
	}
	var ended atomic.Bool
	show := func(ctx context.Context) {
		if ended.Load() || rt.live.show().writing {
			return
		}
		cctx, cancel := context.WithTimeout(ctx, noteLimit)
		defer cancel()
		if err := t.Typing(cctx, rt.row.Address); err != nil {
			c.log.Debug("typing", zap.Error(err))
		}
	}
	var due func()
	due = func() {
		if !ended.Load() {
			c.post.note(show)
			time.AfterFunc(ttl*4/5, due)
		}
	}
	time.AfterFunc(min(typingAfter, ttl), due)
	return func() { ended.Store(true) }
}

// see shows once on a message that has to wait for its turn that it was taken in.
func (c *conversation) see(it record.InboxItem, ev chat.MessageReceived) {
	if _, done := c.acked[it.Seq]; done {
		return
	}
	if c.acked == nil {
		c.acked = map[int64]struct{}{}
	}
	c.acked[it.Seq] = struct{}{}
	c.react(ev.Address, ev.Message, chat.ReactSeen)
}

// unsee takes that back from messages that do not wait any more.
func (c *conversation) unsee(items []record.InboxItem) {
	for _, it := range items {
		if _, seen := c.acked[it.Seq]; !seen {
			continue
		}
		delete(c.acked, it.Seq)
		if ev, err := it.Event(); err == nil {
			c.react(ev.Meta().Address, ev.Meta().Message, chat.ReactNone)
		}
	}
}

// showEnd replaces the reaction by what became of the turn.
func (c *conversation) showEnd(rt *runningTurn, s record.TurnState) {
	r := chat.ReactDone
	switch s {
	case record.TurnFailed:
		r = chat.ReactFailed
	case record.TurnInterrupted:
		r = chat.ReactNone
	default:
	}
	c.react(rt.row.Address, rt.row.Source, r)
}

func (c *conversation) react(to chat.Address, id chat.MessageID, r chat.Reaction) {
	re, ok := c.account.adapter.(chat.Reactor)
	if !ok || id == "" {
		return
	}
	c.post.note(func(ctx context.Context) {
		cctx, cancel := context.WithTimeout(ctx, noteLimit)
		defer cancel()
		if err := re.React(cctx, to, id, r); err != nil {
			c.log.Debug("reaction", zap.Error(err))
		}
	})
}
