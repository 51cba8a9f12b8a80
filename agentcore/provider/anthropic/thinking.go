package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
)

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

type output struct {
	Effort string `json:"effort"`
}

const (
	// leastBudget is the smallest budget of thinking that the API takes.
	leastBudget = 1024
	// answerReserve is what thinking leaves of the limit for the answer (PRV-011).
	answerReserve = 2048
)

// budgets are the tokens of thinking for each effort.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}

// budgeted are the models that think within a budget, by the beginnings of their
// names; thoughtless are those that do not think. Newer ones decide for themselves.
var (
	budgeted = []string{
		"claude-3-7", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5",
		"claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4",
	}
	thoughtless = []string{"claude-2", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku", "claude-3-5", "claude-instant"}
)

// think asks for thinking as the model knows it.
func (b *body) think(effort string, q quirk) {
	named := func(prefix string) bool { return strings.HasPrefix(b.Model, prefix) }
	switch {
	case budgets[effort] == 0, q.has(quirkNoThinking), slices.ContainsFunc(thoughtless, named):
		return
	case !q.has(quirkBudget) && (q.has(quirkAdaptive) || named("claude-") && !slices.ContainsFunc(budgeted, named)):
		b.Thinking = &thinking{Type: "adaptive"}
		if !q.has(quirkNoEffort) {
			b.OutputConfig = &output{strings.Replace(effort, "minimal", "low", 1)}
		}
	default:
		budget := min(budgets[effort], b.MaxTokens-answerReserve)
		if budget >= leastBudget && !b.thoughtLost() {
			b.Thinking = &thinking{"enabled", budget}
		}
	}
}

// thoughtLost says whether the turn whose results are the newest message does not
// begin with its thought, for it came from another model. With a budget such a turn is
// refused; without thinking it can go on.
func (b *body) thoughtLost() bool {
	n := len(b.Messages)
	if n < 2 {
		return false
	}
	last, ok := b.Messages[n-1].Content[0].(*block)
	if !ok || last.Type != "tool_result" {
		return false
	}
	_, thought := b.Messages[n-2].Content[0].(json.RawMessage)
	return !thought
}
