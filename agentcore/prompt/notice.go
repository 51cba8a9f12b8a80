package prompt

import "fmt"

// The notices are ephemeral: they go behind the last message of one call and are
// never stored.

// BudgetWarning tells the model that its steps run out. used and limit are model
// calls of the turn.
func BudgetWarning(used, limit int) string {
	return fmt.Sprintf("[Notice: %d of %d steps of this turn are used. Finish what is most important, and say plainly what is left.]", used, limit)
}

// ContextPressure tells the model that the conversation is about to be
// summarised. tokens and limit are the prompt's size and where that happens; what
// could not be summarised in time is full, not more than that.
func ContextPressure(tokens, limit int) string {
	return fmt.Sprintf("[Notice: the context is %d %% full. Older messages will soon be replaced by a summary: save with the memory tool what must outlast it, and keep tool output small.]", min(100*tokens/max(limit, 1), 100))
}
