package agentcore

import (
	"context"

	"go.uber.org/zap"

	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/store/record"
)

// relevantHits is how many search hits are looked at for a recall.
const relevantHits = 20

// recall puts what has left the window beside the newest user message and freezes
// it there, so that later calls repeat the same bytes (mission 4.8). Without it
// the turn goes on all the same.
func (t *turn) recall(ctx context.Context) {
	// Only a compression takes rows out of the window; a branch or an undo has a
	// parent too, whose later rows are not to come back.
	if t.a.deps.Searcher == nil || t.session.Reason != record.ReasonCompression || len(t.rows) == 0 {
		return
	}
	newest := &t.rows[len(t.rows)-1]
	if newest.Role != llm.User || newest.Kind != record.KindSaid || newest.Wire != "" {
		return
	}
	text, err := t.recalled(ctx, newest.Content)
	if err == nil && text != "" {
		wire := history.UserText(*newest, t.historyOptions()) + "\n\n" + text
		if err = t.req.Journal.Freeze(ctx, newest.Seq, wire); err == nil {
			newest.Wire = wire
		}
	}
	if err != nil {
		t.log.Warn("nothing could be recalled", zap.Error(err))
	}
}

// recalled picks from the session that was compressed into this one, and of what
// a search finds only what belongs to the lineage: a session begun anew does not
// see the one before.
func (t *turn) recalled(ctx context.Context, said string) (string, error) {
	s, conversation := t.a.deps.Searcher, t.row.Conversation
	left, err := s.SessionIn(ctx, conversation, t.session.Parent)
	if err != nil {
		return "", err
	}
	hits, err := s.Search(ctx, conversation, said, relevantHits)
	if err != nil {
		return "", err
	}
	lineage := map[record.SessionID]bool{t.session.Parent: true}
	for _, m := range left {
		lineage[m.OriginSession] = true
	}
	var relevant []record.Message
	for _, h := range hits {
		if lineage[h.Session] {
			relevant = append(relevant, h.Message)
		}
	}
	return memory.Recall(memory.Sources{Left: left, Relevant: relevant, Window: t.rows}, 0), nil
}
