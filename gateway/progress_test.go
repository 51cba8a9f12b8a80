package gateway_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

type lookInput struct {
	Path string `json:"path"`
	Deep bool   `json:"deep,omitempty"`
}

// lookTool waits until goOn is closed.
func lookTool(t *testing.T, goOn <-chan struct{}) tool.Tool {
	t.Helper()
	spec := tool.Spec{ToolSpec: llm.ToolSpec{Name: "look", Description: "looks"}, ReadOnly: true}
	return tool.Must(tool.New(spec, func(ctx context.Context, _ tool.Call, _ lookInput) (tool.Result, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return tool.Result{Text: "three files"}, nil
	}))
}

// looking says something and calls the tool, and answers with its result then.
func looking(arguments string) func(context.Context, *llm.Request, func(llm.Event) bool) error {
	return func(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.ToolRole {
			say(llm.TextDelta{Text: "There are " + last.Text() + "."})
			return nil
		}
		say(llm.TextDelta{Text: "Let me "})
		say(llm.TextDelta{Text: "look."})
		say(llm.ToolCallDelta{ID: "c1", Name: "look", Arguments: arguments})
		return nil
	}
}

// The three levels of tool progress: what is shown while a tool works, and what of it
// stays at the end.
func TestLevelsOfProgress(t *testing.T) {
	for level, want := range map[string]struct {
		text     string
		progress []string
		trace    bool
	}{
		"off": {text: "Let me look."},
		"new": {progress: []string{"💬 Let me look.", "⚙ look: /tmp"}},
		"all": {progress: []string{"💬 Let me look.", "⚙ look: /tmp"}, trace: true},
	} {
		t.Run(level, func(t *testing.T) {
			goOn := make(chan struct{})
			h := gatewaytest.New(t, gatewaytest.NewModel(looking(`{"path":"/tmp"}`)), gatewaytest.Options{Tools: []tool.Tool{lookTool(t, goOn)}})
			h.Say(owner, "/verbose "+level)
			h.Say(owner, "look")
			h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the progress", func(ps []gatewaytest.Post) bool {
				return len(ps) == 2 && ps[1].Out.Live && ps[1].Out.Text == want.text && cmp.Equal(ps[1].Out.Progress, want.progress)
			})
			close(goOn)
			ps := h.Final(owner, "There are three files.")
			got := strings.Join(newest(ps).Progress, "\n")
			if trace := regexp.MustCompile(`^⚙ 1 step · \d+s$`).MatchString(got); trace != want.trace || (!trace && got != "") {
				t.Errorf("what stays is %q", got)
			}
		})
	}
}

// With silent tools a sentence that a tool call follows is not left cut off above the
// question about it.
func TestNoCutSentenceAboveACard(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if r.Messages[len(r.Messages)-1].Role != llm.ToolRole {
			say(llm.TextDelta{Text: "I will"})
			say(llm.TextDelta{Text: " do it."})
		}
		return callOnce(ctx, r, say)
	}), gatewaytest.Options{
		Tools:  []tool.Tool{terminalLike(t, func(context.Context) string { return "done it" })},
		Limits: chat.Limits{EditInterval: 100_000_000},
	})
	h.Say(owner, "/verbose off")
	h.Say(owner, "do it")
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "card and sentence", func(ps []gatewaytest.Post) bool {
		return len(ps) == 3 && (isCard(ps[1]) || isCard(ps[2])) && (ps[1].Out.Text == "I will do it." || ps[2].Out.Text == "I will do it.")
	})
	card := ps[1]
	if !isCard(card) {
		card = ps[2]
	}
	h.Press(owner, card, card.Out.Buttons[0][0].Data)
	h.Final(owner, "result: done it")
}

// /status speaks of states and tools in words.
func TestStatusInWords(t *testing.T) {
	goOn := make(chan struct{})
	m := gatewaytest.NewModel(looking(`{"path":"/tmp","deep":true}`))
	h := gatewaytest.New(t, m, gatewaytest.Options{Tools: []tool.Tool{lookTool(t, goOn)}})
	h.SayIn("room", owner, "look")
	h.Platform.Await(t, "room", "the tool", func(ps []gatewaytest.Post) bool { return len(ps) == 1 && len(ps[0].Out.Progress) == 2 })
	h.SayIn("room", owner, "/status")
	ps := h.Platform.Await(t, "room", "the status", func(ps []gatewaytest.Post) bool { return len(ps) > 1 && !ps[1].Out.Live })
	if got := ps[1].Out.Text; !strings.Contains(got, "**Working** (using tools, for ") || !strings.Contains(got, `Tool: look\: path \/tmp, deep true, for `) {
		t.Errorf("the status is %q", got)
	}
	close(goOn)
	h.Platform.Await(t, "room", "the answer", func(ps []gatewaytest.Post) bool {
		return strings.HasPrefix(newest(ps).Text, "There are three files")
	})
}

func TestReasoningTellsItsState(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	h.Say(owner, "/reasoning")
	h.Final(owner, "The model's thinking is hidden. `/reasoning show` or `/reasoning hide` changes it.")
	h.Say(owner, "/reasoning show")
	h.Final(owner, "The model's thinking is shown while it works.")
	h.Say(owner, "/reasoning")
	h.Final(owner, "The model's thinking is shown while it works. `/reasoning show` or `/reasoning hide` changes it.")
}
