package agentcore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

const searchName = "session_search"

const (
	searchScanned = 100 // hits that are looked at
	searchShown   = 8   // lineages of them that are shown, and sessions that are listed
	searchAround  = 5   // messages before and after the best hit
	searchExcerpt = 400 // characters of a hit
	readExcerpt   = 800 // characters of a message when a session is read
	readWhole     = 40  // messages of a session that is read whole
	readHead      = 10  // of a longer one, its first messages and
	readTail      = 20  // its last
	readAround    = 15  // messages before and after the one that is asked for
)

type sessionSearchInput struct {
	Query   string           `json:"query,omitempty" jsonschema:"words to look for"`
	Detail  string           `json:"detail,omitempty" enum:"best,full" jsonschema:"with query: show what stands around the best hit (the default) or around each"`
	Session record.SessionID `json:"session,omitempty" jsonschema:"the id of a session, to read it: whole, or its beginning and end"`
	Around  int64            `json:"around,omitempty" jsonschema:"with session: the number of a message, to read what stands around it; scroll with the first or last number shown"`
}

// place names a message in whichever session it was written.
type place struct {
	session record.SessionID
	seq     int64
}

// live are the messages that the model sees anyway, the originals of copies included.
func (t *turn) live() map[place]bool {
	seen := make(map[place]bool, len(t.rows))
	for _, m := range t.rows {
		seen[place{m.Session, m.Seq}] = true
		if m.OriginSession != "" {
			seen[place{m.OriginSession, m.OriginSeq}] = true
		}
	}
	return seen
}

// sessionSearch looks into the past of this conversation and of no other one: what was
// said in a room stays there. What live holds is in view and not found.
func (a *Agent) sessionSearch(live map[place]bool) (tool.Tool, error) {
	spec := tool.Spec{Parallel: true, ReadOnly: true}
	spec.Name = searchName
	spec.Description = "Look into earlier sessions of this conversation, what was summarised included. With query: full-text search, one hit for each line of sessions, the best one with what " +
		"stands around it. With session: read it. With session and around: read on from a message. With nothing: list the newest sessions. " +
		"Use it when the user refers to something that is not in view, before you ask them to repeat it."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in sessionSearchInput) (tool.Result, error) {
		switch {
		case in.Session != "":
			return a.readSession(ctx, c, in)
		case strings.TrimSpace(in.Query) != "":
			return a.searchSessions(ctx, c, in, live)
		}
		list, err := a.deps.Searcher.Sessions(ctx, c.Conversation, searchShown)
		return tool.Result{Text: renderSessions(list)}, err
	})
}

// searchSessions shows the best hit of each lineage.
func (a *Agent) searchSessions(ctx context.Context, c tool.Call, in sessionSearchInput, live map[place]bool) (tool.Result, error) {
	hits, err := a.deps.Searcher.Search(ctx, c.Conversation, in.Query, searchScanned)
	if err != nil {
		return tool.Result{}, err
	}
	roots := map[record.SessionID]bool{}
	hits = slices.DeleteFunc(hits, func(h record.SearchHit) bool {
		if live[place{h.Session, h.Seq}] || roots[h.Root] {
			return true
		}
		roots[h.Root] = h.Root != ""
		return false
	})
	if len(hits) == 0 {
		return tool.Result{Text: "Nothing was found that is not in view. Try fewer or other words."}, nil
	}
	var b strings.Builder
	for i, h := range hits[:min(len(hits), searchShown)] {
		fmt.Fprintf(&b, "session %s%s, message %d, %s (%s): %s\n", h.Session, titled(h.SessionTitle), h.Seq, h.Role, h.CreatedAt.Format(readTime), clipLine(h.Content, searchExcerpt))
		if i > 0 && in.Detail != "full" {
			continue
		}
		if err := a.showAround(ctx, &b, c, h); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.Result{Text: b.String()}, nil
}

const readTime = "2006-01-02 15:04"

func titled(title string) string {
	if title == "" {
		return ""
	}
	return fmt.Sprintf(" %q", clipLine(title, 80))
}

// showAround shows what stands around a hit, with the first and the last words of its
// session.
func (a *Agent) showAround(ctx context.Context, b *strings.Builder, c tool.Call, h record.SearchHit) error {
	rows, err := a.spoken(ctx, c, h.Session)
	if err != nil || len(rows) == 0 {
		return err
	}
	from, to := window(rows, h.Seq, searchAround)
	if from > 0 {
		b.WriteString("  begins: " + readLine(rows[0], searchExcerpt))
	}
	for _, m := range rows[from:to] {
		b.WriteString("  " + readLine(m, searchExcerpt))
	}
	if to < len(rows) {
		b.WriteString("  ends: " + readLine(rows[len(rows)-1], searchExcerpt))
	}
	return nil
}

// spoken are the messages of a session that people and the model said to each other,
// without summaries.
func (a *Agent) spoken(ctx context.Context, c tool.Call, s record.SessionID) ([]record.Message, error) {
	rows, err := a.deps.Searcher.SessionIn(ctx, c.Conversation, s)
	return slices.DeleteFunc(slices.Clone(rows), func(m record.Message) bool {
		return m.Role == llm.ToolRole || m.Kind == record.KindSummary || strings.TrimSpace(m.Content) == ""
	}), err
}

// window is the range of rows around the one of a sequence.
func window(rows []record.Message, seq int64, around int) (from, to int) {
	at := slices.IndexFunc(rows, func(m record.Message) bool { return m.Seq >= seq })
	if at < 0 {
		at = len(rows) - 1
	}
	return max(at-around, 0), min(at+around+1, len(rows))
}

func readLine(m record.Message, limit int) string {
	return fmt.Sprintf("%d %s (%s): %s\n", m.Seq, m.Role, m.CreatedAt.Format(readTime), clipLine(m.Content, limit))
}

func (a *Agent) readSession(ctx context.Context, c tool.Call, in sessionSearchInput) (tool.Result, error) {
	rows, err := a.spoken(ctx, c, in.Session)
	if errors.Is(err, record.ErrNotFound) {
		return tool.Failure("This conversation has no session %q. List them by calling this without arguments.", in.Session), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	if len(rows) == 0 {
		return tool.Result{Text: "Nothing is there to read."}, nil
	}
	var b strings.Builder
	show := func(from, to int) {
		for _, m := range rows[from:to] {
			b.WriteString(readLine(m, readExcerpt))
		}
	}
	switch {
	case in.Around > 0:
		from, to := window(rows, in.Around, readAround)
		if from > 0 {
			fmt.Fprintf(&b, "(%d messages before)\n", from)
		}
		show(from, to)
		if to < len(rows) {
			fmt.Fprintf(&b, "(%d messages after)\n", len(rows)-to)
		}
	case len(rows) <= readWhole:
		show(0, len(rows))
	default:
		show(0, readHead)
		fmt.Fprintf(&b, "(%d messages between; read on with around: %d)\n", len(rows)-readHead-readTail, rows[readHead].Seq)
		show(len(rows)-readTail, len(rows))
	}
	return tool.Result{Text: b.String()}, nil
}

func renderSessions(list []record.SessionSummary) string {
	if len(list) == 0 {
		return "There are no sessions."
	}
	var b strings.Builder
	for _, s := range list {
		mark := ""
		if s.Current {
			mark = " (this one)"
		}
		title := s.Title
		if title == "" {
			title = s.Opening
		}
		fmt.Fprintf(&b, "%s%s: %q, %d messages, last %s\n", s.ID, mark, clipLine(title, 120), s.Messages, s.LastAt.Format(readTime))
	}
	return b.String()
}
