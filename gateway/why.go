package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/markdown"
	"parley/store/record"
)

// cmdWhy explains what became of the message that was replied to, or of the one
// before the command.
func (c *conversation) cmdWhy(ctx context.Context, in invocation) {
	id := chat.MessageID(in.args)
	if ev, err := in.item.Event(); err == nil {
		if m, ok := ev.(chat.MessageReceived); ok && m.Quote != nil && m.Quote.Message != "" {
			id = m.Quote.Message
		}
	}
	if id == "" {
		id = c.lastSaid(ctx)
	}
	if id == "" {
		c.answer(ctx, in, "Reply to a message with `/why`, and I tell what became of it.", record.NoEffect{})
		return
	}
	w, err := c.g.store.Explain(ctx, in.from.Address.Account, c.fence.Conversation, id)
	switch {
	case errors.Is(err, record.ErrNotFound):
		c.answer(ctx, in, "I know nothing of that message in this conversation. In groups I do not keep what is not for me.", record.NoEffect{})
		return
	case err != nil:
		c.failed(err, "explain a message")
		return
	}
	c.answer(ctx, in, Explain(w), record.NoEffect{})
}

// lastSaid is the newest message that a person of this session wrote; "" if unknown.
func (c *conversation) lastSaid(ctx context.Context) chat.MessageID {
	rows, err := c.g.store.History(ctx, c.conv.Session)
	if err != nil {
		return ""
	}
	for _, m := range slices.Backward(rows) {
		if m.Platform != "" {
			return m.Platform
		}
	}
	return ""
}

// Explain puts the fate of a message into words, as CommonMark.
func Explain(w record.Why) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The message was received at %s; it is **%s**", w.Item.ReceivedAt.UTC().Format("2006-01-02 15:04:05 UTC"), w.Item.State)
	if w.Item.Reason != "" && w.Item.Reason != string(w.Item.State) {
		b.WriteString(" (" + inert(w.Item.Reason) + ")")
	}
	b.WriteString(".")
	if t := w.Turn; t != nil {
		fmt.Fprintf(&b, "\nIts turn is **%s**", t.State)
		if t.Cause != "" {
			b.WriteString(": " + inert(t.Cause))
		}
		if t.Reference != "" {
			b.WriteString(" (reference " + t.Reference + ")")
		}
		b.WriteString(".")
	}
	for _, r := range w.Refusals {
		b.WriteString("\nRefused: " + inert(Asked(r)) + "; " + refusedBecause(r) + ".")
	}
	for _, d := range w.Deliveries {
		switch d.Kind {
		case record.DeliverFinal:
			fmt.Fprintf(&b, "\nPart %d of the answer: %s", d.Part+1, d.State)
		case record.DeliverFile:
			fmt.Fprintf(&b, "\nA file: %s", d.State)
		case record.DeliverCard, record.DeliverControl, record.DeliverLive, record.DeliverNotice:
			continue
		}
		if d.Error != "" {
			b.WriteString(", " + inert(d.Error))
		}
		b.WriteString(".")
	}
	return b.String()
}

// Asked is one line about what was refused: the call in words, clipped, without what
// looks like a secret.
func Asked(r record.Refusal) string {
	if r.By == record.RefusedBySpending {
		return clip(strings.Join(strings.Fields(markdown.Plain(r.Arguments)), " "), 200)
	}
	return agentcore.Summary(llm.ToolCall{Name: r.Tool, Arguments: engine.Redact(r.Arguments)})
}

// refusedBecause says who or what refused and why, as part of a sentence.
func refusedBecause(r record.Refusal) string {
	reason := inert(r.Reason)
	switch {
	case r.By == record.RefusedByPolicy:
		return "not allowed: " + reason
	case r.By == record.RefusedByHook:
		return "blocked by the owner's hook: " + reason
	case reason == "":
		return decision(r)
	}
	return decision(r) + "; why they were asked: " + reason
}

func decision(r record.Refusal) string {
	switch r.Decision {
	case record.ApprovalExpired:
		return "nobody answered in time"
	case record.ApprovalWithdrawn:
		return "the question was withdrawn, since people went on with something else"
	case record.ApprovalDenied:
		if r.Decider != "" {
			return "denied by " + inert(string(r.Decider))
		}
	case record.ApprovalOpen, record.ApprovalApproved, record.ApprovalAnswered:
	}
	return "nobody consented"
}
