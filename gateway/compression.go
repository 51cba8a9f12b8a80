package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// runningCompression is the child that compresses a conversation between turns.
// Only /stop and shutdown cancel it; messages wait for it a while.
type runningCompression struct {
	cancel    context.CancelCauseFunc
	started   time.Time
	announced bool
	asked     *invocation // set for /compress
	done      chan struct{}
}

// considerCompression starts one if the last prompt was over the threshold.
func (c *conversation) considerCompression(ctx context.Context, r *agentcore.Result) {
	if c.compression != nil || c.draining || c.turn != nil || r.Session != c.conv.Session || float64(r.ContextTokens) < c.g.deps.CompressAt*float64(r.Window) {
		return
	}
	need, err := c.g.agent.NeedsCompression(ctx, c.compactRequest(engine.Between, ""))
	if err != nil || !need {
		return
	}
	c.compress(ctx, engine.Between, "", nil)
}

func (c *conversation) compactRequest(t engine.Trigger, topic string) agentcore.CompactRequest {
	return agentcore.CompactRequest{
		Conversation: c.conv, Trigger: t, Topic: topic, PlatformHint: platformHint(c.account.adapter.Limits()),
		Journal: &journal{store: c.g.store, fence: c.fence, turn: record.Turn{Session: c.conv.Session}},
	}
}

// compress starts the child goroutine.
func (c *conversation) compress(ctx context.Context, t engine.Trigger, topic string, in *invocation) {
	cctx, cancel := context.WithCancelCause(ctx)
	rc := &runningCompression{cancel: cancel, started: c.g.now(), asked: in, done: make(chan struct{})}
	c.compression = rc
	req := c.compactRequest(t, topic)
	c.log.Info("compression begins", zap.String("trigger", string(t)))
	killpoint.Here(killpoint.CompressionBegun)
	c.children.Go(func() {
		defer close(rc.done)
		defer cancel(nil)
		res, err := c.compact(cctx, req)
		c.box.put(compressionEnded{result: res, err: err})
	})
}

// compact is the door of a compression.
func (c *conversation) compact(ctx context.Context, req agentcore.CompactRequest) (res engine.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = c.g.panicked("compression", r)
		}
	}()
	return c.g.agent.Compact(ctx, req)
}

// onCompressionEnded commits the result, or keeps it until the turn that began
// meanwhile has ended: rows that are newer than the summary are copied along.
func (c *conversation) onCompressionEnded(ctx context.Context, e compressionEnded) {
	rc := c.compression
	if rc == nil {
		return
	}
	<-rc.done
	c.compression = nil
	text := ""
	switch {
	case e.err != nil:
		c.log.Warn("compression failed", zap.Error(e.err))
		text = "The conversation could not be compressed; nothing has changed."
	case e.result.Outcome != engine.Compressed:
		text = "Nothing was compressed: " + string(e.result.Outcome) + "."
		if e.result.Reason != "" {
			text = "Nothing was compressed: " + inert(e.result.Reason) + "."
		}
		c.rememberOutcome(ctx, e.result)
	default:
		text = c.swap(ctx, e.result)
	}
	switch {
	case rc.asked != nil:
		var buttons [][]chat.Button
		if c.stale { // there is a new summary
			buttons = append(buttons, showSummary)
		}
		c.answer(ctx, *rc.asked, text, record.NoEffect{}, buttons...)
	case e.result.Outcome == engine.Blocked:
		c.notice(ctx, "blocked/"+string(c.conv.Session), "⚠️ "+text+" `/new` begins afresh, `/compress TOPIC` tries once more.")
	case c.stale && c.conv.Verbose != record.VerboseOff:
		c.notice(ctx, "folded/"+string(e.result.Compression.Child.ID), "*"+text+"*", showSummary)
	}
}

// showSummary is the button that shows what was folded.
var showSummary = []chat.Button{{Label: "Show the summary", Data: commandPrefix + "summary"}}

// cmdSummary shows the summary that stands for what was folded in this session.
func (c *conversation) cmdSummary(ctx context.Context, in invocation) {
	rows, err := c.g.store.History(ctx, c.conv.Session)
	if err != nil {
		c.failed(err, "read the history")
		return
	}
	i := slices.IndexFunc(rows, func(m record.Message) bool { return m.Kind == record.KindSummary })
	if i < 0 {
		c.answer(ctx, in, "Nothing of this session has been folded into a summary.", record.NoEffect{})
		return
	}
	c.answer(ctx, in, "🗜 **What was folded, as I remember it**\n\n"+rows[i].Content, record.NoEffect{})
}

// swap moves the conversation to the compressed child and says what happened.
func (c *conversation) swap(ctx context.Context, r engine.Result) string {
	killpoint.Here(killpoint.CompressionMade)
	if c.turn != nil {
		c.log.Info("compression dropped: a turn has begun meanwhile")
		return "The conversation went on meanwhile; nothing has changed."
	}
	_, err := c.g.store.Compress(ctx, c.fence, r.Compression)
	if errors.Is(err, record.ErrConflict) {
		return "The conversation moved on meanwhile; nothing has changed."
	}
	if err != nil {
		c.failed(err, "commit a compression")
		return "The conversation could not be compressed; nothing has changed."
	}
	killpoint.Here(killpoint.CompressionSwap)
	c.stale = true
	c.log.Info("compressed", zap.Int("folded", r.Folded), zap.Int("before", r.Before), zap.Int("after", r.After))
	return fmt.Sprintf("🗜 %s folded into a summary (about %d → %d tokens). Everything before is kept: `/sessions`.", plural(r.Folded, "message"), r.Before, r.After)
}

// rememberOutcome stores a cooldown, so that it survives a restart.
func (c *conversation) rememberOutcome(ctx context.Context, r engine.Result) {
	s, err := c.g.store.Session(ctx, c.conv.Session)
	if err == nil && r.CoolDown(&s, c.g.now()) {
		err = c.g.store.SetSession(ctx, c.fence, s)
	}
	if err != nil {
		c.failed(err, "store a cooldown")
	}
}

// announce tells once that a message waits for the compression.
func (rc *runningCompression) announce(ctx context.Context, c *conversation) {
	if rc.announced {
		return
	}
	rc.announced = true
	c.notice(ctx, "compressing/"+record.NewID(), "🗜 *One moment: I am folding the long conversation so far.*")
}

func (c *conversation) cmdCompress(ctx context.Context, in invocation) {
	if !c.makeWay(ctx, in) {
		return
	}
	c.drop(in.item) // it is answered when the compression has ended
	c.compress(ctx, engine.Manual, clip(in.args, 500), &in)
}
