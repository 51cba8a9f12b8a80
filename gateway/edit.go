package gateway

import (
	"context"

	"parley/gateway/chat"
	"parley/store/record"
)

// edited takes the change of a message that nothing was done about yet: the new
// text is what is answered. Later changes are noted and have no effect; a
// command is never run again from an edit.
func (c *conversation) edited(ctx context.Context, it record.InboxItem, ev chat.MessageEdited) (next bool) {
	for i, w := range c.inbox {
		orig, err := w.Event()
		m, ok := orig.(chat.MessageReceived)
		if err != nil || !ok || m.Message != ev.Message || w.Seq > it.Seq {
			continue
		}
		m.Text = ev.Text
		kind, payload, err := chat.Encode(m)
		if err != nil {
			break
		}
		c.inbox[i].Kind, c.inbox[i].Payload = kind, payload
		return c.end(ctx, "edited before it was answered: the new text counts", record.NoEffect{}, nil, it)
	}
	return c.end(ctx, "edited after it was taken up: no effect", record.NoEffect{}, nil, it)
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
