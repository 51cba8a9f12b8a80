package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// againPrefix begins the data of the button that answers a changed message in a
// branch; the message follows. buttonData is how long data may be.
const (
	againPrefix = "again:"
	buttonData  = 64
)

// offerAgain offers to answer a question that was changed after its answer. A further
// change of the same message finds the offer there.
func (c *conversation) offerAgain(ctx context.Context, it record.InboxItem, ev chat.MessageEdited) bool {
	rows, err := c.g.store.History(ctx, c.conv.Session)
	if err != nil {
		c.failed(err, "read the history")
		return false
	}
	data := againPrefix + string(ev.Message)
	if _, ok := exchangeOf(rows, ev.Message); !ok || len(data) > buttonData {
		return c.end(ctx, "edited after it was answered, and no part of this session any more: no effect", record.NoEffect{}, nil, it)
	}
	d, err := c.g.store.DeliveryOf(ctx, c.fence.Conversation, c.againKey(ev.Message))
	switch {
	case errors.Is(err, record.ErrNotFound):
		d = c.reply(it, ev.Origin, "")
		d.Key = c.againKey(ev.Message)
	case err != nil:
		c.failed(err, "read an offer")
		return false
	}
	d.State = record.DeliveryPending
	d.Out = chat.Outgoing{
		Key: d.Key, Reply: ev.Reply, Text: "✏️ You have changed a message that I have answered already. I can answer it as it is now, in a branch.",
		Buttons: [][]chat.Button{{{Label: "Answer again", Data: data, Style: chat.Primary}}},
	}
	return c.end(ctx, "edited after it was answered: offered to answer again", record.NoEffect{}, []record.Delivery{d}, it)
}

// againKey is the idempotency key of the one offer that a message can have.
func (c *conversation) againKey(m chat.MessageID) string {
	return fmt.Sprintf("again/%s/%s", c.fence.Conversation, m)
}

// exchangeOf finds the exchange in which a message was said.
func exchangeOf(rows []record.Message, id chat.MessageID) (exchange, bool) {
	for _, e := range exchanges(rows) {
		if slices.ContainsFunc(e.said, func(m record.Message) bool { return m.Platform == id }) {
			return e, true
		}
	}
	return exchange{}, false
}

// againPressed answers a changed message in a branch that begins before it. A press
// that comes twice finds it answered.
func (c *conversation) againPressed(ctx context.Context, it record.InboxItem, ev chat.ButtonPressed) {
	no := func(text string) {
		c.ack(ev, text)
		c.end(ctx, "a button to answer again: "+text, record.NoEffect{}, nil, it)
	}
	m, ok := c.changedMessage(ctx, ev.Address.Account, chat.MessageID(strings.TrimPrefix(ev.Data, againPrefix)))
	switch {
	case !ok:
		no("This button is no longer used.")
		return
	case ev.From.ID != m.From.ID && !c.roleOf(ctx, ev.From.ID).Admin():
		no("Only the person who changed the message, or an admin, may do this.")
		return
	case c.turn != nil || c.compression != nil:
		no("I am busy; press again when I am done.")
		return
	}
	rows, err := c.g.store.History(ctx, c.conv.Session)
	if err != nil {
		c.failed(err, "read the history")
		return
	}
	e, ok := exchangeOf(rows, m.Message)
	if !ok {
		no("That message is no part of this session any more.")
		return
	}
	msgs, fresh := changed(said(e.said), m)
	if !fresh {
		no("I have answered that already.")
		return
	}
	c.ack(ev, "")
	c.answerAgain(ctx, it, m, e.before, msgs)
	c.closeOffer(ctx, m.Message)
}

// changed puts a message as it is now in the place of what it said before, and tells
// whether that is something new.
func changed(msgs []record.Message, m chat.MessageReceived) (now []record.Message, fresh bool) {
	first := slices.IndexFunc(msgs, func(x record.Message) bool { return x.Platform == m.Message })
	text := withQuote(m)
	fresh = msgs[first].Content != text
	msgs[first].Content, msgs[first].Importance = text, history.Importance(llm.User, text)
	for i := len(msgs) - 1; i > first; i-- {
		if msgs[i].Platform == m.Message { // said while the turn ran
			msgs = slices.Delete(msgs, i, i+1)
		}
	}
	return msgs, fresh
}

// changedMessage is an answered message with the newest text that its sender gave it.
func (c *conversation) changedMessage(ctx context.Context, a chat.AccountID, id chat.MessageID) (m chat.MessageReceived, ok bool) {
	w, err := c.g.store.Explain(ctx, a, c.fence.Conversation, id)
	if err != nil {
		return m, false
	}
	ev, err := w.Item.Event()
	if m, ok = ev.(chat.MessageReceived); err != nil || !ok {
		return m, false
	}
	it, err := c.g.store.LastEdit(ctx, c.fence.Conversation, id)
	if err != nil {
		return m, false
	}
	ev, err = it.Event()
	edit, ok := ev.(chat.MessageEdited)
	m.Text, m.Edited = edit.Text, false
	return m, ok && err == nil
}

// answerAgain moves to a branch up to a message and begins a turn there.
func (c *conversation) answerAgain(ctx context.Context, it record.InboxItem, m chat.MessageReceived, upTo int64, msgs []record.Message) {
	begun, err := c.g.store.StartTurn(ctx, c.fence, record.TurnStart{
		Turn: c.newTurn(m.Origin, m.From.ID), Items: []record.InboxItem{it}, Messages: msgs,
		Fork: &record.Fork{ID: record.SessionID(record.NewID()), Reason: record.ReasonBranch, UpTo: upTo},
	})
	if err != nil {
		c.failed(err, "answer again")
		return
	}
	killpoint.Here(killpoint.TurnStarted)
	c.drop(it)
	c.conv.Session = begun.Session.ID
	c.runNew(ctx, begun)
}

// closeOffer takes the button off an offer that was taken up.
func (c *conversation) closeOffer(ctx context.Context, m chat.MessageID) {
	d, err := c.g.store.DeliveryOf(ctx, c.fence.Conversation, c.againKey(m))
	if err != nil {
		c.log.Warn("an offer that was taken up keeps its button", zap.Error(err))
		return
	}
	d.Out = chat.Outgoing{Key: d.Key, Text: "🌿 This is a branch now, with the message as you have changed it. `/resume` goes back."}
	d.State = record.DeliveryPending
	c.post.add(d)
}

// said are rows to be said once more, elsewhere.
func said(rows []record.Message) []record.Message {
	msgs := slices.Clone(rows)
	for i := range msgs {
		msgs[i].Session, msgs[i].Seq, msgs[i].Turn, msgs[i].Wire = "", 0, "", ""
	}
	return msgs
}
