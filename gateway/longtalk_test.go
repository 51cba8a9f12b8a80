package gateway_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store"
	"parley/store/record"
)

// longTalk is a conversation that goes on for thousands of messages, with facts
// planted in what the person says, in what the model answers and in what tools
// return. It is also the model: one that does what it is told and keeps, in a
// summary of limited length, the newest of the facts that it is shown.
type longTalk struct {
	t      *testing.T
	every  int // a fact in each so many turns
	keeps  int // facts that a summary has room for
	tools  int // the fewest calls of a turn with tools
	filler string
	manual string // the tool's description

	mu        sync.Mutex
	sessions  []*leg
	summaries int
	folded    int // tokens given to the summariser
	written   int // tokens that it wrote
}

// leg is what the model saw of one session.
type leg struct {
	id             record.SessionID
	calls          int
	first, highest int // prompt tokens
	total          int
}

var factPattern = regexp.MustCompile(`The code of (\w+) is (\w+)\.`)

// fact is planted in turn n; 0 to 2 say where.
func (l *longTalk) fact(n int) (text string, where int, ok bool) {
	if n%l.every != 0 {
		return "", 0, false
	}
	return fmt.Sprintf("The code of project%d is z%dq.", n, n*7919), n / l.every % 3, true
}

// plant adds the turn's fact to a text if it belongs here, and a filler.
func (l *longTalk) plant(n, where int, text, filler string) string {
	if fact, here, ok := l.fact(n); ok && here == where {
		text += " " + fact
	}
	return text + " " + filler
}

// calls says how many tools the model calls in a turn; their number varies, so that
// the ends of the tail fall anywhere.
func (l *longTalk) calls(n int) int {
	if _, where, ok := l.fact(n); n%3 == 0 && (!ok || where != 2) {
		return 0
	}
	return l.tools + n%5
}

func (l *longTalk) stream(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
	if summarising(r) {
		say(llm.TextDelta{Text: l.summary(r)})
		return nil
	}
	l.saw(r)
	n := turnOf(gatewaytest.LastUser(r))
	if r.Messages[len(r.Messages)-1].Role == llm.User && l.calls(n) > 0 {
		for i := range l.calls(n) {
			say(llm.ToolCallDelta{Index: i, ID: fmt.Sprintf("call_%d_%d", n, i), Name: "look", Arguments: fmt.Sprintf(`{"turn":%d,"part":%d}`, n, i)})
		}
		return nil
	}
	say(llm.TextDelta{Text: l.plant(n, 1, "Done.", l.filler)})
	return nil
}

var turnPattern = regexp.MustCompile(`Turn (\d+)\.`)

// turnOf is the number in what was said last; recalled text stands behind it.
func turnOf(text string) (n int) {
	if m := turnPattern.FindStringSubmatch(text); m != nil {
		_, _ = fmt.Sscan(m[1], &n)
	}
	return n
}

// saw books a request and judges it.
func (l *longTalk) saw(r *llm.Request) {
	if err := agentcoretest.Legal(r.Messages); err != nil {
		l.t.Errorf("an illegal request: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id := record.SessionID(r.CacheKey)
	if len(l.sessions) == 0 || l.sessions[len(l.sessions)-1].id != id {
		l.sessions = append(l.sessions, &leg{id: id, first: gatewaytest.Tokens(r)})
	}
	g := l.sessions[len(l.sessions)-1]
	g.calls++
	g.total += gatewaytest.Tokens(r)
	g.highest = max(g.highest, gatewaytest.Tokens(r))
}

// summary keeps the facts that it is shown, the newest ones where room is short.
func (l *longTalk) summary(r *llm.Request) string {
	given := r.Messages[0].Text()
	facts := factPattern.FindAllString(given, -1)
	facts = slices.Compact(facts[max(0, len(facts)-l.keeps):])
	text := "## Goal\nTo go on for a long time.\n## Relevant files and values\n- " + strings.Join(facts, "\n- ") + "\n## Completed actions\n" + l.filler
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summaries++
	l.folded += gatewaytest.Tokens(r)
	l.written += len(text) / 4
	return text
}

// look is the tool.
func (l *longTalk) look() tool.Tool {
	type input struct {
		Turn int `json:"turn"`
		Part int `json:"part"`
	}
	spec := tool.Spec{ToolSpec: llm.ToolSpec{Name: "look", Description: l.manual}, Parallel: true, ReadOnly: true}
	tl, err := tool.New(spec, func(_ context.Context, _ tool.Call, in input) (tool.Result, error) {
		text := fmt.Sprintf("part %d:", in.Part)
		if in.Part > 0 {
			return tool.Result{Text: text + " " + l.filler}, nil
		}
		return tool.Result{Text: l.plant(in.Turn, 2, text, l.filler)}, nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return tl
}

// legs counts the sessions so far and names the newest one.
func (l *longTalk) legs() (int, record.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sessions)
	return n, l.sessions[n-1].id
}

// found counts where facts were found.
type found struct{ summary, tail, search int }

// look for all facts planted up to a turn: in the summary, in the tail, or with a
// search as the model can make it.
func (l *longTalk) find(db *store.DB, s record.SessionID, upTo int, in *found) {
	l.t.Helper()
	rows, err := db.History(l.t.Context(), s)
	if err != nil {
		l.t.Fatal(err)
	}
	l.pairs(rows)
	summary, tail := "", strings.Builder{}
	for _, m := range rows {
		if m.Kind == record.KindSummary {
			summary = m.Content
		} else {
			tail.WriteString(m.Content)
		}
	}
	conv, _ := standing(l.t, db)
	for n := l.every; n <= upTo; n += l.every {
		fact, where, _ := l.fact(n)
		switch {
		case strings.Contains(summary, fact):
			in.summary++
			continue
		case strings.Contains(tail.String(), fact):
			in.tail++
			continue
		}
		hits, err := db.Search(l.t.Context(), conv.ID, fmt.Sprintf("project%d", n), 12)
		if err != nil {
			l.t.Fatal(err)
		}
		if !slices.ContainsFunc(hits, func(h record.SearchHit) bool { return strings.Contains(h.Content, fact) }) {
			l.t.Errorf("after %d turns the fact of turn %d (%d) is lost", upTo, n, where)
		}
		in.search++
	}
}

// pairs holds that in the rows of a session no call is without its result and no
// result without its call.
func (l *longTalk) pairs(rows []record.Message) {
	l.t.Helper()
	open := map[string]bool{}
	for _, m := range rows {
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
		if m.Role == llm.ToolRole && !open[m.ToolCallID] {
			l.t.Errorf("row %d is the result of %s, which is not there", m.Seq, m.ToolCallID)
		}
		delete(open, m.ToolCallID)
	}
	if len(open) > 0 {
		l.t.Errorf("calls without a result: %v", open)
	}
}

// talk goes on for so many messages.
func (l *longTalk) talk(window, messages int) {
	t := l.t
	h := gatewaytest.New(t, gatewaytest.NewModel(l.stream), gatewaytest.Options{Window: window, Tools: []tool.Tool{l.look()}})
	var in found
	said, seen, n := 0, 1, 0
	for said < messages {
		n++
		id := h.Say(owner, l.plant(n, 0, fmt.Sprintf("Turn %d.", n), ""))
		h.Platform.AwaitReaction(t, id, chat.ReactDone)
		said += 2
		if calls := l.calls(n); calls > 0 {
			said += 1 + calls
		}
		if legs, session := l.legs(); legs > seen {
			seen = legs
			l.find(h.Store, session, n, &in)
		}
	}
	if t.Failed() {
		return
	}
	l.report(window, said, in)
	if in.summary == 0 || in.tail == 0 || in.search == 0 || l.summaries < 5 {
		t.Errorf("too little happened: %d summaries, facts found in %+v", l.summaries, in)
	}
	for i, g := range l.sessions {
		if g.highest > window {
			t.Errorf("session %d had a prompt of %d tokens", i, g.highest)
		}
	}
	if _, s := standing(t, h.Store); s.Ineffective > 0 || s.FailedCompressions > 0 {
		t.Errorf("%d compressions did not help, %d failed", s.Ineffective, s.FailedCompressions)
	}
}

// report prints what the conversation cost.
func (l *longTalk) report(window, said int, in found) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	calls, prompts, before, after := 0, 0, 0, 0
	for i, g := range l.sessions {
		calls, prompts = calls+g.calls, prompts+g.total
		if i > 0 {
			before, after = before+l.sessions[i-1].highest, after+g.first
		}
	}
	n := max(len(l.sessions)-1, 1)
	fmt.Fprintf(w, "messages\t%d\n", said)
	fmt.Fprintf(w, "window\t%d tokens\n", window)
	fmt.Fprintf(w, "compressions\t%d, with %d summary calls\n", n, l.summaries)
	fmt.Fprintf(w, "prompt before and after one\t%d → %d tokens, on average\n", before/n, after/n)
	fmt.Fprintf(w, "summaries\t%d tokens in, %d out\n", l.folded, l.written)
	fmt.Fprintf(w, "all other calls\t%d, %d tokens in\n", calls, prompts)
	fmt.Fprintf(w, "cost of compressing\t%.1f %% of the input\n", 100*float64(l.folded)/float64(l.folded+prompts))
	fmt.Fprintf(w, "facts found\t%d in the summary, %d in the tail, %d by a search\n", in.summary, in.tail, in.search)
	_ = w.Flush()
	l.t.Log("\n" + b.String())
}

// Mission 4.3 to 4.5, CMP-005, CMP-014, CMP-017, CMP-020: through all compressions of
// a conversation of 5,000 messages no fact is lost and no tool call parted from its
// result.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	l := &longTalk{t: t, every: 13, keeps: 12, tools: 6, manual: "looks", filler: strings.Repeat("some words that fill the row ", 20)}
	l.talk(32_000, 5000)
}

// The same in a window so small that system prompt and tools are most of what a
// compression is to come below.
func TestLongConversationInASmallWindow(t *testing.T) {
	t.Parallel()
	l := &longTalk{t: t, every: 3, keeps: 8, tools: 1, manual: strings.Repeat("how to look ", 390), filler: strings.Repeat("a few words more ", 8)}
	l.talk(8_000, 600)
}
