package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip makes a tool's output fit for a history: NUL bytes are taken out, invalid
// UTF-8 is replaced, and a text of more than limit bytes keeps its first 40 % and
// last 60 % (where commands say how they ended) around a marker that counts the
// bytes left out. It never parts a character, and the result is at most limit
// bytes if limit leaves room for the marker (TOL-003, TOL-007).
func Clip(text string, limit int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) <= limit {
		return text
	}
	// The number in the marker is at most this long.
	room := max(limit-len(Omitted(len(text))), 0)
	head, tail := cutHead(text, room*2/5), cutTail(text, room-room*2/5)
	return head + Omitted(len(text)-len(head)-len(tail)) + tail
}

// Omitted is the marker for n bytes left out of an output.
func Omitted(n int) string { return fmt.Sprintf("\n[… %d bytes left out …]\n", n) }

func cutHead(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func cutTail(s string, n int) string {
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}
