package gateway

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// question is an open approval or clarify question with its card, and the turn
// that waits for it, if it runs here.
type question struct {
	record.Approval
	card  record.Delivery
	reply chan<- record.Approval
}

// asker implements agentcore.Asker for one turn.
type asker struct {
	c     *conversation
	fence record.Fence
	turn  record.Turn
	kind  chat.Kind
}

var _ agentcore.Asker = (*asker)(nil)

// Ask writes the question and its card, or finds those that already stand for the
// call, and waits for the decision.
func (a *asker) Ask(ctx context.Context, q record.Approval) (record.Approval, error) {
	cfg := a.c.g.cfg
	timeout := cfg.Approvals.Timeout
	if q.Kind == record.AskClarify {
		timeout = cfg.Clarify.Timeout
	}
	now := a.c.g.now()
	q.ID, q.Conversation, q.Turn = record.ApprovalID(record.NewID()), a.fence.Conversation, a.turn.ID
	q.Asked, q.State, q.CreatedAt, q.ExpiresAt = a.turn.Person, record.ApprovalOpen, now, now.Add(timeout)
	card := record.Delivery{
		ID: record.DeliveryID(record.NewID()), Conversation: q.Conversation, Turn: q.Turn, Kind: record.DeliverCard,
		Key: "ask/" + string(q.ID), Address: a.turn.Address, State: record.DeliveryPending, Approval: q.ID,
		Out: askCard(q, a.kind, a.c.account.adapter.Limits()),
	}
	q, card, err := a.c.g.store.OpenApproval(ctx, a.fence, q, card)
	if err != nil {
		return q, err
	}
	killpoint.Here(killpoint.ApprovalOpened)
	if q.State != record.ApprovalOpen {
		return q, nil
	}
	reply := make(chan record.Approval, 1)
	a.c.box.put(asked{approval: q, card: card, reply: reply})
	select {
	case d := <-reply:
		return d, nil
	case <-ctx.Done():
		return q, ctx.Err()
	}
}

// askCard is the message that asks. In a group an answer in words is for the bot only
// if it is a reply, or names it: the card says so.
func askCard(q record.Approval, k chat.Kind, l chat.Limits) chat.Outgoing {
	m := chat.Outgoing{Key: "ask/" + string(q.ID), Text: q.Question}
	switch q.Kind {
	case record.AskApproval, record.AskSpending:
		m.Buttons = consentButtons(q)
		if l.NoButtons && q.Pattern != "" {
			m.Text += "\n\nAnswer `/approve`, `/approve session` (exactly this, for the session) or `/deny`."
		} else if l.NoButtons {
			m.Text += "\n\nAnswer `/approve` or `/deny`."
		}
	case record.AskClarify:
		for i, o := range q.Options {
			if l.NoButtons {
				m.Text += fmt.Sprintf("\n%d. %s", i+1, inert(o))
				continue
			}
			m.Buttons = append(m.Buttons, []chat.Button{{Label: clip(o, 60), Data: askData(q.ID, strconv.Itoa(i))}})
		}
		switch {
		case k == chat.Group && len(q.Options) == 0:
			m.Text += "\n\n*Reply to this message with your answer.*"
		case k == chat.Group && l.NoButtons:
			m.Text += "\n\n*Reply to this message with a number, or in your own words.*"
		case k == chat.Group:
			m.Text += "\n\n*Choose, or reply to this message with your own answer.*"
		case len(q.Options) > 0 && l.NoButtons:
			m.Text += "\n\n*Answer with a number, or in your own words.*"
		case len(q.Options) > 0:
			m.Text += "\n\n*Choose, or write your own answer.*"
		}
	}
	return m
}

// askPrefix begins the data of a question's buttons.
const askPrefix = "ask:"

func askData(id record.ApprovalID, choice string) string {
	return askPrefix + string(id) + ":" + choice
}

// onAsked registers a question of the running turn.
func (c *conversation) onAsked(ctx context.Context, a asked) {
	q := c.questions[a.approval.ID]
	if q == nil {
		// One that stood before may have been decided a moment ago.
		if now, _, err := c.g.store.ApprovalCard(ctx, a.approval.ID); err == nil && now.State != record.ApprovalOpen {
			a.reply <- now
			return
		}
		q = &question{Approval: a.approval, card: a.card}
		c.questions[a.approval.ID] = q
		if !a.card.State.Settled() {
			c.post.add(a.card)
		}
		c.askAdmins(ctx, a.approval)
	}
	q.reply = a.reply
}

// recoverQuestions takes over the open questions of the database.
func (c *conversation) recoverQuestions(w record.Work) {
	for _, a := range w.Approvals {
		if c.questions[a.ID] != nil {
			continue
		}
		q := &question{Approval: a}
		if i := slices.IndexFunc(w.Deliveries, func(d record.Delivery) bool { return d.Approval == a.ID }); i >= 0 {
			q.card = w.Deliveries[i]
		}
		c.questions[a.ID] = q
	}
}

// decide ends a question once, edits its card and tells the turn.
func (c *conversation) decide(ctx context.Context, q *question, to record.ApprovalState, by chat.User, answer string) bool {
	a, _, err := c.g.store.DecideApproval(ctx, c.fence, q.ID, to, by.ID, answer)
	if err != nil {
		c.failed(err, "decide a question")
		return false
	}
	killpoint.Here(killpoint.ApprovalDecided)
	c.log.Info("question decided", zap.String("approval", string(a.ID)), zap.String("state", string(a.State)), zap.String("by", string(a.DecidedBy)))
	c.closed(ctx, q, a, by.Name)
	return true
}

// closed edits the card of a question that is decided and tells the turn.
func (c *conversation) closed(ctx context.Context, q *question, a record.Approval, by string) {
	c.closeCard(ctx, a, q.card, by)
	delete(c.questions, q.ID)
	if q.reply != nil {
		q.reply <- a
	}
}

// closeCard edits the card: the buttons go, the outcome stays.
func (c *conversation) closeCard(ctx context.Context, a record.Approval, card record.Delivery, by string) {
	if card.ID == "" {
		var err error
		if _, card, err = c.g.store.ApprovalCard(ctx, a.ID); err != nil {
			c.log.Warn("a question's card is unknown", zap.Error(err))
			return
		}
	}
	card.Out = chat.Outgoing{Key: card.Key, Text: a.Question + "\n\n" + outcomeLine(a, by)}
	card.State = record.DeliveryPending
	c.post.add(card)
}

func outcomeLine(a record.Approval, by string) string {
	who := ""
	if by != "" {
		who = " by " + inert(by)
	}
	switch a.State {
	case record.ApprovalApproved:
		switch record.GrantScope(a.Answer) {
		case record.GrantSession:
			return "✅ Allowed for this session" + who
		case record.GrantAlways:
			return "✅ Always allowed" + who
		case record.GrantOnce:
		}
		return "✅ Allowed" + who
	case record.ApprovalDenied:
		return "🚫 Denied" + who
	case record.ApprovalAnswered:
		if by != "" {
			who = inert(by) + ": "
		}
		return "💬 " + who + inert(clip(firstLine(a.Answer), 200))
	case record.ApprovalExpired:
		return "⌛ Nobody answered in time; that counts as no."
	case record.ApprovalWithdrawn, record.ApprovalOpen:
	}
	return "⌫ No longer needed."
}

// expire ends the questions whose time is over.
func (c *conversation) expire(ctx context.Context, now time.Time) {
	for _, q := range c.questions {
		if !now.Before(q.ExpiresAt) {
			c.decide(ctx, q, record.ApprovalExpired, chat.User{}, "")
		}
	}
}

// withdrawQuestions closes the cards of an ended turn; the rows were withdrawn
// with its end.
func (c *conversation) withdrawQuestions(ctx context.Context) {
	for id, q := range c.questions {
		a := q.Approval
		a.State = record.ApprovalWithdrawn
		c.closeCard(ctx, a, q.card, "")
		delete(c.questions, id)
	}
}

// mayDecide says whether a person may answer a question: the one who was asked, as
// long as they may use parley at all, or an admin; about money, only an admin.
func (c *conversation) mayDecide(ctx context.Context, q *question, p chat.Person) bool {
	role := c.roleOf(ctx, p)
	return role.Admin() || role == record.RoleUser && p == q.Asked && q.Kind != record.AskSpending
}

// yesWords and noWords decide an approval when they are the whole text.
var (
	yesWords = []string{"yes", "y", "ok", "okay", "allow", "approve", "👍"}
	noWords  = []string{"no", "n", "deny", "cancel", "👎"}
)

// answersQuestion lets a text answer an open question and reports whether it did.
// A clarify question takes the asked person's next text; an approval exact words
// only, and any other text of that person withdraws it and goes its own way.
func (c *conversation) answersQuestion(ctx context.Context, it record.InboxItem, ev chat.MessageReceived) bool {
	for _, q := range c.oldestFirst() {
		if ev.From.Bot || ev.From.ID != q.Asked || c.turn == nil || !c.mayDecide(ctx, q, ev.From.ID) {
			continue
		}
		word := strings.ToLower(strings.TrimSpace(ev.Text))
		to, answer := record.ApprovalWithdrawn, ""
		switch {
		case q.Kind == record.AskClarify:
			to, answer = record.ApprovalAnswered, c.chosen(q, ev)
		case slices.Contains(yesWords, word):
			to = record.ApprovalApproved
		case slices.Contains(noWords, word):
			to = record.ApprovalDenied
		}
		if to == record.ApprovalWithdrawn {
			c.decide(ctx, q, to, ev.From, "")
			return false
		}
		c.post.cover() // before the turn hears of it and goes on
		return c.decide(ctx, q, to, ev.From, answer) && c.end(ctx, "answered a question", record.NoEffect{}, nil, it)
	}
	return false
}

// chosen is what a message answers: where options are numbered, a number stands for one.
// Files can be an answer too.
func (c *conversation) chosen(q *question, ev chat.MessageReceived) string {
	text := ev.Text
	for _, f := range ev.Files {
		if f.Path != "" {
			text = strings.TrimSpace(text + "\n(attached: " + f.Path + ")")
		}
	}
	n, err := strconv.Atoi(strings.Trim(text, " \n."))
	if err != nil || n < 1 || n > len(q.Options) || !c.account.adapter.Limits().NoButtons {
		return text
	}
	return q.Options[n-1]
}

func (c *conversation) oldestFirst() []*question {
	var qs []*question
	for _, q := range c.questions {
		qs = append(qs, q)
	}
	slices.SortFunc(qs, func(a, b *question) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return qs
}

// button handles a press. Only the right people may press; everybody gets told.
func (c *conversation) button(ctx context.Context, it record.InboxItem, ev chat.ButtonPressed) (next bool) {
	switch {
	case strings.HasPrefix(ev.Data, askPrefix):
		c.askPressed(ctx, it, ev)
	case strings.HasPrefix(ev.Data, stopPrefix):
		c.stopPressed(ctx, it, ev)
	case strings.HasPrefix(ev.Data, againPrefix):
		c.againPressed(ctx, it, ev)
	case strings.HasPrefix(ev.Data, pairPrefix):
		c.pairPressed(ctx, it, ev)
	case strings.HasPrefix(ev.Data, commandPrefix):
		name, args, _ := strings.Cut(strings.TrimPrefix(ev.Data, commandPrefix), " ")
		c.ack(ev, "")
		return c.command(ctx, it, ev.Origin, name, args)
	default:
		c.ack(ev, "This button is no longer used.")
		c.end(ctx, "an unknown button", record.NoEffect{}, nil, it)
	}
	return true
}

func (c *conversation) askPressed(ctx context.Context, it record.InboxItem, ev chat.ButtonPressed) {
	id, choice, _ := strings.Cut(strings.TrimPrefix(ev.Data, askPrefix), ":")
	q := c.questions[record.ApprovalID(id)]
	if q == nil {
		if a, _, err := c.g.store.ApprovalCard(ctx, record.ApprovalID(id)); err == nil && a.Kind == record.AskSpending && a.Conversation != c.fence.Conversation {
			to := record.ApprovalDenied
			if choice == "y" {
				to = record.ApprovalApproved
			}
			c.decideElsewhere(ctx, it, ev, a.ID, to)
			return
		}
		c.ack(ev, "This question is no longer open.")
		c.end(ctx, "a button of a closed question", record.NoEffect{}, nil, it)
		// A card that this process has posted or edited says already what became of it.
		a, card, err := c.g.store.ApprovalCard(ctx, record.ApprovalID(id))
		if err == nil && a.Conversation == c.fence.Conversation && len(card.Out.Buttons) > 0 && !c.post.knows(card.ID) {
			c.closeCard(ctx, a, card, "")
		}
		return
	}
	if !c.mayDecide(ctx, q, ev.From.ID) {
		c.ack(ev, "Only the person who was asked, or an admin, may answer.")
		c.end(ctx, "a button pressed by one who may not", record.NoEffect{}, nil, it)
		return
	}
	to, answer := record.ApprovalDenied, ""
	switch {
	case q.Kind == record.AskClarify:
		i, err := strconv.Atoi(choice)
		if err != nil || i < 0 || i >= len(q.Options) {
			c.ack(ev, "This button is no longer used.")
			c.end(ctx, "an unknown button", record.NoEffect{}, nil, it)
			return
		}
		to, answer = record.ApprovalAnswered, q.Options[i]
	case choice == "y":
		to = record.ApprovalApproved
	case choice == string(record.GrantAlways) && !c.roleOf(ctx, ev.From.ID).Admin():
		c.ack(ev, onlyAdminsAlways)
		c.end(ctx, "a button pressed by one who may not", record.NoEffect{}, nil, it)
		return
	case q.Pattern != "" && (choice == string(record.GrantSession) || choice == string(record.GrantAlways)):
		to, answer = record.ApprovalApproved, choice
	}
	if c.decide(ctx, q, to, ev.From, answer) {
		c.ack(ev, "")
		c.end(ctx, "answered a question", record.NoEffect{}, nil, it)
	}
}

// ack stops the client's waiting; best effort, in the poster's order.
func (c *conversation) ack(ev chat.ButtonPressed, text string) {
	if a, ok := c.account.adapter.(chat.ButtonAcker); ok {
		c.post.note(func(ctx context.Context) {
			cctx, cancel := context.WithTimeout(ctx, noteLimit)
			defer cancel()
			if err := a.AckButton(cctx, ev, text); err != nil {
				c.log.Debug("acknowledge a button", zap.Error(err))
			}
		})
	}
}

// inert makes a name or a line of a person harmless inside CommonMark.
func inert(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_{}[]()<>#+-.!|~@:/", r) {
			b.WriteByte('\\')
		}
		if r == '\n' || r == '\r' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// describe is for /status.
func (q *question) describe(now time.Time) string {
	return fmt.Sprintf("a question is open for %s more", q.ExpiresAt.Sub(now).Round(time.Second))
}
