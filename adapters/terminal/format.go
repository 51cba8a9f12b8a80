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

// unescape takes CommonMark's backslashes away, which a terminal would show: ids
// and paths are copied from it. Code keeps its own. A text that grows is the
// beginning of what it grows into, as far as it can be known.
func unescape(s string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(s) {
		if mark := strings.TrimLeft(line, " "); strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
			fenced = !fenced
			b.WriteString(line)
			continue
		}
		if fenced {
			b.WriteString(line)
			continue
		}
		unescapeLine(&b, line)
	}
	return b.String()
}

func unescapeLine(b *strings.Builder, line string) {
	for line != "" {
		switch {
		case line == `\`: // what follows is not known yet
			return
		case line[0] == '\\' && strings.IndexByte(escapable, line[1]) >= 0:
			b.WriteByte(line[1])
			line = line[2:]
		case line[0] == '`':
			ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
			code, rest, closed := strings.Cut(line[len(ticks):], ticks)
			b.WriteString(ticks + code)
			if !closed {
				return
			}
			b.WriteString(ticks)
			line = rest
		default:
			b.WriteByte(line[0])
			line = line[1:]
		}
	}
}

// escapable is what CommonMark lets a backslash stand before.
const escapable = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
