package prompt

import (
	"fmt"
	"os"
	"strings"
)

// Subagent begins the system prompt of an agent that works for another one.
const Subagent = `You are a subagent: another agent has given you one task and waits for what you bring back. You work alone: nobody reads along, nobody answers questions, and nothing of the conversation that the task comes from is known to you. Do the task and no more. Your last message is all that comes back: put into it what was asked for, how you know it, and what you could not do.`

// ReadPersonality resolves the setting agent.personality: a text, or file:PATH.
func ReadPersonality(setting string) (string, error) {
	path, ok := strings.CutPrefix(setting, "file:")
	if !ok {
		return setting, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("agent.personality: %w", err)
	}
	return visible(string(b)), nil
}
