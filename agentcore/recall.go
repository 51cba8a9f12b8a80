package agentcore

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"

	"parley/agentcore/engine"
	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/prompt"
	"parley/gateway/chat"
	"parley/store/record"
)

// Recaller brings back what has left a session's window; *memory.Recaller is one.
type Recaller interface {
	// Recall finds rows of the session's own lineage, for the text of the query; the
	// query's numbers are the Recaller's. It may cost something on the person's account.
	Recall(ctx context.Context, q record.RecallQuery, p chat.Person) (memory.Sources, error)
	// Saved notes, without blocking, that a session has new rows, and on whose account
	// what is made of them is.
	Saved(p record.Payer, s record.SessionID)
}

// attach puts beside the newest message what belongs to it – the skills that it
// calls for and what is recalled for it – and freezes the whole there, so that later
// calls repeat the same bytes (mission 4.7, 4.8). It comes after a compression has
// been decided on, which would move more out of the window. Without it the turn goes
// on all the same.
func (t *turn) attach(ctx context.Context) {
	newest, said := t.unattached()
	if newest == nil || newest.Seq == t.attached {
		return
	}
	t.attached = newest.Seq
	beside := append(t.overheard(ctx), t.described(ctx)...)
	beside = append(beside, t.skills(said)...)
	recalled, err := t.recalled(ctx, said)
	if recalled != "" {
		beside = append(beside, recalled)
	}
	if err == nil && len(beside) > 0 {
		wire := history.UserText(*newest, t.historyOptions()) + "\n\n" + strings.Join(beside, "\n\n")
		if err = t.req.Journal.Freeze(ctx, newest.Seq, wire); err == nil {
			newest.Wire = wire
		}
	}
	if err != nil {
		t.log.Warn("a message goes without what belongs to it", zap.Error(err))
	}
}

// unattached is the newest row, if people said it and nothing is frozen beside it,
// with the text of all such rows that stand at the end of the history.
func (t *turn) unattached() (newest *record.Message, text string) {
	var said []string
	for i := range slices.Backward(t.rows) {
		m := &t.rows[i]
		if m.Role != llm.User || m.Wire != "" || m.Kind != record.KindSaid && m.Kind != record.KindSteer {
			break
		}
		if newest == nil {
			newest = m
		}
		said = append(said, m.Content)
	}
	slices.Reverse(said)
	return newest, strings.Join(said, "\n")
}

// overheard is what was said in a shared room before the first message of its first
// session: the bot was not told of it. It stays with that message.
func (t *turn) overheard(ctx context.Context) []string {
	if t.req.Overheard == nil || !t.shared() || t.session.Previous != "" || t.session.Parent != "" {
		return nil
	}
	if slices.ContainsFunc(t.rows, func(m record.Message) bool { return m.Role != llm.User || m.Wire != "" }) {
		return nil
	}
	said, err := t.req.Overheard.Before(ctx, t.rows[0].Platform)
	if err != nil {
		t.log.Warn("what was said before the first message is not known", zap.Error(err))
		return nil
	}
	if block := prompt.Overheard(said); block != "" {
		return []string{block}
	}
	return nil
}

// skills are the bodies of the skills that a text calls for, unless they are in the
// window. What is not a person's own word calls for none.
func (t *turn) skills(said string) []string {
	if t.row.Trust == record.TrustUntrusted {
		return nil
	}
	var bodies []string
	for _, s := range prompt.Matching(t.a.deps.Skills, said) {
		body := s.Text()
		if !slices.ContainsFunc(t.rows, func(m record.Message) bool { return strings.Contains(m.Wire, body) }) {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// recalled is the block of what has left the window. A session without a parent has
// lost nothing.
func (t *turn) recalled(ctx context.Context, said string) (string, error) {
	if t.a.deps.Recall == nil || t.session.Parent == "" {
		return "", nil
	}
	before := t.windowStart()
	if before <= 1 {
		return "", nil
	}
	s, err := t.a.deps.Recall.Recall(ctx, record.RecallQuery{Conversation: t.row.Conversation, Session: t.session.ID, Before: before, Text: said}, t.row.Person)
	if err != nil {
		return "", err
	}
	for _, rows := range [][]record.Message{s.Relevant, s.Similar, s.Salient, s.Recent} {
		for i := range rows {
			rows[i].Content = engine.Redact(rows[i].Content) // what no summary keeps does not come back
		}
	}
	s.Window = t.rows
	return memory.Recall(s, recallBudget(t.window)), nil
}

// windowStart is the sequence from which everything is in the window. A message that
// a compression kept from further back has a borrowed sequence.
func (t *turn) windowStart() int64 {
	for i := range t.rows {
		m := &t.rows[i]
		borrowed := m.OriginSession != "" && m.OriginSeq != m.Seq
		if m.Kind != record.KindSummary && !borrowed {
			return m.Seq
		}
	}
	return 0
}

// recallBudget is what a recall may take of a window, in characters: at most an
// eighth of it even where a character is a token.
func recallBudget(window int) int {
	if window <= 0 {
		return memory.DefaultBudget
	}
	return min(window/8, memory.DefaultBudget)
}
