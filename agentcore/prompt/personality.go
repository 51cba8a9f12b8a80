package prompt

import (
	"fmt"
	"os"
	"strings"
)

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
