// Package history turns stored rows into a legal request. It is pure: the same
// rows give the same bytes, so that a provider's prompt cache holds.
//
// Whatever the rows look like, what Build returns can be sent: the first message
// and the last one are from the user's side, roles alternate, each result
// directly follows its call, every call has exactly one result, call ids are
// unique, arguments are JSON objects, names are legal, texts are valid UTF-8
// without NUL and never empty. Nothing that a person said is left out.
package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agentcore/llm"
	"parley/store/record"
)

// Options are what the rows themselves do not tell.
type Options struct {
	// Shared marks the sender of each user row: several people write here.
	Shared bool
	// Location is the zone in which times are written; nil: UTC.
	Location *time.Location
	// Pictures are shown behind the text of the rows that they came with, by their
	// files' path; nil stands for one that cannot be shown.
	Pictures map[string]*llm.Image
}

// unseen stands for a picture that cannot be shown.
const unseen = "(The picture %q cannot be shown: it is damaged, or no longer kept. If it matters, ask for it to be sent again.)"

// said is a user row: its text, and the pictures that came with it.
func said(r *record.Message, o Options) llm.Message {
	m := llm.Text(llm.User, userText(r, o))
	for _, f := range r.Files {
		switch i, wanted := o.Pictures[f.Path]; {
		case !wanted:
		case i == nil:
			m.Parts = append(m.Parts, llm.Part{Text: fmt.Sprintf(unseen, inert(f.Path, 160))})
		default:
			m.Parts = append(m.Parts, llm.Part{Image: i})
		}
	}
	return m
}

// The texts that Build puts where a request would not be legal otherwise.
const (
	lostResult = "(No result was recorded for this call.)"
	noOutput   = "(no output)"
	opening    = "(The conversation goes on here.)"
	closing    = "(Please go on.)"
)

// Build makes the messages of a request from a session's rows, in three passes:
// neighbours of one role become one message, calls and results are paired by
// position, and neighbours that this left are merged again (PRV-007, PRV-015,
// PRV-018, PRV-021, PRV-029, STP-001). The rows are not changed.
func Build(rows []record.Message, o Options) []llm.Message {
	return closeEnds(merge(pair(merge(convert(rows, o)))))
}

// convert makes one message of each row that says something.
func convert(rows []record.Message, o Options) []llm.Message {
	msgs := make([]llm.Message, 0, len(rows)+2)
	for i := range rows {
		r := &rows[i]
		switch r.Role {
		case llm.User:
			msgs = append(msgs, said(r, o))
		case llm.Assistant:
			m := llm.Message{Role: llm.Assistant, ToolCalls: wireCalls(r.ToolCalls), Reasoning: r.Reasoning}
			if s := clean(r.Content); strings.TrimSpace(s) != "" {
				m.Parts = []llm.Part{{Text: s}}
			}
			if len(m.Parts) > 0 || len(m.ToolCalls) > 0 {
				msgs = append(msgs, m)
			}
		case llm.ToolRole:
			s := clean(r.Content)
			if strings.TrimSpace(s) == "" {
				s = noOutput
			}
			msgs = append(msgs, llm.Message{Role: llm.ToolRole, Parts: []llm.Part{{Text: s}}, ToolCallID: r.ToolCallID})
		default: // a session has no other rows
		}
	}
	return msgs
}

// merge joins neighbours of the user and of the assistant, in place.
func merge(msgs []llm.Message) []llm.Message {
	out := msgs[:0]
	for _, m := range msgs {
		if n := len(out) - 1; n >= 0 && out[n].Role == m.Role && m.Role != llm.ToolRole {
			out[n] = join(out[n], m)
			continue
		}
		out = append(out, m)
	}
	return out
}

func join(a, b llm.Message) llm.Message {
	if a.Role == llm.User {
		a.Parts = append(slices.Clip(a.Parts), b.Parts...)
		return a
	}
	switch {
	case len(a.Parts) == 0:
		a.Parts = b.Parts
	case len(b.Parts) > 0:
		a.Parts = []llm.Part{{Text: a.Parts[0].Text + "\n\n" + b.Parts[0].Text}}
	}
	a.ToolCalls = append(slices.Clip(a.ToolCalls), b.ToolCalls...)
	// A signature holds for the message it came with, not for a joined one.
	a.Reasoning = nil
	return a
}

// slot is the place of one call's result.
type slot struct {
	id     string // as stored
	result *llm.Message
}

// pair puts exactly one result behind each call. A result belongs to the newest
// earlier call of its id that has none yet; others are dropped.
func pair(msgs []llm.Message) []llm.Message {
	slots, lost := assign(msgs)
	out := make([]llm.Message, 0, len(msgs)+lost+2)
	seen := map[string]bool{}
	next := 0
	for i := range msgs {
		m := msgs[i]
		if m.Role == llm.ToolRole {
			continue
		}
		out = append(out, m)
		for c := range m.ToolCalls {
			s := slots[next]
			next++
			m.ToolCalls[c].ID = unique(seen, s.id)
			result := llm.Message{Role: llm.ToolRole, Parts: []llm.Part{{Text: lostResult}}}
			if s.result != nil {
				result = *s.result
			}
			result.ToolCallID = m.ToolCalls[c].ID
			out = append(out, result)
		}
	}
	return out
}

// assign finds the result of each call, in the order of the calls, and counts
// the calls that have none.
func assign(msgs []llm.Message) (slots []slot, lost int) {
	calls := 0
	for i := range msgs {
		calls += len(msgs[i].ToolCalls)
	}
	slots = make([]slot, 0, calls)
	open := make(map[string][]int, calls)
	for i := range msgs {
		m := &msgs[i]
		// A repeated id means a new call: a result that comes later is not the old
		// one's.
		for _, c := range m.ToolCalls {
			delete(open, c.ID)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = append(open[c.ID], len(slots))
			slots = append(slots, slot{id: c.ID})
		}
		if m.Role != llm.ToolRole {
			continue
		}
		if waiting := open[m.ToolCallID]; len(waiting) > 0 {
			slots[waiting[0]].result = m
			open[m.ToolCallID] = waiting[1:]
		}
	}
	for i := range slots {
		if slots[i].result == nil {
			lost++
		}
	}
	return slots, lost
}

// unique returns id, or a variant of it that is not in seen yet, and adds it.
func unique(seen map[string]bool, id string) string {
	if id == "" {
		id = "call"
	}
	name := id
	for n := 2; seen[name]; n++ {
		name = id + "_" + strconv.Itoa(n)
	}
	seen[name] = true
	return name
}

// closeEnds makes a user message the first one and the last one from the user's
// side (PRV-003, PRV-029).
func closeEnds(msgs []llm.Message) []llm.Message {
	if len(msgs) == 0 {
		return msgs
	}
	if msgs[0].Role != llm.User {
		msgs = slices.Insert(msgs, 0, llm.Text(llm.User, opening))
	}
	if msgs[len(msgs)-1].Role == llm.Assistant {
		msgs = append(msgs, llm.Text(llm.User, closing))
	}
	return msgs
}
