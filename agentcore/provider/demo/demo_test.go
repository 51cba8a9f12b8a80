package demo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley/agentcore/llm"
	"parley/agentcore/prompt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func specs(names ...string) (out []llm.ToolSpec) {
	for _, n := range names {
		out = append(out, llm.ToolSpec{Name: n})
	}
	return out
}

var allTools = specs("current_time", "todo", "terminal", "clarify", "memory", "session_search")

func request(text string) *llm.Request {
	return &llm.Request{Model: "demo/demo", System: "You are parley.", Tools: allTools, Messages: []llm.Message{llm.Text(llm.User, text)}}
}

// TestFeatures runs each word through its tools to the final text.
func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		said   string
		tools  string // the names of the calls in order
		args   string // is in the first call's arguments
		answer string // is in the final text
	}{
		{"hello", "", "", "demo model"},
		{"[Mon 2026-09-28 10:00 +02:00] help", "", "", "`slow`"},
		{"what time is it?", "current_time", "{}", "It is **result**"},
		{"Run ls -la", "terminal", `"ls -la"`, "```\nresult\n```"},
		{"terminal", "terminal", "uname", "result"},
		{"please ask me", "clarify", "Tea", "Thank you"},
		{"remember I like tea", "memory", "I like tea", "session begins"},
		{"[Mon 2026-09-28 10:00 +02:00 · Ann <telegram:1>] search tea", "session_search", `"tea"`, "result"},
		{"make a plan", "todo todo current_time todo todo", "Look at the clock", "carried out"},
		{"think", "", "", "thought about it"},
		{"long", "", "", "end of the long answer"},
		{"slow", "", "", "patient"},
		{"markdown", "", "", "| `plan` |"},
		{"overtime in the runtime", "", "", "demo model"},
	} {
		t.Run(c.said, func(t *testing.T) {
			req := request(c.said)
			var names, args []string
			ids := map[string]bool{}
			r := answer(req)
			for ; len(r.calls) > 0; r = answer(req) {
				req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: r.text}}, ToolCalls: r.calls})
				for _, call := range r.calls {
					if ids[call.ID] || !json.Valid([]byte(call.Arguments)) {
						t.Errorf("call %+v", call)
					}
					ids[call.ID] = true
					names, args = append(names, call.Name), append(args, call.Arguments)
					result := llm.Text(llm.ToolRole, "result")
					result.ToolCallID = call.ID
					req.Messages = append(req.Messages, result)
				}
				if len(names) > 20 {
					t.Fatal("it never ends")
				}
			}
			if got := strings.Join(names, " "); got != c.tools {
				t.Errorf("called %q, want %q", got, c.tools)
			}
			if len(args) > 0 && !strings.Contains(args[0], c.args) {
				t.Errorf("arguments %s, want %s in them", args[0], c.args)
			}
			if !strings.Contains(r.text, c.answer) {
				t.Errorf("answer %q, want %q in it", r.text, c.answer)
			}
		})
	}
}

// TestOnlyDeclaredTools: whatever is said, nothing is called that was not declared
// or that is forbidden, and there always is an answer.
func TestOnlyDeclaredTools(t *testing.T) {
	words := []string{"help", "run x", "remember y", "search z", "ask", "plan", "time", "think", "long", "slow", "hi", "", "/help", "[", "\n"}
	rapid.Check(t, func(t *rapid.T) {
		req := request(rapid.SampledFrom(words).Draw(t, "a") + rapid.SampledFrom(words).Draw(t, "b"))
		req.Tools = nil
		for _, s := range allTools {
			if rapid.Bool().Draw(t, s.Name) {
				req.Tools = append(req.Tools, s)
			}
		}
		req.NoTools = rapid.Bool().Draw(t, "no tools")
		if rapid.Bool().Draw(t, "after a tool") {
			req.Messages = append(req.Messages,
				llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: rapid.SampledFrom([]string{"todo", "other"}).Draw(t, "tool")}}},
				llm.Message{Role: llm.ToolRole, ToolCallID: "1", Parts: []llm.Part{{Text: "```"}}})
		}
		d := &dialogue{req: req}
		r := answer(req)
		for _, c := range r.calls {
			if req.NoTools || !d.declared(c.Name) {
				t.Fatalf("called %s", c.Name)
			}
		}
		if r.text == "" || r.pace <= 0 {
			t.Fatalf("reply %+v", r)
		}
	})
}

func TestSummaryRequest(t *testing.T) {
	r := answer(&llm.Request{System: "You write the summary that replaces the older part", Messages: []llm.Message{llm.Text(llm.User, "run ls")}})
	if !strings.HasPrefix(r.text, "## Goal") || len(r.calls) != 0 {
		t.Errorf("reply: %+v", r)
	}
}

func TestFenceIsLongEnough(t *testing.T) {
	if got, want := fenced("a\n````\nb"), "`````\na\n````\nb\n`````"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPace: it streams like a model, and stops at once.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r, err := llm.Collect(t.Context(), New(Config{Rate: 10}).Stream(t.Context(), request("think")))
		if err != nil || r.Message.Reasoning == nil || r.Finish != llm.FinishStop || r.Usage.Output == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		words := strings.Count(r.Message.Text()+" "+r.Message.Reasoning.Text, " ") + 1
		if took := time.Since(begun); took != time.Duration(words)*100*time.Millisecond {
			t.Errorf("%d words took %s", words, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		if _, err := llm.Collect(ctx, New(Config{}).Stream(ctx, request("slow"))); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// TestFramesAreForModels: what parley puts around a program's output is not quoted to
// people.
func TestFramesAreForModels(t *testing.T) {
	got := explain(llm.ToolCall{Name: "terminal"}, "[exit code 0]\n"+prompt.Frame("one\ntwo\n"))
	if want := "This is what came of the command:\n\n```\n[exit code 0]\none\ntwo\n```"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
