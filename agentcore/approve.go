package agentcore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

// questionLimit bounds the arguments that a question shows, in characters. A call
// that cannot be shown whole is refused: nobody consents to what they cannot see.
const questionLimit = 3000

// DenyAsker is an Asker for callers without people: it consents to nothing and
// answers nothing.
type DenyAsker struct{}

// Ask implements Asker.
func (DenyAsker) Ask(ctx context.Context, q record.Approval) (record.Approval, error) {
	q.State = record.ApprovalExpired
	if q.Kind == record.AskApproval {
		q.State = record.ApprovalDenied
	}
	return q, ctx.Err()
}

// consent looks up what people decided about a call, or says that they are to be
// asked.
func (t *turn) consent(j *job, r tool.Ruling) {
	if text := shown(j.call); len([]rune(text)) > questionLimit {
		j.refused = failure("This call needs a person's consent, but it is too long to be shown to one (%d characters at most). Make it shorter.", questionLimit)
		j.refused.by, j.refused.why = record.RefusedByPolicy, "it needs a person's consent, but it is too long to be shown to one"
		return
	}
	a, asked := t.decided.people[j.call.ID]
	if !asked {
		j.ask, j.pattern = r.Reason, r.Pattern
		return
	}
	const silence = " Do not send it again, rephrase it or reach the same end in another way; say what you would need, or go on without it."
	said := "the user denied it."
	switch a.State {
	case record.ApprovalApproved:
		return
	case record.ApprovalExpired:
		said = "nobody consented in time. Silence is not consent."
	case record.ApprovalWithdrawn:
		said = "the question was withdrawn because people went on with something else."
	case record.ApprovalDenied, record.ApprovalAnswered, record.ApprovalOpen:
	}
	j.refused = &outcome{text: "Not run: " + said + silence, word: "denied", by: record.RefusedByPeople, why: r.Reason}
}

// approving asks about the next open call and waits. A question that stands from
// before a restart is waited for, not asked again; that is the asker's part, which
// knows it by turn and call (APR-006).
func (t *turn) approving(ctx context.Context) (record.TurnState, error) {
	if err := t.askHooks(ctx); err != nil {
		return t.halted(ctx)
	}
	jobs := t.jobs()
	if len(jobs) == 0 || jobs[0].ask == "" {
		return record.TurnActing, nil
	}
	j := jobs[0]
	if err := t.save(ctx, record.TurnApproving); err != nil {
		return t.broken(ctx, err)
	}
	now := t.a.deps.Now()
	a, err := t.req.Asker.Ask(ctx, record.Approval{
		ID: record.ApprovalID(record.NewID()), Conversation: t.row.Conversation, Turn: t.row.ID, CallID: j.call.ID, Kind: record.AskApproval,
		Question: question(j), State: record.ApprovalOpen, Asked: t.row.Person, ExpiresAt: now.Add(t.a.deps.ApprovalTimeout), CreatedAt: now,
		Tool: j.call.Name, Pattern: j.pattern,
	})
	if err != nil {
		return t.broken(ctx, err)
	}
	t.decided.people[j.call.ID] = a
	return record.TurnActing, nil
}

// question shows exactly what would run, and what a lasting consent would cover
// where that is something else.
func question(j job) string {
	body := shown(j.call)
	text := fmt.Sprintf("**Allow `%s`?** (%s)\n\n%s", j.call.Name, j.ask, fenced(body))
	if covers := visible(j.pattern); covers != "" && covers != visible(j.call.Arguments) && !strings.Contains(body, covers) {
		text += "\n\nFor longer than once it would cover:\n\n" + fenced(covers)
	}
	return text
}

// fenced shows a text as data that cannot leave its frame.
func fenced(body string) string {
	fence := "```"
	for strings.Contains(body, fence) {
		fence += "`"
	}
	return fence + "\n" + body + "\n" + fence
}

// shown is a call's arguments for people: a single text as it is, anything else
// as JSON. What cannot be seen is spelt out.
func shown(c llm.ToolCall) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Arguments), &fields); err != nil {
		return visible(c.Arguments)
	}
	if len(fields) == 1 {
		for name, raw := range fields {
			var s string
			if json.Unmarshal(raw, &s) == nil && s != "" {
				return visible(name + ": " + s)
			}
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(fields); err != nil {
		return visible(c.Arguments)
	}
	return visible(strings.TrimSpace(b.String()))
}

func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}
