package gateway

import (
	"context"

	"parley/gateway/chat"
	"parley/store/record"
)

// edited takes the change of a message that nothing was done about yet: the new
// text is what is answered (MEN-002). Later changes are noted and have no effect; a
// command is never run again from an edit (MEN-011).
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
	return c.end(ctx, "edited after it was taken up: no effect", record.NoEffect{}, nil, it)
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

// deleted withdraws a message that nothing was done about yet.
func (c *conversation) deleted(ctx context.Context, it record.InboxItem, ev chat.MessageDeleted) (next bool) {
	gone := []record.InboxItem{it}
	for _, w := range c.inbox {
		if orig, err := w.Event(); err == nil {
			if m, ok := orig.(chat.MessageReceived); ok && m.Message == ev.Message {
				gone = append(gone, w)
			}
		}
	}
	return c.end(ctx, "deleted by its sender", record.NoEffect{}, nil, gone...)
}
