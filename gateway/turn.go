package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// The causes with which the gateway suspends a turn; they wrap
// agentcore.ErrSuspend, so the next owner resumes it.
var (
	errShutdown  = fmt.Errorf("parley is shutting down: %w", agentcore.ErrSuspend)
	errLostClaim = fmt.Errorf("the conversation has another owner: %w", agentcore.ErrSuspend)
)

// runningTurn is the child that runs the agent for a conversation.
type runningTurn struct {
	row     record.Turn
	cancel  context.CancelCauseFunc
	live    *live
	restart *agentcore.Restart
	joined  time.Time // when the last message that belongs to it was received
	ending  string    // why it was cancelled, "" while it runs
	steered []record.InboxItem
	done    chan struct{}
}

// message decides what an ordinary message does now.
func (c *conversation) message(ctx context.Context, it record.InboxItem, ev chat.MessageReceived) (next bool) {
	if c.fetchFirst(ctx, it, ev) {
		return false
	}
	if c.answersQuestion(ctx, it, ev) {
		return true
	}
	if c.turn != nil {
		c.whileBusy(ctx, it, ev)
		return true
	}
	for _, next := range c.together(it.Seq) {
		if ev, err := next.Event(); err == nil && c.fetchFirst(ctx, next, ev.(chat.MessageReceived)) {
			return false
		}
	}
	now := c.g.now()
	if c.draining || now.Before(c.notBefore()) {
		return false
	}
	if c.compression != nil && now.Sub(c.compression.started) < compressionHold {
		c.compression.announce(ctx, c)
		return false
	}
	if ev.From.Bot && c.looping(ctx, it) {
		return true
	}
	c.startTurn(ctx, it.Seq)
	return true
}

// botAnswers is how many messages of bots are answered in a row. After that a
// conversation is silent to them until a person has written.
const botAnswers = 4

// looping ends a bot's message unanswered when it would be one too many in a row.
func (c *conversation) looping(ctx context.Context, it record.InboxItem) bool {
	n, err := c.g.store.UnattendedInARow(ctx, c.fence.Conversation)
	switch {
	case err != nil:
		c.failed(err, "count answers to bots")
	case n >= botAnswers:
		c.end(ctx, fmt.Sprintf("not answered: %d messages of bots in a row were, and no person has written since", n), record.NoEffect{}, nil, it)
	default:
		return false
	}
	return true
}

// notBefore is when the newest message of the inbox may start a turn: parts of an
// album and texts at the platform's limit wait for their rest.
func (c *conversation) notBefore() time.Time {
	var at time.Time
	for _, it := range c.inbox {
		if it.Kind != chat.KindMessage {
			continue
		}
		if ev, err := it.Event(); err == nil {
			if m := ev.(chat.MessageReceived); m.Group != "" || m.AtLimit {
				at = it.ReceivedAt.Add(restWindow)
			}
		}
	}
	return at
}

// whileBusy follows the busy mode for a message that comes during a turn. Unless
// the turn takes it, it stays in the inbox for the next one.
func (c *conversation) whileBusy(ctx context.Context, it record.InboxItem, ev chat.MessageReceived) {
	t, b := c.turn, c.turn.live.busy()
	if t.ending != "" || slices.ContainsFunc(t.steered, func(x record.InboxItem) bool { return x.Seq == it.Seq }) {
		return
	}
	if ev.From.Bot {
		return // it waits: no bot interrupts or steers
	}
	if unattended(t.row) {
		c.see(it, ev)
		return
	}
	own := ev.From.ID == t.row.Person
	if own && !b.ranTool && it.ReceivedAt.Sub(t.joined) < joinWindow {
		c.join(it)
		return
	}
	mode := c.g.cfg.Conversations.Busy
	if mode == BusyInterrupt && !own && !c.roleOf(ctx, ev.From.ID).Admin() {
		mode = BusyQueue
	}
	if mode == BusyInterrupt && b.mustFinish {
		mode = BusySteer
	}
	switch mode {
	case BusyInterrupt:
		c.cancelTurn(agentcore.ErrInterrupted)
	case BusySteer:
		t.steered = append(t.steered, it)
	case BusyQueue:
		c.see(it, ev)
	}
}

// join hands a quick follow-up to the running turn, which abandons its model call
// and makes it again.
func (c *conversation) join(it record.InboxItem) {
	c.turn.steered = append(c.turn.steered, it)
	c.turn.joined = it.ReceivedAt
	c.turn.restart.Raise()
}

// steer hands the messages that wait to the running turn, as rows of it.
func (c *conversation) steer(ctx context.Context) []record.Message {
	if c.turn == nil || len(c.turn.steered) == 0 {
		return nil
	}
	items := c.turn.steered
	msgs := c.userRows(items)
	if c.turn.live.busy().ranTool {
		for i := range msgs {
			msgs[i].Kind = record.KindSteer
		}
	}
	if err := c.g.store.JoinTurn(ctx, c.fence, c.turn.row.ID, items, msgs); err != nil {
		c.failed(err, "join a turn")
		return nil
	}
	c.drop(items...)
	c.turn.steered = nil
	c.post.cover()
	return msgs
}

// startTurn takes the messages that stand together at the front of the inbox,
// from one person in a direct chat or several in a room, and begins a turn.
func (c *conversation) startTurn(ctx context.Context, first int64) {
	items := c.together(first)
	if slices.ContainsFunc(items, attached) {
		c.prune()
	}
	msgs := c.userRows(items)
	lead, err := items[0].Event()
	if err != nil {
		return
	}
	last, _ := items[len(items)-1].Event()
	t := c.newTurn(last.Meta(), lead.Meta().From.ID)
	if lead.Meta().From.Bot {
		t.Trust = record.TrustUntrusted
	}
	begun, err := c.g.store.StartTurn(ctx, c.fence, record.TurnStart{Turn: t, Items: items, Messages: msgs})
	if err != nil {
		c.failed(err, "start a turn")
		c.giveUp(ctx, items, err)
		return
	}
	killpoint.Here(killpoint.TurnStarted)
	delete(c.acked, items[len(items)-1].Seq) // the turn's own reaction replaces it
	c.drop(items...)
	c.runNew(ctx, begun)
	c.turn.joined = items[len(items)-1].ReceivedAt
}

// newTurn makes the row of a turn that answers an event.
func (c *conversation) newTurn(o chat.Origin, p chat.Person) record.Turn {
	return record.Turn{
		ID: record.TurnID(record.NewID()), Conversation: c.fence.Conversation, Session: c.conv.Session, State: record.TurnPreparing,
		Budget: record.Budget{Initial: c.g.deps.MaxTurns, Cap: c.g.deps.MaxTurns}, Person: p, Trust: record.TrustUser,
		Address: o.Address, Reply: o.Reply, Source: o.Message,
	}
}

// together returns the messages from seq on that make one turn: everything up to
// the next command or button. What a bot says is never mixed with what people say.
func (c *conversation) together(seq int64) []record.InboxItem {
	var items []record.InboxItem
	bot := false
	for _, it := range c.inbox {
		if it.Seq < seq {
			continue
		}
		ev, err := it.Event()
		m, ok := ev.(chat.MessageReceived)
		if err != nil || !ok {
			break
		}
		if _, _, cmd := parseCommand(m.Text); cmd {
			break
		}
		if len(items) > 0 && m.From.Bot != bot {
			break
		}
		bot = m.From.Bot
		items = append(items, it)
	}
	return items
}

// userRows makes a row of each message. What was quoted or attached stands in the
// text as inert data.
func (c *conversation) userRows(items []record.InboxItem) []record.Message {
	msgs := make([]record.Message, 0, len(items))
	for _, it := range items {
		ev, err := it.Event()
		m, ok := ev.(chat.MessageReceived)
		if err != nil || !ok {
			continue
		}
		text := withQuote(m)
		msgs = append(msgs, record.Message{
			Role: llm.User, Content: text, From: m.From.ID, FromName: m.From.Name, Platform: m.Message, Files: m.Files,
			Importance: history.Importance(llm.User, text), CreatedAt: it.ReceivedAt,
		})
	}
	return msgs
}

// withQuote puts what the person pointed at before what they said.
func withQuote(m chat.MessageReceived) string {
	if m.Edited {
		m.Text = "(I have changed my message, which now says:)\n" + m.Text
	}
	if m.Quote == nil || m.Quote.Text == "" {
		return m.Text
	}
	var b strings.Builder
	who := m.Quote.From.Name
	if m.Quote.FromBot {
		who = "you"
	}
	fmt.Fprintf(&b, "In reply to %q:\n", who)
	for line := range strings.Lines(clip(m.Quote.Text, 2000)) {
		b.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String() + "\n" + m.Text
}

// runNew runs a turn that has just begun.
func (c *conversation) runNew(ctx context.Context, s record.Started) {
	j := &journal{turn: s.Turn, opening: &s}
	c.runTurn(ctx, j, c.g.access.role(s.Turn.Person, s.Member), nil)
}

// resume goes on with a turn where its rows say. posted is what was posted for it
// already, in order.
func (c *conversation) resume(ctx context.Context, t record.Turn, posted []record.Delivery) {
	c.runTurn(ctx, &journal{turn: t}, c.roleOf(ctx, t.Person), posted)
}

// runTurn starts the child goroutine.
func (c *conversation) runTurn(ctx context.Context, j *journal, role record.Role, posted []record.Delivery) {
	t, resumed := j.turn, j.opening == nil
	tctx, cancel := context.WithCancelCause(ctx)
	rt := &runningTurn{row: t, cancel: cancel, restart: new(agentcore.Restart), joined: c.g.now(), done: make(chan struct{})}
	rt.live = newLive(c.conv, c.post.ring)
	c.turn = rt
	c.post.begin(t, rt.live, posted)
	c.react(t.Address, t.Source, chat.ReactWorking)
	j.store, j.fence, j.live, j.post, j.limits = c.g.store, c.fence, rt.live, c.post, c.account.adapter.Limits()
	req := agentcore.Request{
		Turn: t, TaskID: t.ID, Conversation: c.conv, Sink: rt.live, Kind: c.conv.Kind, Journal: j,
		Asker: &asker{c: c, fence: c.fence, turn: t, kind: c.conv.Kind}, Steering: steering{c.box}, Restart: rt.restart,
		PlatformHint: platformHint(j.limits), Role: role, Outbox: outbox{c: c, fence: c.fence, turn: t},
	}
	if r, ok := c.account.adapter.(chat.HistoryReader); ok {
		req.Overheard = overheard{from: r, at: t.Address}
	}
	c.log.Debug("turn begins", zap.String("turn", string(t.ID)), zap.Bool("resumed", resumed))
	c.children.Go(func() {
		defer close(rt.done)
		defer cancel(nil)
		stop := c.typing(rt)
		res, err := c.agentRun(tctx, req, resumed)
		stop()
		c.box.put(turnEnded{turn: t.ID, result: res, err: err})
	})
}

// agentRun is the door of a turn: a panic ends the turn, not the process.
func (c *conversation) agentRun(ctx context.Context, req agentcore.Request, resumed bool) (res *agentcore.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = c.g.panicked("turn", r)
		}
	}()
	if resumed {
		return c.g.agent.Resume(ctx, req)
	}
	return c.g.agent.RunConversation(ctx, req)
}

// cancelTurn abandons the running turn with a cause, once.
func (c *conversation) cancelTurn(cause error) {
	if c.turn == nil || c.turn.ending != "" {
		return
	}
	c.turn.ending = cause.Error()
	c.post.hold()
	c.turn.cancel(cause)
}

// onTurnEnded is called when the child has returned. The end itself is already
// committed by the journal, unless the turn is suspended or broken.
func (c *conversation) onTurnEnded(ctx context.Context, e turnEnded) {
	rt := c.turn
	if rt == nil || rt.row.ID != e.turn {
		return
	}
	<-rt.done
	c.turn = nil
	log := c.log.With(zap.String("turn", string(e.turn)))
	switch {
	case e.err != nil:
		c.stale = true
		ref := c.g.reference()
		log.Error("turn failed", zap.Error(e.err), zap.String("reference", ref))
		c.endBroken(ctx, rt.row, ref, "an internal error")
		return
	case e.result.State == record.TurnSuspended:
		c.stale = true
		c.post.freeze()
		c.suspend(ctx, rt, e.result)
		return
	}
	killpoint.Here(killpoint.TurnEnded)
	log.Info("turn ended", zap.String("state", string(e.result.State)), zap.String("cause", e.result.Cause),
		zap.Int("iterations", e.result.Iterations), zap.Int("input_tokens", e.result.Usage.Input), zap.Int("output_tokens", e.result.Usage.Output))
	c.g.metrics.TurnEnded(e.result.State, e.result.Usage)
	c.showEnd(rt, e.result.State)
	c.withdrawQuestions(ctx)
	// An ordinary turn changes no row that this goroutine has not changed with it.
	ordinary := e.result.State == record.TurnDone && e.result.Session == rt.row.Session && len(rt.steered) == 0
	c.stale = c.stale || !ordinary
	if c.stale && !c.load(ctx) {
		return
	}
	c.considerTitle(ctx, rt, e.result)
	c.considerCompression(ctx, e.result)
}

// suspend leaves the turn to the next owner, which may be this process again once
// the database is back. What the database refuses is no such outage: that counts as
// a crash, so that the turn does not begin anew for ever.
func (c *conversation) suspend(ctx context.Context, rt *runningTurn, r *agentcore.Result) {
	c.retryAt, c.recount = c.g.now().Add(time.Second), true
	crashed := rt.ending == "" && !errors.Is(r.Err, record.ErrUnavailable) && !errors.Is(r.Err, record.ErrFenced)
	if err := c.g.store.SuspendTurn(ctx, c.fence, rt.row.ID, r.Cause, crashed); err != nil {
		c.failed(err, "suspend a turn")
		return
	}
	c.log.Info("turn suspended", zap.String("turn", string(rt.row.ID)), zap.String("cause", r.Cause), zap.Bool("crashed", crashed))
}

// endBroken ends a turn that cannot go on with a visible message.
func (c *conversation) endBroken(ctx context.Context, t record.Turn, ref, what string) {
	f := c.post.freeze()
	text := fmt.Sprintf("⚠️ I could not finish this: %s. Your message is kept; send it again or `/status`. (reference %s)", what, ref)
	e := record.TurnEnd{Turn: t.ID, State: record.TurnFailed, Cause: what, Reference: ref, Deliveries: finals(t, text, f, c.account.adapter.Limits())}
	if err := c.g.store.EndTurn(ctx, c.fence, e); err != nil {
		c.failed(err, "end a broken turn")
		return
	}
	c.post.add(e.Deliveries...)
	c.g.metrics.TurnEnded(record.TurnFailed, llm.Usage{})
}

// platformHint tells the model what the chat can show.
func platformHint(l chat.Limits) string {
	if l.Text == 0 {
		return "Answers are shown as Markdown."
	}
	return fmt.Sprintf("Answers are shown as Markdown in a chat; more than %d characters are divided into several messages.", l.Text)
}
