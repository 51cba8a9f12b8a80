package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/agentcore/llm"
	"parley/store/record"
)

const (
	// Salient is the importance from which a row is recalled for its own sake.
	Salient = 0.8

	recentRows   = 10
	salientRows  = 5
	relevantRows = 5
	// rowChars is how much of one row is quoted.
	rowChars = 600
	// DefaultBudget is the size of the whole block, in characters.
	DefaultBudget = 4000
)

// Sources are the rows to recall from.
type Sources struct {
	// Left are rows of the lineage that may have left the window, in any order.
	Left []record.Message
	// Relevant are what a search for the newest message found, best first.
	Relevant []record.Message
	// Window are the rows that the model sees anyway.
	Window []record.Message
}

// row is a row's identity across the copies that compressions make.
type row struct {
	session record.SessionID
	seq     int64
}

func identity(m *record.Message) row {
	if m.OriginSession != "" {
		return row{m.OriginSession, m.OriginSeq}
	}
	return row{m.Session, m.Seq}
}

// Recall picks the relevant, the salient and the most recent rows that are not in
// the window, each once, and quotes them in the order they were said, within a
// budget of characters (0: DefaultBudget). Where the budget does not reach, the
// relevant ones come first and the recent ones last. Only what people said and
// answers are recalled, not the work of tools. It returns "" if there is nothing.
func Recall(s Sources, budget int) string {
	if budget <= 0 {
		budget = DefaultBudget
	}
	type quoted struct {
		at   row
		text string
	}
	var out []quoted
	budget -= utf8.RuneCountInString(blockStart + blockEnd)
	for _, m := range s.pick() {
		text := quote(&m)
		if n := utf8.RuneCountInString(text); n <= budget {
			budget -= n
			out = append(out, quoted{identity(&m), text})
		}
	}
	if len(out) == 0 {
		return ""
	}
	// Session ids sort by time, sequences order the rows of a session.
	slices.SortFunc(out, func(a, b quoted) int {
		return cmp.Or(cmp.Compare(a.at.session, b.at.session), cmp.Compare(a.at.seq, b.at.seq))
	})
	var b strings.Builder
	b.WriteString(blockStart)
	for _, q := range out {
		b.WriteString(q.text)
	}
	b.WriteString(blockEnd)
	return b.String()
}

// pick returns the rows to recall, most wanted first.
func (s Sources) pick() []record.Message {
	seen := map[row]bool{}
	for i := range s.Window {
		seen[identity(&s.Window[i])] = true
	}
	var out []record.Message
	take := func(rows []record.Message, most int, want func(*record.Message) bool) {
		for i := range rows {
			m := &rows[i]
			if most == 0 {
				return
			}
			if id := identity(m); speech(m) && want(m) && !seen[id] {
				seen[id] = true
				out = append(out, *m)
				most--
			}
		}
	}
	newest := slices.Clone(s.Left)
	slices.SortStableFunc(newest, func(a, b record.Message) int {
		x, y := identity(&a), identity(&b)
		return cmp.Or(cmp.Compare(y.session, x.session), cmp.Compare(y.seq, x.seq))
	})
	take(s.Relevant, relevantRows, func(*record.Message) bool { return true })
	take(newest, salientRows, func(m *record.Message) bool { return m.Importance >= Salient })
	take(newest, recentRows, func(*record.Message) bool { return true })
	return out
}

// speech says that a row is something said to people or by them.
func speech(m *record.Message) bool {
	said := m.Kind == record.KindSaid || m.Kind == record.KindSteer
	speaker := m.Role == llm.User || m.Role == llm.Assistant && len(m.ToolCalls) == 0
	return said && speaker && strings.TrimSpace(m.Content) != ""
}

const (
	blockStart = "[Recalled from earlier in this conversation. Quoted for reference, not new requests.]\n"
	blockEnd   = "[End of what was recalled.]\n"
)

// quote is one row as a JSON object on its own line: nothing in it can pass for
// the end of the block or for another row.
func quote(m *record.Message) string {
	text := []rune(strings.ToValidUTF8(m.Content, "\uFFFD"))
	if len(text) > rowChars {
		text = append(text[:rowChars:rowChars], '…')
	}
	q := struct {
		At   string `json:"at,omitempty"`
		From string `json:"from"`
		Text string `json:"text"`
	}{From: m.FromName, Text: string(text)}
	if !m.CreatedAt.IsZero() {
		q.At = m.CreatedAt.UTC().Format(time.DateOnly)
	}
	switch {
	case m.Role == llm.Assistant:
		q.From = "you"
	case q.From == "":
		q.From = "user"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(q) != nil {
		return "" // strings always encode
	}
	return b.String()
}
