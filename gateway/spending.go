package gateway

import (
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	// spendingCommand is the synthetic command that brings a question about money to an
	// admin's own conversation, and decidedCommand the one that tells the conversation
	// that asked of the decision; both are durable like any event.
	spendingCommand = "spending-request"
	decidedCommand  = "question-decided"
)

// askAdmins brings a question about money to the admins' own chats: whoever reached a
// limit is often alone with the bot, and may not decide. The events' keys make it
// idempotent.
func (c *conversation) askAdmins(ctx context.Context, q record.Approval) {
	if q.Kind != record.AskSpending || c.roleOf(ctx, q.Asked).Admin() {
		return
	}
	admins, err := c.g.store.Admins(ctx, c.account.id.Platform(), c.g.access.admins())
	for _, admin := range admins {
		if admin.Conversation == "" || err != nil {
			continue
		}
		_, err = c.g.take(ctx, chat.CommandInvoked{Name: spendingCommand, Args: string(q.ID), Origin: chat.Origin{
			Key: chat.EventKey("spending/" + string(q.ID) + "/" + string(admin.ID)), Address: admin.Address, Kind: chat.Direct,
			From: chat.User{ID: admin.ID, Name: admin.Name}, At: c.g.now(),
		}})
	}
	if err != nil {
		c.log.Warn("not every admin is asked", zap.Error(err))
	}
}

// cmdSpending shows an admin a question of another conversation.
func (c *conversation) cmdSpending(ctx context.Context, in invocation) {
	q, _, err := c.g.store.ApprovalCard(ctx, record.ApprovalID(in.args))
	switch {
	case err != nil && !errors.Is(err, record.ErrNotFound):
		c.failed(err, "read a question")
		return
	case err != nil || q.Kind != record.AskSpending || q.State != record.ApprovalOpen || !in.role.Admin():
		c.end(ctx, "nothing to decide any more", record.NoEffect{}, nil, in.item)
		return
	}
	c.answer(ctx, in, q.Question+"\n\nIt is about a message of "+inert(string(q.Asked))+" in another chat.", record.NoEffect{}, consentButtons(q)...)
}

// decideElsewhere decides another conversation's question about money, and tells it.
// Told twice it does nothing.
func (c *conversation) decideElsewhere(ctx context.Context, it record.InboxItem, ev chat.ButtonPressed, id record.ApprovalID, to record.ApprovalState) {
	if !c.roleOf(ctx, ev.From.ID).Admin() {
		c.ack(ev, "Only an admin may decide this.")
		c.end(ctx, "a button pressed by one who may not", record.NoEffect{}, nil, it)
		return
	}
	q, asker, err := c.g.store.DecideSpending(ctx, id, to, ev.From.ID)
	name := ""
	if q.DecidedBy == ev.From.ID {
		name = ev.From.Name
	}
	if err == nil {
		_, err = c.g.take(ctx, chat.CommandInvoked{Name: decidedCommand, Args: string(id) + " " + name, Origin: chat.Origin{
			Key: chat.EventKey("decided/" + string(id)), Address: asker.Key.Address, Kind: asker.Kind, From: chat.User{ID: q.Asked}, At: c.g.now(),
		}})
	}
	if err != nil {
		c.failed(err, "decide a question")
		return
	}
	c.ack(ev, "")
	d := c.reply(it, ev.Origin, outcomeLine(q, name))
	c.end(ctx, "answered a question", record.NoEffect{}, []record.Delivery{d}, it)
}

// cmdDecided takes over a decision that was made elsewhere, or shows it where the turn
// has learned of it at a restart. It trusts the row; the args only name the admin.
func (c *conversation) cmdDecided(ctx context.Context, in invocation) {
	id, by, _ := strings.Cut(in.args, " ")
	a, card, err := c.g.store.ApprovalCard(ctx, record.ApprovalID(id))
	switch {
	case err != nil && !errors.Is(err, record.ErrNotFound):
		c.failed(err, "read a question")
		return
	case err != nil || a.State == record.ApprovalOpen || a.Conversation != c.fence.Conversation:
	case c.questions[a.ID] != nil:
		c.closed(ctx, c.questions[a.ID], a, by)
	default:
		c.closeCard(ctx, a, card, by)
	}
	c.end(ctx, "a question was decided", record.NoEffect{}, nil, in.item)
}
