package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/agentcore/tool"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// blocks is a hook that lets nothing run.
type blocks struct{ why string }

func (b blocks) Before(context.Context, string, tool.Call) (tool.Change, error) {
	return tool.Change{Blocked: b.why}, nil
}

func (blocks) After(_ context.Context, _ string, _ tool.Call, r tool.Result) tool.Result { return r }

// Whoever or whatever refused a call, /why says so and why, in one line that neither
// the call nor the reason can break out of.
func TestWhyTellsRefusals(t *testing.T) {
	act := tool.Spec{ToolSpec: llm.ToolSpec{Name: "act", Description: "acts"}, Needs: tool.Exec}
	for name, c := range map[string]struct {
		options gatewaytest.Options
		spec    func(*tool.Spec)
		by      chat.User
		decide  string
		want    string
	}{
		"rules": {options: gatewaytest.Options{Policy: tool.Policy{Mode: tool.Deny}}, want: `not allowed: running commands is switched off.`},
		"role":  {spec: func(s *tool.Spec) { s.Needs = tool.Configure }, by: user, want: `not allowed: only an admin may do this.`},
		"hook": {
			options: gatewaytest.Options{Policy: tool.Policy{Hook: blocks{"no **such**\nwords"}}},
			want:    `blocked by the owner's hook: no \*\*such\*\* words.`,
		},
		"person": {decide: "no", want: `denied by test\:1; why they were asked: it wants to run commands.`},
		"going on": {
			options: gatewaytest.Options{Config: func(c *gateway.Config) { c.Conversations.Busy = gateway.BusyQueue }},
			decide:  "something else",
			want:    `the question was withdrawn, since people went on with something else; why they were asked: it wants to run commands.`,
		},
		"silence": {
			options: gatewaytest.Options{Config: func(c *gateway.Config) { c.Approvals.Timeout = 200 * time.Millisecond }},
			want:    `nobody answered in time; why they were asked: it wants to run commands.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, from := act, owner
			if c.spec != nil {
				c.spec(&spec)
			}
			if c.by.ID != "" {
				from = c.by
			}
			tl := tool.Must(tool.New(spec, func(context.Context, tool.Call, struct {
				What string `json:"what"`
			}) (tool.Result, error) {
				t.Error("the tool ran")
				return tool.Result{}, nil
			}))
			c.options.Tools = []tool.Tool{tl}
			h := gatewaytest.New(t, gatewaytest.NewModel(func(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
				if slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return m.Role == llm.ToolRole }) {
					say(llm.TextDelta{Text: "so be it"})
					return nil
				}
				say(llm.ToolCallDelta{ID: "c1", Name: "act", Arguments: `{"what":"rm *\nall` + strings.Repeat("x", 200) + `"}`})
				return nil
			}), c.options)
			asked := h.Say(from, "do it")
			if c.decide != "" {
				awaitCard(t, h)
				h.Say(owner, c.decide)
			}
			eventually(t, "the end of the turn", func() bool { return explained(t, h, asked).Item.State == record.InboxDone })
			line := `Refused: act\: rm \* all` + strings.Repeat("x", 92) + `…; ` + c.want
			h.Say(from, "/why "+string(asked))
			h.Platform.Await(t, gatewaytest.Direct(from).Chat, line, func(ps []gatewaytest.Post) bool {
				for _, p := range ps {
					if strings.Contains(p.Out.Text+"\n", "\n"+line+"\n") {
						if strings.Count(p.Out.Text, "\nPart ") > 1 {
							t.Errorf("a question counts as part of the answer: %s", p.Out.Text)
						}
						return true
					}
				}
				return false
			})
		})
	}
}

// So it does of a spending limit.
func TestWhyTellsWhoRefusedToSpend(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{Budgets: spending.Config{PersonDaily: 1}})
	asked := h.Say(owner, "tell me more")
	card := awaitCard(t, h)
	h.Press(owner, card, card.Out.Buttons[0][1].Data)
	eventually(t, "the end of the turn", func() bool { return explained(t, h, asked).Item.State == record.InboxDone })
	got := gateway.Explain(explained(t, h, asked))
	if !strings.Contains(got, "\nRefused: 💸 Today's limit of ") || !strings.Contains(got, `; denied by test\:1.`) || strings.Contains(got, "Refused: 💸 **") {
		t.Error(got)
	}
}

func TestAskedShowsNoSecrets(t *testing.T) {
	got := gateway.Asked(record.Refusal{By: record.RefusedByHook, Tool: "terminal", Arguments: `{"command":"login --password=hunter2hunter2 now"}`})
	if !strings.HasPrefix(got, "terminal: login --password=") || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
