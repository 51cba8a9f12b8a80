package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/agentcore/llm"
	"parley/store/record"
)

func (a *app) sessionsCommand() *cobra.Command {
	one := func(use, short string, run func(context.Context, record.SessionID, bool) error) *cobra.Command {
		var asJSON bool
		return jsonFlag(&cobra.Command{
			Use: use + " SESSION", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				return run(c.Context(), record.SessionID(args[0]), asJSON)
			},
		}, &asJSON)
	}
	var asJSON bool
	var limit int
	list := jsonFlag(&cobra.Command{
		Use: "list", Short: "List the sessions of all conversations", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.sessionsList(c.Context(), limit, asJSON) },
	}, &asJSON)
	list.Flags().IntVar(&limit, "limit", 50, "at most `N` conversations, the newest first")
	return group("sessions", "Read what was said", list,
		one("show", "Print a session's messages", a.sessionsShow),
		one("tree", "Print the lineage that a session belongs to", a.sessionsTree),
		one("export", "Write a session with all its messages, as Markdown or JSON", a.sessionsExport))
}

// sessionRow is a session in lists, as JSON.
type sessionRow struct {
	ID           string `json:"id"`
	Conversation string `json:"conversation_id"`
	Address      string `json:"address,omitempty"`
	Parent       string `json:"parent_id,omitempty"`
	Root         string `json:"root_id"`
	Reason       string `json:"reason"`
	Title        string `json:"title"`
	Model        string `json:"model"`
	Messages     *int   `json:"messages,omitempty"` // in the list
	Current      bool   `json:"current"`
	CreatedAt    string `json:"created_at"`
	EndedAt      string `json:"ended_at,omitempty"`
}

func rowOf(s record.Session) sessionRow {
	return sessionRow{
		ID: string(s.ID), Conversation: string(s.Conversation), Parent: string(s.Parent), Root: string(s.Root),
		Reason: string(s.Reason), Title: s.Title, Model: string(s.Model), CreatedAt: timestamp(s.CreatedAt), EndedAt: timestamp(s.EndedAt),
	}
}

func (a *app) sessionsList(ctx context.Context, limit int, asJSON bool) error {
	return a.withDatabase(ctx, func(db *database) error {
		conversations, err := db.Conversations(ctx, limit)
		if err != nil {
			return err
		}
		found := []sessionRow{}
		rows := [][]string{{"SESSION", "CHAT", "MESSAGES", "LAST", "TITLE"}}
		for _, c := range conversations {
			sessions, err := db.Sessions(ctx, c.ID, limit)
			if err != nil {
				return err
			}
			for _, s := range sessions {
				r := rowOf(s.Session)
				r.Address, r.Messages, r.Current = c.Key.Address.String(), new(s.Messages), s.Current
				found = append(found, r)
				title := s.Title
				if title == "" {
					title = s.Opening
				}
				rows = append(rows, []string{mark(s.Current) + r.ID, r.Address, strconv.Itoa(s.Messages), s.LastAt.Local().Format(time.DateTime), title})
			}
		}
		if asJSON {
			return printJSON(a.stdout, found)
		}
		return printTable(a.stdout, rows)
	})
}

// mark is what stands before a session in lists: the current one has an asterisk.
func mark(current bool) string {
	if current {
		return "* "
	}
	return "  "
}

func noSession(id string) error {
	return fmt.Errorf("there is no session %s; see parley sessions list", oneLine(id, 60))
}

// session loads a session and its messages.
func session(ctx context.Context, db *database, id record.SessionID) (record.Session, []record.Message, error) {
	s, err := db.Session(ctx, id)
	if errors.Is(err, record.ErrNotFound) {
		return s, nil, noSession(string(id))
	}
	if err != nil {
		return s, nil, err
	}
	history, err := db.History(ctx, id)
	return s, history, err
}

func (a *app) sessionsShow(ctx context.Context, id record.SessionID, asJSON bool) error {
	return a.withDatabase(ctx, func(db *database) error {
		s, history, err := session(ctx, db, id)
		switch {
		case err != nil:
			return err
		case asJSON:
			return a.exportJSON(ctx, db, s, history)
		}
		for _, m := range history {
			if _, err := fmt.Fprintf(a.stdout, "%s  %s\n%s\n\n", m.CreatedAt.Local().Format(time.DateTime), speaker(m), plain(bodyOf(m))); err != nil {
				return err
			}
		}
		return nil
	})
}

// speaker names who said a message.
func speaker(m record.Message) string {
	switch {
	case m.Kind == record.KindSummary:
		return "summary"
	case m.Role == llm.ToolRole:
		return "tool " + m.ToolName
	case m.FromName != "":
		return fmt.Sprintf("%s (%s)", oneLine(m.FromName, 40), m.From)
	}
	return string(m.Role)
}

// bodyOf is a message's text with its tool calls.
func bodyOf(m record.Message) string {
	var b strings.Builder
	b.WriteString(m.Content)
	for _, c := range m.ToolCalls {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "→ %s %s", c.Name, c.Arguments)
	}
	return b.String()
}

// sessionsTree prints the lineage from its root, with what was folded into later
// sessions and what subagents did.
func (a *app) sessionsTree(ctx context.Context, id record.SessionID, asJSON bool) error {
	return a.withDatabase(ctx, func(db *database) error {
		s, _, err := session(ctx, db, id)
		if err != nil {
			return err
		}
		nodes, err := db.Tree(ctx, s)
		if err != nil {
			return err
		}
		if asJSON {
			rows := []sessionRow{}
			for _, n := range nodes {
				r := rowOf(n.Session)
				r.Current = n.Current
				rows = append(rows, r)
			}
			return printJSON(a.stdout, rows)
		}
		return printTree(a, nodes, nodes[0].Parent, 0)
	})
}

func printTree(a *app, nodes []record.SessionSummary, parent record.SessionID, depth int) error {
	for _, n := range nodes {
		if n.Parent != parent {
			continue
		}
		indent := strings.Repeat("   ", depth)
		line := fmt.Sprintf("%s%s%s  %s  %s  %s", indent, mark(n.Current), n.ID, n.Reason, n.CreatedAt.Local().Format(time.DateTime), oneLine(n.Title, 60))
		if _, err := fmt.Fprintln(a.stdout, strings.TrimRight(line, " ")); err != nil {
			return err
		}
		if err := printTree(a, nodes, n.ID, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) sessionsExport(ctx context.Context, id record.SessionID, asJSON bool) error {
	return a.withDatabase(ctx, func(db *database) error {
		s, history, err := session(ctx, db, id)
		switch {
		case err != nil:
			return err
		case asJSON:
			return a.exportJSON(ctx, db, s, history)
		}
		title := s.Title
		if title == "" {
			title = string(s.ID)
		}
		model := cmp.Or(string(s.Model), "the configured model")
		fmt.Fprintf(a.stdout, "# %s\n\nsession %s, %s, begun %s\n", oneLine(title, 200), s.ID, model, timestamp(s.CreatedAt))
		for _, m := range history {
			if _, err := fmt.Fprintf(a.stdout, "\n## %s, %s\n\n%s\n", speaker(m), timestamp(m.CreatedAt), bodyOf(m)); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportedSession is a session with its messages, as JSON.
type exportedSession struct {
	sessionRow
	Messages []exportedMessage `json:"messages"`
}

type exportedMessage struct {
	Session    string         `json:"session_id"`
	Seq        int64          `json:"seq"`
	Role       string         `json:"role"`
	Kind       string         `json:"kind,omitempty"`
	From       string         `json:"from,omitempty"`
	Name       string         `json:"name,omitempty"`
	Content    string         `json:"content"`
	ToolCalls  []llm.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	ToolName   string         `json:"tool_name,omitempty"`
	Importance float64        `json:"importance"`
	CreatedAt  string         `json:"created_at"`
}

func (a *app) exportJSON(ctx context.Context, db *database, s record.Session, history []record.Message) error {
	nodes, err := db.Tree(ctx, s)
	if err != nil {
		return err
	}
	e := exportedSession{sessionRow: rowOf(s), Messages: []exportedMessage{}}
	for _, n := range nodes {
		e.Current = e.Current || n.ID == s.ID && n.Current
	}
	for _, m := range history {
		e.Messages = append(e.Messages, exportedMessage{
			Session: string(m.Session), Seq: m.Seq, Role: string(m.Role), Kind: string(m.Kind), From: string(m.From), Name: m.FromName,
			Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, ToolName: m.ToolName,
			Importance: m.Importance, CreatedAt: timestamp(m.CreatedAt),
		})
	}
	return printJSON(a.stdout, e)
}

// timestamp is a time in JSON and Markdown; the zero time is empty.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
