package demo

import (
	"fmt"
	"regexp"
	"strings"
)

// feature is a word that the demo understands.
type feature struct {
	words *regexp.Regexp
	// tool is the one it needs; empty: none.
	tool string
	do   func(d *dialogue, line string) reply
}

// features are looked through in this order. Commands stand at the beginning of a
// message; the other words anywhere in it.
var features = []feature{
	{regexp.MustCompile(`^/?help\b`), "", func(*dialogue, string) reply { return say(help) }},
	{regexp.MustCompile(`^(run|terminal)\b`), "terminal", runCommand},
	{regexp.MustCompile(`^remember\b`), "memory", remember},
	{regexp.MustCompile(`^search\b`), "session_search", search},
	{regexp.MustCompile(`\b(ask|clarify)\b`), "clarify", clarify},
	{regexp.MustCompile(`\b(todo|plan)\b`), "todo", makePlan},
	{regexp.MustCompile(`\btime\b`), "current_time", func(d *dialogue, _ string) reply {
		return d.use("Let me look at the clock.", "current_time", struct{}{})
	}},
	{regexp.MustCompile(`\bthink\b`), "", think},
	{regexp.MustCompile(`\blong\b`), "", func(*dialogue, string) reply { return reply{text: long(60), pace: 6} }},
	{regexp.MustCompile(`\bslow\b`), "", func(*dialogue, string) reply { return reply{text: slow, pace: 0.2} }},
	{regexp.MustCompile(`\b(markdown|format)\b`), "", func(*dialogue, string) reply { return say(markdown) }},
}

const help = "I am parley's **demo model**: I run without network and key, and understand only these words:\n\n" +
	"- `time`: calls a tool, the clock\n" +
	"- `plan` or `todo`: several steps with a task list\n" +
	"- `run uname -a`: a command in the terminal, after **your approval**\n" +
	"- `ask`: a question with buttons\n" +
	"- `remember I like tea`: something for the memory\n" +
	"- `search tea`: looks through our conversation\n" +
	"- `think`: shows reasoning (`/reasoning` where it is hidden)\n" +
	"- `markdown`: headings, lists, a table, code\n" +
	"- `long`: an answer that needs several messages\n" +
	"- `slow`: a slow one, so that you can try `/stop`\n\n" +
	"`/help` lists the commands of parley itself. Kill the process while I answer and start it again: the answer goes on."

func (d *dialogue) greeting() string {
	line, _, _ := strings.Cut(d.said, "\n")
	if r := []rune(line); len(r) > 80 {
		line = string(r[:80]) + "…"
	}
	return fmt.Sprintf("This is the **demo model**, which needs no key and understands next to nothing. I did hear you, though:\n\n> %s\n\n"+
		"Say `help` to see what I can show.", strings.ReplaceAll(line, "`", "'"))
}

// argument is what follows the first word.
func argument(line, fallback string) string {
	_, rest, _ := strings.Cut(line, " ")
	if rest = strings.Trim(rest, " `"); rest == "" {
		return fallback
	}
	return rest
}

func runCommand(d *dialogue, line string) reply {
	type input struct {
		Command string `json:"command"`
	}
	return d.use("I would like to run this in the terminal.", "terminal", input{argument(line, "uname -a && date")})
}

func remember(d *dialogue, line string) reply {
	type input struct {
		Action  string `json:"action"`
		Target  string `json:"target"`
		Content string `json:"content"`
	}
	return d.use("I make a note of that.", "memory", input{"add", "memory", argument(line, "The demo was here.")})
}

func search(d *dialogue, line string) reply {
	type input struct {
		Query string `json:"query"`
	}
	return d.use("I look through what was said.", "session_search", input{argument(line, "demo")})
}

func clarify(d *dialogue, _ string) reply {
	type input struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	}
	return d.use("I have a question before I go on.", "clarify", input{"Which drink shall it be?", []string{"Tea", "Coffee", "Water"}})
}

type (
	todoInput struct {
		Items []todoItem `json:"items"`
		Merge bool       `json:"merge"`
	}
	todoItem struct {
		ID      string `json:"id"`
		Content string `json:"content,omitempty"`
		Status  string `json:"status"`
	}
)

// plan is what the demo pretends to do.
var plan = []todoItem{
	{"1", "Look at the clock", "in_progress"},
	{"2", "Think about it", "pending"},
	{"3", "Tell what came of it", "pending"},
}

func makePlan(d *dialogue, _ string) reply {
	return d.use("I make a plan and carry it out step by step.", "todo", todoInput{Items: plan})
}

func think(*dialogue, string) reply {
	return reply{
		thought: "The user wants to see me think. I am a demo, so there is not much to see. But this text comes as reasoning, beside the answer, and is not part of it.",
		text:    "I have thought about it. What I thought is shown as reasoning, if you have switched that on, and is no part of this answer.",
		pace:    1,
	}
}

const markdown = "# A heading\n\nText with **bold**, *italic*, ~~struck~~ and `code`, and [a link](https://example.com).\n\n" +
	"1. one\n2. two\n   - with a point below\n\n> A quotation.\n\n" +
	"| word | what it shows |\n|---|---|\n| `plan` | tools |\n| `slow` | `/stop` |\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"<b>not bold & not lost</b>\")\n}\n```\n\nThat was it."

// long is a text that no platform takes in one message: n paragraphs of some 150
// characters, with a heading and a code block now and then.
func long(n int) string {
	var b strings.Builder
	b.WriteString("Here is a long answer; it is cut at good places and sent as several messages.\n\n")
	for i := 1; i <= n; i++ {
		switch {
		case i%20 == 1:
			fmt.Fprintf(&b, "## Part %d\n\n", i/20+1)
		case i%20 == 10:
			fmt.Fprintf(&b, "```\nline %d of a code block\nthat must not be torn apart\n```\n\n", i)
		}
		fmt.Fprintf(&b, "%d. This paragraph has the number %d. It says nothing, but it takes room, and when all of them have arrived in order, "+
			"nothing was lost on the way.\n\n", i, i)
	}
	b.WriteString("That was the end of the long answer.")
	return b.String()
}

var slow = "This answer takes half a minute. Send `/stop` to end it, or another message to interrupt it. " +
	strings.Repeat("Still going, one word after the other, so that there is time to try it. ", 14) + "Done: you were patient."
