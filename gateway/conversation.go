package gateway

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	// joinWindow is how long after the start of a turn a further message of the
	// same person joins it.
	joinWindow = 2 * time.Second
	// restWindow is how long an album, or a text at the platform's limit, waits for
	// its rest (CON-003).
	restWindow = 1500 * time.Millisecond
	// compressionHold is how long a message waits for a compression under way.
	compressionHold = 10 * time.Second
	// crashLimit ends a turn whose process has died this often while running it.
	crashLimit = 3
)

// conversation is one goroutine that owns all state of one conversation. Its
// inbox is a table; its mailbox only wakes it. Turns, compressions and the poster
// are its children and report through the mailbox.
type conversation struct {
	g       *Gateway
	account *account
	log     *zap.Logger
	box     *mailbox

	fence record.Fence
	conv  record.Conversation
	inbox []record.InboxItem // received and not yet taken, in order
	gone  recentRows         // taken or ended
	acked map[int64]struct{} // waiting rows whose message shows that it was seen
	stale bool               // the work must be loaded again before it is trusted

	children    sync.WaitGroup
	turn        *runningTurn
	compression *runningCompression
	titled      record.SessionID // the session for which a title was made last
	fetching    *fetching
	questions   map[record.ApprovalID]*question
	post        *poster
	flush       chan struct{} // closed: the poster ends when its queue is empty
	posted      chan struct{} // closed when the poster has ended
	retryAt     time.Time     // after a failed load or a suspended turn
	recount     bool          // deliveries may be in the database that the poster does not know
	failing     int64         // the inbox row that failed last, and how often in a row
	failures    int
	draining    bool
	lost        bool // the claim is gone: end without a trace
}

// run is the goroutine. It returns when the conversation has retired or ctx
// ended; the poster and the children have ended by then.
func (c *conversation) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer c.children.Wait()
	defer cancel()
	if !c.open(ctx) {
		return
	}
	defer func() { c.account.limiter.leave(c.conv.Key.Address.Chat) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	idleSince := c.g.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.g.draining:
			c.drain(ctx)
			return
		case <-c.box.ring:
		case <-timer.C:
		}
		for _, it := range c.box.take() {
			c.guard(ctx, func() { c.handle(ctx, it) })
		}
		c.guard(ctx, func() { c.advance(ctx) })
		if c.lost {
			return
		}
		now := c.g.now()
		if c.busy() {
			idleSince = now
		} else if now.Sub(idleSince) >= c.g.cfg.Conversations.IdleTimeout && c.g.retire(ctx, c) {
			return
		}
		timer.Reset(c.nextTimer(now, idleSince))
	}
}

// open reads what the conversation is and all that is open, and starts the
// poster. It tries until the database answers.
func (c *conversation) open(ctx context.Context) bool {
	for {
		w, err := c.g.store.Work(ctx, c.fence)
		if err == nil {
			return c.adopt(ctx, w)
		}
		c.failed(err, "load")
		if c.lost {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-c.g.draining:
			return false
		case <-time.After(time.Second):
		}
	}
}

func (c *conversation) adopt(ctx context.Context, w record.Work) bool {
	c.conv = w.Conversation
	c.account = c.g.accounts[c.conv.Key.Address.Account]
	if c.account == nil {
		c.log.Error("open work of an account that is not configured; it waits until the account is", zap.String("account", string(c.conv.Key.Address.Account)))
		select {
		case <-ctx.Done():
		case <-c.g.draining:
		}
		return false
	}
	c.account.limiter.enter(c.conv.Key.Address.Chat, c.conv.Kind)
	c.questions, c.flush, c.posted = map[record.ApprovalID]*question{}, make(chan struct{}), make(chan struct{})
	c.post = newPoster(c.conv, c.fence, posterDeps{
		adapter: c.account.adapter, limiter: c.account.limiter, store: c.g.store, now: c.g.now,
		silent:  c.g.cfg.Streaming == StreamOff,
		drafts:  c.g.cfg.Streaming == StreamAuto,
		settled: func() { c.box.put(settled{}) }, fenced: func(f record.Fence) { c.box.put(fenced{f}) }, count: c.g.metrics.Delivery,
	}, c.log)
	c.children.Go(func() {
		defer close(c.posted)
		defer c.g.door("poster")
		c.post.run(ctx, c.flush)
	})
	c.recount = true
	c.guard(ctx, func() { c.take(ctx, w) })
	return true
}

// guard is the door of a conversation's items: a panic ends the item, not the
// process (SHD-007). The work is then loaded again.
func (c *conversation) guard(ctx context.Context, f func()) {
	defer func() {
		if r := recover(); r != nil {
			ref := c.g.reference()
			c.log.Error("panic in a conversation", zap.Any("panic", r), zap.String("reference", ref), zap.ByteString("stack", debug.Stack()))
			c.stale = true
			c.retryAt = c.g.now().Add(time.Second)
		}
	}()
	if ctx.Err() == nil {
		f()
	}
}

// handle takes one item of the mailbox.
func (c *conversation) handle(ctx context.Context, it item) {
	switch it := it.(type) {
	case wake:
		c.onWake(it)
	case turnEnded:
		c.onTurnEnded(ctx, it)
	case compressionEnded:
		c.onCompressionEnded(ctx, it)
	case fetched:
		c.onFetched(ctx, it)
	case asked:
		c.onAsked(ctx, it)
	case steerWanted:
		it.reply <- c.steer(ctx)
	case wakeLost:
		c.lose()
	case fenced:
		if it.fence.Epoch >= c.fence.Epoch { // not claimed anew meanwhile
			c.failed(record.ErrFenced, "post")
		}
	case settled:
	}
}

func (c *conversation) onWake(w wake) {
	if w.fence.Epoch > c.fence.Epoch {
		c.fence = w.fence
		c.post.refence(w.fence)
		c.stale = true
	}
	if w.hint == nil {
		c.stale = true
		return
	}
	c.keep(*w.hint)
}

// keep adds a received row in order of arrival, once. The hint of a row that was
// loaded and dealt with meanwhile comes too late.
func (c *conversation) keep(it record.InboxItem) {
	if c.gone.has(it.Seq) {
		return
	}
	i, found := slices.BinarySearchFunc(c.inbox, it.Seq, func(x record.InboxItem, seq int64) int { return int(x.Seq - seq) })
	if !found {
		c.inbox = slices.Insert(c.inbox, i, it)
	}
}

// drop forgets rows that were taken or ended.
func (c *conversation) drop(items ...record.InboxItem) {
	c.gone.add(items)
	c.unsee(items)
	c.inbox = slices.DeleteFunc(c.inbox, func(x record.InboxItem) bool {
		return slices.ContainsFunc(items, func(y record.InboxItem) bool { return x.Seq == y.Seq })
	})
}

// recentRows remembers the rows that were taken or ended last. A hint is under way
// only for as long as intake takes to return, so that few are enough.
type recentRows struct {
	seqs [32]int64
	next int
}

func (r *recentRows) add(items []record.InboxItem) {
	for _, it := range items {
		r.seqs[r.next%len(r.seqs)] = it.Seq
		r.next++
	}
}

func (r *recentRows) has(seq int64) bool { return slices.Contains(r.seqs[:], seq) }

// advance does whatever can be done now.
func (c *conversation) advance(ctx context.Context) {
	now := c.g.now()
	if now.Before(c.retryAt) {
		return
	}
	if c.stale && !c.load(ctx) {
		return
	}
	c.expire(ctx, now)
	c.process(ctx)
}

// load reads all that is open; after a crash or a takeover this is where work
// goes on.
func (c *conversation) load(ctx context.Context) bool {
	w, err := c.g.store.Work(ctx, c.fence)
	if err != nil {
		c.failed(err, "load")
		return false
	}
	c.take(ctx, w)
	return true
}

// take brings the goroutine's state in line with the rows.
func (c *conversation) take(ctx context.Context, w record.Work) {
	c.become(w.Conversation)
	c.stale, c.inbox = false, w.Inbox
	if c.compression != nil && c.compression.asked != nil {
		c.drop(c.compression.asked.item) // its row ends with the compression
	}
	c.recoverQuestions(w)
	if c.recount {
		c.recount = false
		c.recoverDeliveries(w)
	}
	if c.turn == nil && w.Turn != nil {
		c.recoverTurn(ctx, *w.Turn, w.Deliveries)
	}
}

// become takes over what the conversation's row says now, of a chat that may have a
// new id.
func (c *conversation) become(now record.Conversation) {
	if from, to := c.conv.Key.Address.Chat, now.Key.Address.Chat; from != to {
		c.account.limiter.enter(to, now.Kind)
		c.account.limiter.leave(from)
	}
	c.conv = now
}

// failed sorts an error of the store: without the claim the conversation ends,
// otherwise it tries again soon.
func (c *conversation) failed(err error, doing string) {
	if errors.Is(err, record.ErrFenced) {
		c.log.Info("the conversation has another owner now")
		c.lose()
		return
	}
	c.stale = true
	c.retryAt = c.g.now().Add(time.Second)
	c.log.Warn("store", zap.String("doing", doing), zap.Error(err))
}

// lose ends the conversation here: its turn is abandoned for the next owner.
func (c *conversation) lose() {
	c.lost = true
	if c.turn != nil {
		c.turn.cancel(errLostClaim)
	}
	c.g.forget(c)
}

// busy says whether anything is open.
func (c *conversation) busy() bool {
	return c.turn != nil || c.compression != nil || c.fetching != nil || len(c.inbox) > 0 || len(c.questions) > 0 || !c.post.idle() || c.stale
}

// nextTimer returns when the goroutine has to look again without being rung.
func (c *conversation) nextTimer(now, idleSince time.Time) time.Duration {
	at := idleSince.Add(c.g.cfg.Conversations.IdleTimeout)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	if c.stale || len(c.inbox) > 0 {
		sooner(c.retryAt)
	}
	for _, q := range c.questions {
		sooner(q.ExpiresAt)
	}
	if len(c.inbox) > 0 {
		sooner(c.notBefore())
		if c.compression != nil {
			sooner(c.compression.started.Add(compressionHold))
		}
	}
	return max(at.Sub(now), 10*time.Millisecond)
}

// process works through the inbox: first what never waits, then the messages and
// the commands that need an idle conversation, in order, as far as the state
// allows.
func (c *conversation) process(ctx context.Context) {
	for _, urgent := range []bool{true, false} {
		for _, it := range slices.Clone(c.inbox) {
			if c.lost || c.stale {
				return
			}
			if !slices.ContainsFunc(c.inbox, func(x record.InboxItem) bool { return x.Seq == it.Seq }) {
				continue // taken or ended together with an earlier one
			}
			ev, err := it.Event()
			if err != nil {
				c.log.Error("an inbox row cannot be read", zap.String("key", string(it.Key)), zap.Error(err))
				c.end(ctx, "unreadable: "+err.Error(), record.NoEffect{}, nil, it)
				continue
			}
			if neverWaits(ev) == urgent && !c.dispatch(ctx, it, ev) {
				break
			}
		}
	}
}

// neverWaits says whether an event is handled in any state, whatever is queued
// before it (STP-002).
func neverWaits(ev chat.Event) bool {
	name, args := "", ""
	switch ev := ev.(type) {
	case chat.MessageReceived:
		var ok bool
		if name, args, ok = parseCommand(ev.Text); !ok {
			return false
		}
	case chat.CommandInvoked:
		name, args = ev.Name, ev.Args
	case chat.ButtonPressed:
		name, args, _ = strings.Cut(strings.TrimPrefix(ev.Data, commandPrefix), " ")
	case chat.TaskDue:
		return false
	}
	cmd := commands[name]
	return !cmd.idle || cmd.lists && args == ""
}

// dispatch handles one event and reports whether later ones may be looked at.
func (c *conversation) dispatch(ctx context.Context, it record.InboxItem, ev chat.Event) (next bool) {
	switch ev := ev.(type) {
	case chat.MessageReceived:
		if name, args, ok := parseCommand(ev.Text); ok {
			return c.command(ctx, it, ev.Meta(), name, args)
		}
		return c.message(ctx, it, ev)
	case chat.CommandInvoked:
		return c.command(ctx, it, ev.Meta(), ev.Name, ev.Args)
	case chat.StopPressed:
		return c.command(ctx, it, ev.Meta(), "stop", "")
	case chat.ButtonPressed:
		return c.button(ctx, it, ev)
	case chat.MessageEdited:
		return c.edited(ctx, it, ev)
	case chat.MessageDeleted:
		return c.deleted(ctx, it, ev)
	case chat.TaskDue:
		return c.taskDue(ctx, it, ev)
	case chat.ConnectionChanged, chat.ChatMoved:
		c.end(ctx, "not a message", record.NoEffect{}, nil, it)
	}
	return true
}
