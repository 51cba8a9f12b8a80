package terminal

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"parley/gateway/chat"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07after", "after"},
		{"\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1b]52;c;cGFzdGU=\x07", ""},
		{"\x1bP1$r\x1b\\x", "x"},
		{"\x1b(Bx\x1bcx", "xx"},
		{"\x1b]never ends\nbut the text goes on", "never ends\nbut the text goes on"},
		{"\u009b31mred", "red"},
		{"a\x9bb", "a\ufffdb"},
		{"cut \x1b[3", "cut "},
		{"cut \x1b", "cut "},
		{"a\rb\x08c\x00d\x7f", "abcd"},
		{"user\u202egnp.exe", "usergnp.exe"},
		{"שלום é 👍🏽", "שלום é 👍🏽"},
	} {
		if got := clean(tc.in); got != tc.want {
			t.Errorf("clean(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

// However a text is cut into edits, the screen ends up with all of it in order, and
// without control characters.
func TestScreenShowsWhatGrew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"word ", "\n", "\n\n", "\x1b[31m", "\x1b[", "31m", "\x1b", "]0;", "\x07", "é", "\r", "x"})).Draw(t, "pieces")
		var out strings.Builder
		s := newScreen(&out, false)
		text := ""
		for _, p := range pieces {
			text += p
			s.show("k", chat.Outgoing{Text: text, Live: true})
		}
		s.show("k", chat.Outgoing{Text: text})
		got := out.String()
		if strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) >= 0 {
			t.Fatalf("control characters in %q", got)
		}
		if want := strings.TrimRight(clean(text), "\n"); !strings.HasSuffix(strings.TrimRight(got, "\n"), want) {
			t.Fatalf("printed %q, want %q at the end", got, want)
		}
	})
}

func TestUnescape(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`Session: 01a\-b\_c (demo\/demo)`, "Session: 01a-b_c (demo/demo)"},
		{`C:\dir, 5\\3 and \`, `C:\dir, 5\3 and `},
		{"a\\-b `a\\-b` ``x`\\-`` c\\-d\n", "a-b `a\\-b` ``x`\\-`` c-d\n"},
		{"```sh\nsed s/\\//x/\n```\nx\\.", "```sh\nsed s/\\//x/\n```\nx."},
		{"open `a\\-", "open `a\\-"},
	} {
		if got := unescape(tc.in); got != tc.want {
			t.Errorf("unescape(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}
