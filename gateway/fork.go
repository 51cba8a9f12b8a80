package gateway

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"parley/agentcore/llm"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// exchange is what people said at once, with the answer to it.
type exchange struct {
	// before is the sequence of the message before it; 0: there is none.
	before int64
	said   []record.Message
}

// exchanges divides a history into what was asked and answered. What a summary has
// folded is no exchange any more; it can only be gone back to.
func exchanges(rows []record.Message) []exchange {
	var all []exchange
	before, open := int64(0), false
	for _, m := range rows {
		asks := m.Role == llm.User && m.Kind == record.KindSaid
		switch {
		case asks && open:
			last := &all[len(all)-1]
			last.said = append(last.said, m)
		case asks:
			all = append(all, exchange{before: before, said: []record.Message{m}})
		}
		open = asks
		before = m.Seq
	}
	return all
}

// lastExchanges returns the newest n exchanges, oldest first, or answers why it
// cannot.
func (c *conversation) lastExchanges(ctx context.Context, in invocation, n int) []exchange {
	rows, err := c.g.store.History(ctx, c.conv.Session)
	if err != nil {
		c.failed(err, "read the history")
		return nil
	}
	all := exchanges(rows)
	if len(all) < n {
		text := "There is nothing to take back."
		if len(all) > 0 {
			text = fmt.Sprintf("Only %s can be taken back here.", plural(len(all), "question"))
		}
		c.answer(ctx, in, text, record.NoEffect{})
		return nil
	}
	return all[len(all)-n:]
}

// cmdUndo takes the newest exchanges back: the conversation goes on in a child that
// does not have them, and they stay readable in the parent.
func (c *conversation) cmdUndo(ctx context.Context, in invocation) {
	n := 1
	if in.args != "" {
		var err error
		if n, err = strconv.Atoi(in.args); err != nil || n < 1 {
			c.answer(ctx, in, "`/undo NUMBER` takes back that many questions, for example `/undo 2`.", record.NoEffect{})
			return
		}
	}
	gone := c.lastExchanges(ctx, in, n)
	if gone == nil || !c.makeWay(ctx, in) {
		return
	}
	var said []string
	for _, e := range gone {
		said = append(said, "“"+inert(clip(firstLine(e.said[0].Content), 60))+"”")
	}
	text := "↩️ Taken back: " + strings.Join(said, ", ") + ". The messages above stay where they are, but I no longer know of them; `/sessions` still has them."
	c.answer(ctx, in, text, record.Fork{ID: record.SessionID(record.NewID()), Reason: record.ReasonUndo, UpTo: gone[0].before})
}

// cmdBranch goes on in a child with the whole history; the session so far stays as
// it is.
func (c *conversation) cmdBranch(ctx context.Context, in invocation) {
	rows, err := c.g.store.History(ctx, c.conv.Session)
	if err != nil {
		c.failed(err, "read the history")
		return
	}
	if len(rows) == 0 {
		c.answer(ctx, in, "There is nothing to branch from yet.", record.NoEffect{})
		return
	}
	if !c.makeWay(ctx, in) {
		return
	}
	title := clip(firstLine(in.args), 120)
	text := "🌿 This is a branch now. `/resume` goes back to where it began."
	if title != "" {
		text = "🌿 This is the branch **" + inert(title) + "** now. `/resume` goes back to where it began."
	}
	c.answer(ctx, in, text, record.Fork{ID: record.SessionID(record.NewID()), Reason: record.ReasonBranch, UpTo: rows[len(rows)-1].Seq, Title: title})
}

// cmdRetry takes the newest exchange back and answers it again, in one transaction.
func (c *conversation) cmdRetry(ctx context.Context, in invocation) {
	gone := c.lastExchanges(ctx, in, 1)
	if gone == nil || !c.makeWay(ctx, in) {
		return
	}
	begun, err := c.g.store.StartTurn(ctx, c.fence, record.TurnStart{
		Turn: c.newTurn(in.from, in.from.From.ID), Items: []record.InboxItem{in.item}, Messages: said(gone[0].said),
		Fork: &record.Fork{ID: record.SessionID(record.NewID()), Reason: record.ReasonUndo, UpTo: gone[0].before},
	})
	if err != nil {
		c.failed(err, "retry")
		return
	}
	killpoint.Here(killpoint.TurnStarted)
	c.drop(in.item)
	c.conv.Session = begun.Session.ID
	c.runNew(ctx, begun)
}
