package history

import (
	"strings"

	"parley/agentcore/llm"
)

// The cues of importance, as whole words of the lower-cased text.
var (
	memoryWords   = []string{"important", "remember", "do not forget", "don't forget", "keep in mind", "note that", "from now on"}
	decisionWords = []string{"let's go with", "i chose", "i decided", "we decided", "we'll use", "let's use", "switch to", "the plan is"}
	changeWords   = []string{"actually", "instead", "i prefer", "don't use", "always use", "never use", "my name is", "i am allergic"}
	questionWords = []string{"how", "what", "why", "where", "when", "who", "can you", "could you"}
	acknowledging = map[string]bool{"ok": true, "okay": true, "thanks": true, "thank you": true, "cool": true, "yes": true, "no": true, "great": true, "hi": true, "hello": true}
)

// Importance scores a row from 0 to 1 when it is written. Only what people said
// is told apart; 0.8 and more counts as salient, which needs a cue and not mere
// length.
func Importance(r llm.Role, text string) float64 {
	switch r {
	case llm.User:
	case llm.Assistant:
		return 0.5
	case llm.ToolRole:
		return 0.3
	default:
		return 0
	}
	t := strings.ToLower(strings.TrimSpace(text))
	if acknowledging[strings.TrimRight(t, "!. ")] {
		return 0.1
	}
	score := 0.55
	add := func(on bool, points float64) {
		if on {
			score += points
		}
	}
	add(len(t) < 20, -0.1)
	add(len(t) > 200, 0.1)
	add(anyWord(t, memoryWords), 0.3)
	add(anyWord(t, decisionWords), 0.25)
	add(anyWord(t, changeWords), 0.2)
	add(strings.Contains(t, "?") || startsWith(t, questionWords), 0.05)
	add(strings.Contains(t, "```"), 0.1)
	add(strings.Contains(t, "://"), 0.05)
	return min(max(score, 0.1), 1)
}

func anyWord(text string, words []string) bool {
	for _, w := range words {
		if hasWord(text, w) {
			return true
		}
	}
	return false
}

func startsWith(text string, words []string) bool {
	for _, w := range words {
		if strings.HasPrefix(text, w) && hasWord(text[:min(len(text), len(w)+1)], w) {
			return true
		}
	}
	return false
}

// hasWord finds w where no letter or digit touches it, so that "broken" is not
// "ok".
func hasWord(text, w string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], w)
		if i < 0 {
			return false
		}
		i += from
		if !wordByte(text, i-1) && !wordByte(text, i+len(w)) {
			return true
		}
		from = i + len(w)
	}
}

func wordByte(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}
