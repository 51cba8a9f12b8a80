package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/agentcore/llm"
	"parley/store/record"
)

// What one row may take of the summariser's input, in bytes.
const (
	maxSaid      = 6000
	maxResult    = 1500
	maxArguments = 1500
	// chunkBytes bounds one call's input; a longer middle is summarised in several,
	// each going on from the summary so far.
	chunkBytes = 160_000
)

// line is one row as the summariser sees it: a JSON object on a line of its own,
// so that no text can pass for another row.
type line struct {
	N     int      `json:"n"`
	Role  llm.Role `json:"role"`
	Name  string   `json:"name,omitempty"`
	Text  string   `json:"text,omitempty"`
	Calls []string `json:"calls,omitempty"`
	Files []string `json:"files,omitempty"`
}

// transcript renders rows in chunks of at most limit bytes (one row may be more).
// Every row is in exactly one chunk. Old tool results, which make up most of a
// long history, are clipped, and one that was seen before is only named; secrets
// are taken out; reasoning and recalled memories are left out.
func transcript(rows []record.Message, limit int) []string {
	var chunks []string
	var b strings.Builder
	seen := map[string]int{}
	for i := range rows {
		l := render(&rows[i], i+1)
		if l.Role == llm.ToolRole && len(l.Text) > 200 {
			if first, ok := seen[rows[i].Content]; ok {
				l.Text = fmt.Sprintf("(the same as %d)", first)
			} else {
				seen[rows[i].Content] = i + 1
			}
		}
		text := encode(l)
		if b.Len() > 0 && b.Len()+len(text) > limit {
			chunks = append(chunks, b.String())
			b.Reset()
		}
		b.WriteString(text)
	}
	return append(chunks, b.String())
}

func render(m *record.Message, n int) line {
	l := line{N: n, Role: m.Role, Name: m.FromName}
	size := maxSaid
	if m.Role == llm.ToolRole {
		l.Name, size = m.ToolName, maxResult
	}
	l.Text = Redact(clip(m.Content, size))
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		l.Calls = append(l.Calls, c.Name+" "+Redact(clip(c.Arguments, maxArguments)))
	}
	for i := range m.Files {
		l.Files = append(l.Files, m.Files[i].Name)
	}
	return l
}

func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "" // strings and numbers always encode
	}
	return b.String()
}

// clip keeps the first two thirds and the last third of a text that is longer
// than limit bytes, whole characters only.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit*2/3, len(s)-limit/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", s[:head], tail-head, s[tail:])
}

// beginning quotes the head's texts word for word.
func beginning(rows []record.Message) string {
	var b strings.Builder
	for i := range rows {
		m := &rows[i]
		if m.Role == llm.ToolRole || m.Kind == record.KindNotice || strings.TrimSpace(m.Content) == "" {
			continue
		}
		b.WriteString(encode(line{N: i + 1, Role: m.Role, Name: m.FromName, Text: Redact(clip(m.Content, clippedResult))}))
	}
	return b.String()
}
