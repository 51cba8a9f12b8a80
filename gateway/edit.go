package gateway

import (
	"context"
	"slices"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/store/record"
)

// edited takes the change of a message. Before anything was done about it the new
// text is what is answered (MEN-002). While its turn runs the change is a further
// message, which does what the busy mode says. When it was answered already, its
// sender may have the changed question answered in a branch. A message that had
// nothing to do with the bot starts a turn when the change addresses it (MEN-015). A
// command is never run again from an edit (MEN-011), and a change of nothing that
// people see is none (MEN-003).
func (c *conversation) edited(ctx context.Context, it record.InboxItem, ev chat.MessageEdited) (next bool) {
	for _, w := range c.inbox {
		orig, err := w.Event()
		m, ok := orig.(chat.MessageReceived)
		if err != nil || !ok || m.Message != ev.Message || w.Seq > it.Seq {
			continue
		}
		m.Text = ev.Text
		if w.Kind, w.Payload, err = chat.Encode(m); err != nil {
			break
		}
		if c.end(ctx, "edited before it was answered: the new text counts", record.Rewrite{Item: w}, nil, it) {
			c.replace(w)
		}
		return true
	}
	w, err := c.g.store.Explain(ctx, ev.Address.Account, c.fence.Conversation, ev.Message)
	if err != nil {
		c.failed(err, "find an edited message")
		return false
	}
	return c.editedLate(ctx, it, ev, w.Item)
}

// editedLate takes the change of a message that is not waiting; was is its row, or
// that of an edit if it never came in.
func (c *conversation) editedLate(ctx context.Context, it record.InboxItem, ev chat.MessageEdited, was record.InboxItem) (next bool) {
	ignore := func(reason string) bool { return c.end(ctx, reason, record.NoEffect{}, nil, it) }
	_, _, command := parseCommand(ev.Text)
	if was.Kind != chat.KindMessage {
		if command || ev.Kind != chat.Group || !ev.ForBot {
			return ignore("edited, and not known: no effect")
		}
		return c.becomesMessage(ctx, it, chat.MessageReceived{Origin: ev.Origin, Text: ev.Text, ForBot: true})
	}
	old, err := was.Event()
	m, ok := old.(chat.MessageReceived)
	if err != nil || !ok {
		return ignore("edited, and refused before: no effect")
	}
	_, _, wasCommand := parseCommand(m.Text)
	switch {
	case m.Text == ev.Text:
		return ignore("edited without a change of its text: no effect")
	case command || wasCommand:
		return ignore("edited after it was taken up: commands are not run from edits")
	case c.turn != nil && c.turn.row.ID == was.Turn:
		return c.becomesMessage(ctx, it, chat.MessageReceived{Origin: ev.Origin, Text: ev.Text, ForBot: true, Edited: true})
	case was.State == record.InboxDone && was.Turn != "":
		return c.offerAgain(ctx, it, ev)
	}
	return ignore("edited after it was taken up: no effect")
}

// becomesMessage makes the row of an edit that of a message, which is then dealt with
// like any other.
func (c *conversation) becomesMessage(ctx context.Context, it record.InboxItem, m chat.MessageReceived) (next bool) {
	var err error
	if it.Kind, it.Payload, err = chat.Encode(m); err != nil {
		return true
	}
	if c.end(ctx, "", record.Rewrite{Item: it}, nil) {
		c.replace(it)
	}
	return true
}

// replace puts a changed row in the place of the old one wherever it waits.
func (c *conversation) replace(it record.InboxItem) {
	waiting := [][]record.InboxItem{c.inbox}
	if c.turn != nil {
		waiting = append(waiting, c.turn.steered)
	}
	for _, items := range waiting {
		for i := range items {
			if items[i].Seq == it.Seq {
				items[i] = it
			}
		}
	}
}

// deleted withdraws a message that nothing was done about yet. Where the busy mode
// lets people interrupt, the turn that answers it ends with it, unless a tool runs that
// may not be cut off.
func (c *conversation) deleted(ctx context.Context, it record.InboxItem, ev chat.MessageDeleted) (next bool) {
	gone := []record.InboxItem{it}
	for _, w := range c.inbox {
		if orig, err := w.Event(); err == nil {
			if m, ok := orig.(chat.MessageReceived); ok && m.Message == ev.Message {
				gone = append(gone, w)
			}
		}
	}
	if t := c.turn; t != nil {
		t.steered = slices.DeleteFunc(t.steered, func(x record.InboxItem) bool {
			return slices.ContainsFunc(gone, func(y record.InboxItem) bool { return x.Seq == y.Seq })
		})
		if t.row.Source == ev.Message && c.g.cfg.Conversations.Busy == BusyInterrupt && !t.live.busy().mustFinish {
			c.cancelTurn(agentcore.ErrInterrupted)
		}
	}
	return c.end(ctx, "deleted by its sender", record.NoEffect{}, nil, gone...)
}
