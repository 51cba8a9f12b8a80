package gateway

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

// end ends inbox rows with a reason, an effect and replies, in one transaction.
func (c *conversation) end(ctx context.Context, reason string, e record.Effect, replies []record.Delivery, items ...record.InboxItem) bool {
	conv, err := c.g.store.EndItems(ctx, c.fence, items, reason, e, replies)
	if err != nil {
		c.failed(err, "end inbox rows")
		c.giveUp(ctx, items, err)
		return false
	}
	c.become(conv)
	c.drop(items...)
	c.post.add(replies...)
	return true
}

// giveUpAfter is how often an inbox row may fail for a reason that waiting does not
// mend.
const giveUpAfter = 3

// giveUp ends rows that fail again and again with a word, so that one of them
// cannot hold up everything behind it. A database that is away is no such reason.
func (c *conversation) giveUp(ctx context.Context, items []record.InboxItem, cause error) {
	if len(items) == 0 || c.lost || errors.Is(cause, record.ErrUnavailable) || errors.Is(cause, record.ErrConflict) {
		return
	}
	if c.failing != items[0].Seq {
		c.failing, c.failures = items[0].Seq, 0
	}
	if c.failures++; c.failures < giveUpAfter {
		return
	}
	ref := c.g.reference()
	c.log.Error("an inbox row is given up", zap.String("key", string(items[0].Key)), zap.String("reference", ref), zap.Error(cause))
	var replies []record.Delivery
	if ev, err := items[0].Event(); err == nil {
		replies = append(replies, c.reply(items[0], ev.Meta(), "⚠️ An internal error kept me from handling this (reference "+ref+"). Nothing has changed."))
	}
	if conv, err := c.g.store.EndItems(ctx, c.fence, items, "given up: internal error "+ref, record.NoEffect{}, replies); err == nil {
		c.become(conv)
		c.drop(items...)
		c.post.add(replies...)
	}
}

// reply makes the delivery of a command's answer.
func (c *conversation) reply(it record.InboxItem, o chat.Origin, text string, buttons ...[]chat.Button) record.Delivery {
	key := fmt.Sprintf("reply/%s/%s", it.Account, it.Key)
	return record.Delivery{
		ID: record.DeliveryID(record.NewID()), Conversation: c.fence.Conversation, Kind: record.DeliverControl, Key: key,
		Address: o.Address, State: record.DeliveryPending,
		Out: chat.Outgoing{Key: key, Text: text, Buttons: buttons, Reply: o.Reply},
	}
}

// notice posts something that answers no event; best effort, since the row that
// it is about is durable itself.
func (c *conversation) notice(ctx context.Context, key, text string, buttons ...[]chat.Button) {
	d := record.Delivery{
		ID: record.DeliveryID(record.NewID()), Conversation: c.fence.Conversation, Kind: record.DeliverNotice, Key: key,
		Address: c.conv.Key.Address, State: record.DeliveryPending,
		Out: chat.Outgoing{Key: key, Text: text, Buttons: buttons},
	}
	if err := c.g.store.SaveDelivery(ctx, c.fence, d); err != nil {
		c.failed(err, "notice")
		return
	}
	c.post.add(d)
}
