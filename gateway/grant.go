package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parley/gateway/chat"
	"parley/store/record"
)

const onlyAdminsAlways = "Only an admin may allow something for good; allow it once or for this session."

// consentButtons are the answers to a question about a call. What can be told apart
// from other calls can be allowed for longer. Always is refused to those who are no
// admins when they press it, since anybody may read the card.
func consentButtons(q record.Approval) [][]chat.Button {
	allow := chat.Button{Label: "Allow", Data: askData(q.ID, "y"), Style: chat.Primary}
	deny := chat.Button{Label: "Deny", Data: askData(q.ID, "n"), Style: chat.Danger}
	if q.Pattern == "" || q.Kind != record.AskApproval {
		return [][]chat.Button{{allow, deny}}
	}
	allow.Label = "Allow once"
	return [][]chat.Button{
		{allow, {Label: "Allow for this session", Data: askData(q.ID, string(record.GrantSession))}},
		{{Label: "Always", Data: askData(q.ID, string(record.GrantAlways))}, deny},
	}
}

// cmdApprove answers the oldest question, or lists and revokes what is allowed for
// longer.
func (c *conversation) cmdApprove(ctx context.Context, in invocation) {
	word, rest, _ := strings.Cut(strings.TrimSpace(in.args), " ")
	switch strings.ToLower(word) {
	case "", "once":
		c.decideOldest(ctx, in, record.ApprovalApproved, record.GrantOnce)
	case string(record.GrantSession):
		c.decideOldest(ctx, in, record.ApprovalApproved, record.GrantSession)
	case string(record.GrantAlways):
		c.decideOldest(ctx, in, record.ApprovalApproved, record.GrantAlways)
	case "list":
		c.listGrants(ctx, in)
	case "revoke":
		c.revokeGrant(ctx, in, strings.TrimSpace(rest))
	default:
		c.answer(ctx, in, "`/approve` allows what is asked once, `/approve session` for this session, `/approve always` for good (admins); "+
			"`/approve list` shows what is allowed for longer, `/approve revoke NUMBER` ends it.", record.NoEffect{})
	}
}

func (c *conversation) cmdDeny(ctx context.Context, in invocation) {
	c.decideOldest(ctx, in, record.ApprovalDenied, record.GrantOnce)
}

// decideOldest answers the oldest open approval.
func (c *conversation) decideOldest(ctx context.Context, in invocation, to record.ApprovalState, scope record.GrantScope) {
	for _, q := range c.oldestFirst() {
		if q.Kind == record.AskClarify {
			continue
		}
		switch {
		case !c.mayDecide(ctx, q, in.from.From.ID):
			c.answer(ctx, in, "Only the person who was asked, or an admin, may answer.", record.NoEffect{})
		case scope == record.GrantAlways && !in.role.Admin():
			c.answer(ctx, in, onlyAdminsAlways, record.NoEffect{})
		case scope != record.GrantOnce && q.Pattern == "":
			c.answer(ctx, in, "This can only be allowed once: `/approve`.", record.NoEffect{})
		case c.decide(ctx, q, to, in.from.From, string(scope)):
			c.end(ctx, "answered a question", record.NoEffect{}, nil, in.item)
		}
		return
	}
	c.answer(ctx, in, "Nothing is waiting to be allowed.", record.NoEffect{})
}

func (c *conversation) listGrants(ctx context.Context, in invocation) {
	list, err := c.g.store.Grants(ctx, c.fence.Conversation)
	if err != nil {
		c.failed(err, "list grants")
		return
	}
	if len(list) == 0 {
		c.answer(ctx, in, "Nothing is allowed for longer than once in this chat.", record.NoEffect{})
		return
	}
	var b strings.Builder
	b.WriteString("**Allowed in this chat without asking**\n\n")
	for i, g := range list {
		until := "always"
		if !g.ExpiresAt.IsZero() {
			until = "in this session, until " + g.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC")
		}
		fmt.Fprintf(&b, "%d. **%s** %s\n   for %s, %s, by %s\n", i+1, inert(g.Tool), inert(clip(g.Pattern, 300)), inert(string(g.Person)), until, inert(string(g.By)))
	}
	b.WriteString("\n`/approve revoke NUMBER` ends one.")
	c.answer(ctx, in, b.String(), record.NoEffect{})
}

// revokeGrant ends a grant of one's own, or any as an admin.
func (c *conversation) revokeGrant(ctx context.Context, in invocation, number string) {
	list, err := c.g.store.Grants(ctx, c.fence.Conversation)
	if err != nil {
		c.failed(err, "list grants")
		return
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(list) {
		c.answer(ctx, in, "There is no such number. `/approve list` shows what is allowed.", record.NoEffect{})
		return
	}
	g, by := list[n-1], in.from.From.ID
	if g.Person != by && !in.role.Admin() {
		c.answer(ctx, in, "Only the person it is for, or an admin, may revoke it.", record.NoEffect{})
		return
	}
	d := c.reply(in.item, in.from, "It is asked for again: **"+inert(g.Tool)+"** "+inert(clip(g.Pattern, 300)))
	_, err = c.g.store.EndItems(ctx, c.fence, []record.InboxItem{in.item}, "a command", record.RevokeGrant{ID: g.ID, By: by}, []record.Delivery{d})
	switch {
	case errors.Is(err, record.ErrNotFound):
		c.answer(ctx, in, "It has ended already.", record.NoEffect{})
		return
	case err != nil:
		c.failed(err, "revoke a grant")
		return
	}
	c.drop(in.item)
	c.post.add(d)
}
