package agentcore

import (
	"fmt"
	"strings"

	"parley/agentcore/history"
)

// stallRepeats is how many equal rounds in a row break the loop.
const stallRepeats = 3

// minRepeatedText is the length from which a repeated text beside calls counts;
// shorter ones ("Let me look.") are a habit, not a loop.
const minRepeatedText = 32

// stall notices that a turn goes round in circles: the same call with the same
// result, or the same words, three times in a row.
type stall struct {
	last  string
	times int
	text  string
	said  int
}

// ran takes a finished call that does not wait; why is not empty once the loop is
// to be broken. Arguments are compared as canonical JSON.
func (s *stall) ran(name, arguments, result string) (why string) {
	args, ok := history.Canonical(arguments)
	if !ok {
		args = arguments
	}
	key := name + "\x00" + args + "\x00" + result
	if key != s.last {
		s.last, s.times = key, 0
	}
	s.times++
	if s.times < stallRepeats {
		return ""
	}
	return fmt.Sprintf("Stopped: `%s` was called %d times in a row with the same arguments and the same result.", name, s.times)
}

// spoke takes the text beside a round of calls.
func (s *stall) spoke(text string) (why string) {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) < minRepeatedText || text != s.text {
		s.text, s.said = text, 0
	}
	s.said++
	if len(text) < minRepeatedText || s.said < stallRepeats {
		return ""
	}
	return fmt.Sprintf("Stopped: the same text was written %d times in a row.", s.said)
}
