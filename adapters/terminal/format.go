package terminal

import (
	"regexp"
	"strings"
	"unicode"
)

// sequence matches what makes a terminal act: control sequences (also when they are
// cut off at the end of a text that still grows), strings for the terminal up to
// their end on the same line, and two-character escapes.
var sequence = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*(?:[@-~]|$)|\x1b[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\|$)|\x1b[ -/]*(?:[0-~]|$)")

// clean makes a text harmless for a terminal: escape sequences go, and every other
// control character but line breaks and tabs, and what turns the direction of text
// around.
func clean(s string) string {
	s = sequence.ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

// oneLine is clean for labels and progress.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
