package gateway

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/agentcore"
	"parley/store/record"
)

// progressLines is how many lines of tool progress a live message shows.
const progressLines = 6

// live is what a running turn has to show: the answer's text so far, progress
// lines above it, and what it waits for. The turn writes it through Emit, which
// never blocks; the poster reads snapshots. It is safe for concurrent use.
type live struct {
	verbose   record.Verbosity
	reasoning bool
	changed   func() // rings the poster

	begun time.Time

	mu      sync.Mutex
	text    strings.Builder
	said    string // what stood beside tool calls, until new text comes
	thought string
	lines   []string
	hidden  int    // progress lines that scrolled away
	waiting string // a visible status
	state   record.TurnState
	tools   []runningTool
	steps   int // tool calls that have ended
	ranTool bool
	since   time.Time
	version int
	resting bool // the poster looks again by itself
	context int
	window  int
}

// runningTool is a tool call under way.
type runningTool struct {
	id, summary string
	readOnly    bool
	line        int // index into lines of its progress line, -1 if none
	since       time.Time
}

func newLive(c record.Conversation, changed func()) *live {
	return &live{verbose: c.Verbose, reasoning: c.Reasoning, changed: changed, state: record.TurnPreparing, begun: time.Now(), since: time.Now()}
}

// Emit implements agentcore.Sink.
func (l *live) Emit(ev agentcore.Event) {
	l.mu.Lock()
	shown := l.apply(ev)
	if shown {
		l.version++
	}
	ring := shown && !l.resting
	l.mu.Unlock()
	if ring {
		l.changed()
	}
}

// rest tells that the poster, which cannot show anything yet, will look again by
// itself: it need not be woken for each token.
func (l *live) rest() {
	l.mu.Lock()
	l.resting = true
	l.mu.Unlock()
}

// apply changes the state and says whether people should see it.
func (l *live) apply(ev agentcore.Event) bool {
	switch ev := ev.(type) {
	case agentcore.StreamDelta:
		l.waiting, l.said = "", ""
		l.text.WriteString(ev.Text)
		return true
	case agentcore.StreamReset:
		l.text.Reset()
		l.thought = ""
		return true
	case agentcore.ReasoningDelta:
		if l.reasoning {
			l.thought = lastLine(l.thought + ev.Text)
		}
		return l.reasoning
	case agentcore.Step:
		return l.step(ev)
	case agentcore.ToolStarted:
		return l.toolStarted(ev)
	case agentcore.ToolProgress:
		return l.toolLine(ev.Call.ID, func(t runningTool) string { return "⚙ " + t.summary + " · " + clip(ev.Line, 80) })
	case agentcore.SubagentProgress:
		return l.subagent(ev)
	case agentcore.ToolFinished:
		return l.toolFinished(ev)
	case agentcore.Status:
		return l.status(ev)
	}
	return false
}

// step folds the text beside tool calls into a progress line: only the final text
// stays. Where there are no such lines it stands as it is, complete, until new text
// comes.
func (l *live) step(ev agentcore.Step) bool {
	l.text.Reset()
	l.thought = ""
	switch s := firstLine(ev.Text); {
	case s == "":
	case l.verbose == record.VerboseOff:
		l.said = ev.Text
	default:
		l.addLine("💬 " + clip(s, 160))
	}
	return true
}

func (l *live) toolStarted(ev agentcore.ToolStarted) bool {
	t := runningTool{id: ev.Call.ID, summary: clip(firstLine(ev.Summary), 120), readOnly: ev.ReadOnly, line: -1, since: time.Now()}
	l.ranTool = true
	if l.verbose != record.VerboseOff {
		t.line = l.addLine("⚙ " + t.summary)
	}
	l.tools = append(l.tools, t)
	return t.line >= 0
}

// subagent shows what a subagent does on a line of its own, below its parent's call.
func (l *live) subagent(ev agentcore.SubagentProgress) bool {
	parent := slices.IndexFunc(l.tools, func(t runningTool) bool { return t.id == ev.Call.ID })
	if parent < 0 || l.tools[parent].line < 0 {
		return false
	}
	id := fmt.Sprintf("%s%s%d", ev.Call.ID, subagentMark, ev.Task)
	if !slices.ContainsFunc(l.tools, func(t runningTool) bool { return t.id == id }) {
		l.tools = slices.Insert(l.tools, parent, runningTool{id: id, summary: clip(firstLine(ev.Goal), 60), since: time.Now(), line: l.addLine("")})
	}
	text := func(t runningTool) string { return "↳ " + t.summary + " · " + clip(firstLine(ev.Line), 80) }
	switch ev.State {
	case "":
	case record.TurnDone:
		text = func(t runningTool) string { return "↳ ✓ " + t.summary }
	default:
		text = func(t runningTool) string { return "↳ ✗ " + t.summary + " · " + string(ev.State) }
	}
	return l.toolLine(id, text)
}

// subagentMark is between a call's id and the number of its subagent.
const subagentMark = "\x00subagent "

func (l *live) toolFinished(ev agentcore.ToolFinished) bool {
	mark := "✓ "
	if ev.Outcome != "ok" {
		mark = "✗ "
	}
	shown := l.toolLine(ev.Call.ID, func(t runningTool) string {
		s := mark + t.summary
		if ev.Took >= time.Second {
			s += " · " + ev.Took.Round(time.Second).String()
		}
		if l.verbose == record.VerboseAll {
			s += " → " + clip(firstLine(ev.Result), 100)
		}
		return s
	})
	l.steps++
	l.tools = slices.DeleteFunc(l.tools, func(t runningTool) bool {
		return t.id == ev.Call.ID || strings.HasPrefix(t.id, ev.Call.ID+subagentMark)
	})
	return shown
}

// toolLine rewrites the progress line of a running tool.
func (l *live) toolLine(id string, text func(runningTool) string) bool {
	for _, t := range l.tools {
		if t.id == id && t.line >= 0 {
			if i := t.line - l.hidden; i >= 0 && i < len(l.lines) {
				l.lines[i] = text(t)
				return true
			}
		}
	}
	return false
}

// addLine returns the line's index, counted from the turn's first line.
func (l *live) addLine(s string) int {
	l.lines = append(l.lines, s)
	if n := len(l.lines) - progressLines; n > 0 {
		l.lines = slices.Delete(l.lines, 0, n)
		l.hidden += n
	}
	return l.hidden + len(l.lines) - 1
}

func (l *live) status(ev agentcore.Status) bool {
	if ev.State != "" && ev.State != l.state {
		l.state, l.since = ev.State, time.Now()
	}
	if ev.Window > 0 {
		l.context, l.window = ev.ContextTokens, ev.Window
	}
	was := l.waiting
	l.waiting = ""
	if ev.Visible {
		l.waiting = clip(firstLine(ev.Text), 200)
	}
	return l.waiting != was
}

// picture is what should be visible now.
type picture struct {
	version  int
	text     string
	progress []string
	writing  bool // the text is being written, not one that a tool call followed
}

// news says whether there is something to show that an earlier version did not. It
// ends a rest.
func (l *live) news(since int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = false
	return l.version != since && (l.text.Len() > 0 || l.said != "" || len(l.lines) > 0 || l.thought != "" || l.waiting != "")
}

// show takes a snapshot for the poster.
func (l *live) show() picture {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := picture{version: l.version, text: l.text.String(), writing: l.text.Len() > 0}
	if !p.writing {
		p.text = l.said
	}
	if l.hidden > 0 {
		p.progress = append(p.progress, "…")
	}
	p.progress = append(p.progress, l.lines...)
	if l.thought != "" && p.text == "" {
		p.progress = append(p.progress, "💭 "+clip(l.thought, 160))
	}
	if l.waiting != "" {
		p.progress = append(p.progress, "⏳ "+l.waiting)
	}
	return p
}

// trace is the line to which a turn's progress is folded at its end: at the level
// "all" people see how much was done for the answer, else nothing of it stays.
func (l *live) trace() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.verbose != record.VerboseAll || l.steps == 0 {
		return nil
	}
	return []string{"⚙ " + plural(l.steps, "step") + " · " + time.Since(l.begun).Round(time.Second).String()}
}

// busyWith is for /status and for the busy modes.
type busyWith struct {
	state           record.TurnState
	since           time.Time
	tool            string
	toolSince       time.Time
	mustFinish      bool // a tool runs that an interruption may not cut off
	ranTool         bool
	waiting         string
	context, window int
}

func (l *live) busy() busyWith {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := busyWith{state: l.state, since: l.since, ranTool: l.ranTool, waiting: l.waiting, context: l.context, window: l.window}
	for _, t := range l.tools {
		b.tool, b.toolSince = t.summary, t.since
		b.mustFinish = b.mustFinish || !t.readOnly
	}
	return b
}

// firstLine returns the first line that is not blank.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// lastLine returns what follows the last line break.
func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// clip cuts a line to n runes.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
