package agentcore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

const (
	searchHits    = 12
	searchExcerpt = 400 // characters of a hit
	readExcerpt   = 800 // characters of a message when a session is read
	readMessages  = 40  // messages of one reading
)

type sessionSearchInput struct {
	Query   string `json:"query,omitempty" jsonschema:"words to look for; leave it out to list the sessions"`
	Session string `json:"session,omitempty" jsonschema:"the id of a session, to read it"`
	After   int64  `json:"after,omitempty" jsonschema:"when reading: only messages after this number"`
}

// sessionSearch looks into the past of this conversation, and of no other one.
func (a *Agent) sessionSearch() (tool.Tool, error) {
	spec := tool.Spec{Parallel: true, ReadOnly: true}
	spec.Name = "session_search"
	spec.Description = "Look into earlier sessions of this conversation, what was summarised included. With query: full-text search. With session: read that session " +
		"(40 messages at a time, go on with after). With neither: list the sessions. Use it when the user refers to something that is not in view, before you ask them to repeat it."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in sessionSearchInput) (tool.Result, error) {
		switch {
		case in.Session != "":
			return a.readSession(ctx, c, in)
		case strings.TrimSpace(in.Query) != "":
			hits, err := a.deps.Searcher.Search(ctx, c.Conversation, in.Query, searchHits)
			return tool.Result{Text: renderHits(hits)}, err
		}
		list, err := a.deps.Searcher.Sessions(ctx, c.Conversation, searchHits)
		return tool.Result{Text: renderSessions(list)}, err
	})
}

func (a *Agent) readSession(ctx context.Context, c tool.Call, in sessionSearchInput) (tool.Result, error) {
	rows, err := a.deps.Searcher.SessionIn(ctx, c.Conversation, record.SessionID(in.Session))
	if errors.Is(err, record.ErrNotFound) {
		return tool.Failure("This conversation has no session %q. List them by calling this without arguments.", in.Session), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	shown, rest := 0, 0
	for _, m := range rows {
		if m.Seq <= in.After || m.Role == llm.ToolRole || strings.TrimSpace(m.Content) == "" {
			continue
		}
		if shown == readMessages {
			rest++
			continue
		}
		shown++
		fmt.Fprintf(&b, "%d %s (%s): %s\n", m.Seq, m.Role, m.CreatedAt.Format("2006-01-02 15:04"), clipLine(m.Content, readExcerpt))
	}
	if rest > 0 {
		fmt.Fprintf(&b, "%d more messages follow; go on with after.", rest)
	}
	if shown == 0 {
		return tool.Result{Text: "Nothing is there to read."}, nil
	}
	return tool.Result{Text: b.String()}, nil
}

func renderHits(hits []record.SearchHit) string {
	if len(hits) == 0 {
		return "Nothing was found. Try fewer or other words."
	}
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "session %s, message %d, %s (%s): %s\n", h.Session, h.Seq, h.Role, h.CreatedAt.Format("2006-01-02 15:04"), clipLine(h.Content, searchExcerpt))
	}
	return b.String()
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
		fmt.Fprintf(&b, "%s%s: %q, %d messages, last %s\n", s.ID, mark, clipLine(title, 120), s.Messages, s.LastAt.Format("2006-01-02 15:04"))
	}
	return b.String()
}
