package demo

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"parley/agentcore/llm"
)

// reply is what the model says and does.
type reply struct {
	thought string
	text    string
	calls   []llm.ToolCall
	// pace is a factor on the rate.
	pace float64
}

func say(text string) reply { return reply{text: text, pace: 1} }

// answer decides by the shape of the request and the newest message.
func answer(req *llm.Request) reply {
	d := &dialogue{req: req}
	d.read()
	switch {
	case len(req.Tools) == 0 && strings.Contains(strings.ToLower(req.System), "summar"):
		return say(summary(req))
	case req.NoTools:
		return say("I may call no more tools, so this is where I stop. " + d.done())
	case len(d.rounds) > 0:
		return d.afterTools()
	}
	return d.toUser()
}

// dialogue is the newest part of a conversation: what the user said last, and what
// was done since.
type dialogue struct {
	req    *llm.Request
	said   string
	rounds []round
}

// round is one answer with tool calls, and the results.
type round struct {
	calls   []llm.ToolCall
	results map[string]string
}

// header is what parley writes before a message: when and by whom it was sent.
var header = regexp.MustCompile(`(?m)^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-[^\]\n]*\] `)

// read finds the newest user message and the tool rounds after it.
func (d *dialogue) read() {
	last := -1
	for i, m := range d.req.Messages {
		if m.Role == llm.User {
			last = i
		}
	}
	if last < 0 {
		return
	}
	d.said = d.req.Messages[last].Text()
	if at := header.FindAllStringIndex(d.said, -1); at != nil {
		d.said = d.said[at[len(at)-1][1]:]
	}
	d.said = strings.TrimSpace(d.said)
	for _, m := range d.req.Messages[last+1:] {
		switch {
		case m.Role == llm.Assistant && len(m.ToolCalls) > 0:
			d.rounds = append(d.rounds, round{calls: m.ToolCalls, results: map[string]string{}})
		case m.Role == llm.ToolRole && len(d.rounds) > 0:
			d.rounds[len(d.rounds)-1].results[m.ToolCallID] = m.Text()
		}
	}
}

// toUser answers a message of the user.
func (d *dialogue) toUser() reply {
	line, _, _ := strings.Cut(d.said, "\n")
	lower := strings.ToLower(line)
	for _, f := range features {
		if !f.words.MatchString(lower) {
			continue
		}
		if f.tool != "" && !d.declared(f.tool) {
			return say(fmt.Sprintf("I would call the tool `%s` now, but it is switched off here. Say `help` to see what else I can show.", f.tool))
		}
		return f.do(d, line)
	}
	return say(d.greeting())
}

func (d *dialogue) declared(name string) bool {
	for _, t := range d.req.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// call makes a tool call. Its id follows from the whole conversation, so that it is
// not used twice.
func (d *dialogue) call(n int, name string, arguments any) llm.ToolCall {
	h := fnv.New64a()
	for _, m := range d.req.Messages {
		_, _ = fmt.Fprint(h, m.Role, m.ToolCallID, len(m.ToolCalls), m.Text())
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		raw = []byte("{}")
	}
	return llm.ToolCall{ID: fmt.Sprintf("demo_%x_%d", h.Sum64(), n), Name: name, Arguments: string(raw)}
}

// use is a reply with one call.
func (d *dialogue) use(text, name string, arguments any) reply {
	return reply{text: text, calls: []llm.ToolCall{d.call(0, name, arguments)}, pace: 1}
}

// afterTools turns the newest results into a text, or goes on with a plan.
func (d *dialogue) afterTools() reply {
	last := d.rounds[len(d.rounds)-1]
	if last.calls[0].Name == "todo" {
		if r, ok := d.nextStep(); ok {
			return r
		}
	}
	var parts []string
	for _, c := range last.calls {
		parts = append(parts, explain(c, last.results[c.ID]))
	}
	return say(strings.Join(parts, "\n\n"))
}

// nextStep ticks off the plan, one round for each item.
func (d *dialogue) nextStep() (reply, bool) {
	steps := len(d.rounds)
	if steps > len(plan) || !d.declared("todo") {
		return reply{}, false
	}
	items := []todoItem{{ID: plan[steps-1].ID, Status: "completed"}}
	if steps < len(plan) {
		items = append(items, todoItem{ID: plan[steps].ID, Status: "in_progress"})
	}
	r := d.use(fmt.Sprintf("Step %d is done.", steps), "todo", todoInput{Items: items, Merge: true})
	if steps == 1 && d.declared("current_time") {
		r.calls = append(r.calls, d.call(1, "current_time", struct{}{}))
	}
	return r, true
}

// done lists what was done since the user's message.
func (d *dialogue) done() string {
	var names []string
	for _, r := range d.rounds {
		for _, c := range r.calls {
			names = append(names, "`"+c.Name+"`")
		}
	}
	if len(names) == 0 {
		return "Nothing was done yet."
	}
	return "Until now I called " + strings.Join(names, ", ") + "."
}

// frame is what parley puts around the words of others: for models, not for people.
var frame = regexp.MustCompile(`(?m)^\[data [0-9a-f]+ (begins\..*|ends)\]\n?`)

// explain puts a tool's result into words.
func explain(c llm.ToolCall, result string) string {
	result = frame.ReplaceAllString(result, "")
	switch c.Name {
	case "current_time":
		return "It is **" + oneLine(result) + "**."
	case "terminal":
		return "This is what came of the command:\n\n" + fenced(result)
	case "todo":
		return "The plan is carried out:\n\n" + fenced(result)
	case "clarify":
		return "Thank you. " + oneLine(result) + "\n\nA real model would go on from here."
	case "memory":
		return oneLine(result) + " I will find it again in other sessions, too: it is part of what every session begins with."
	case "session_search":
		return "This is what I found in our conversation:\n\n" + fenced(result)
	}
	return "The tool `" + c.Name + "` says:\n\n" + fenced(result)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// fenced quotes a text with a fence that is longer than any in it.
func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence
}

// summary plays the model behind a compression.
func summary(req *llm.Request) string {
	size := 0
	for _, m := range req.Messages {
		size += len(m.Text())
	}
	return fmt.Sprintf("## Goal\nTry out parley with its demo model.\n\n## Completed actions\n"+
		"1. Earlier messages (%d characters) were folded into this summary by the demo model, which understands nothing: "+
		"the messages themselves are kept and can be searched.", size)
}
