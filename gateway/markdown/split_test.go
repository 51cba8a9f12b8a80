package markdown

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	"pgregory.net/rapid"

	"parley/gateway/chat"
)

// limits counts what is shown in UTF-16 units, as Telegram does.
func limits(n int) chat.Limits {
	return chat.Limits{Text: n, Measure: func(s string) int { return len(utf16.Encode([]rune(Plain(s)))) }}
}

func TestSplitGolden(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"fits", "hello *you*\n", 100, []string{"hello *you*"}},
		{"nothing", " \n\n \t", 10, nil},
		{"blocks", "first one here\n\nsecond one here", 20, []string{"first one here", "second one here"}},
		{"lines", "first one here\nsecond one here", 20, []string{"first one here", "second one here"}},
		{"sentences", "One two. Three four. Five six seven.", 25, []string{"One two. Three four.", "Five six seven."}},
		{"words", "one two three four five", 12, []string{"one two", "three four", "five"}},
		{"heading stays with its text", "intro texts\n\n# Head\n\nbody of it", 22, []string{"intro texts", "# Head\n\nbody of it"}},
		{"SPL-007 fence", "```go\naaaa\nbbbb\ncccc\n```\nend", 10, []string{"```go\naaaa\nbbbb\n```", "```go\ncccc\n```\nend"}},
		{"fence in an item", "1. Fo:\n   ```py\n   aaaa\n   bbbb\n   ```\n2. Bar", 14,
			[]string{"1. Fo:\n   ```py\n   aaaa\n   ```", "1. <!-- -->\n\n   ```py\n   bbbb\n   ```\n2. Bar"}},
		{"SPL-002 bold", "some **bold text that goes on** end", 16, []string{"some **bold text**", "**that goes on** end"}},
		{"SPL-002 code span", "see `one two three four five six` x", 14, []string{"see `one two`", "`three four`", "`five six` x"}},
		{"quote", "> one two three\n> four five six\n> seven", 20, []string{"> one two three", "> four five six\n> seven"}},
		{"quote line", "> one two three four five six seven", 20, []string{"> one two three four", "> five six seven"}},
		{"list", "- alpha beta\n- gamma delta\n- epsilon", 24, []string{"- alpha beta", "- gamma delta\n- epsilon"}},
		{"numbers go on", "1. alpha beta\n1. gamma delta\n1. epsilon", 20, []string{"1. alpha beta", "2. gamma delta", "3. epsilon"}},
		{"item paragraph", "- alpha beta\n\n  gamma delta\n- x", 16, []string{"- alpha beta", "- <!-- -->\n\n  gamma delta\n- x"}},
		{"table", "|a|b|\n|-|-|\n|one|two|\n|three|four|\n|five|six|", 24,
			[]string{"|a|b|\n|-|-|\n|one|two|", "|a|b|\n|-|-|\n|three|four|", "|a|b|\n|-|-|\n|five|six|"}},
		{"SPL-015 link is whole", "so go [to this place](https://x.example/a_b_c) now", 16,
			[]string{"so go", "[to this place](https://x.example/a_b_c)", "now"}},
		{"SPL-005 pair", strings.Repeat("a", 9) + "😀b", 10, []string{strings.Repeat("a", 9), "😀b"}},
		{"SPL-006 emoji", strings.Repeat("😀", 6), 5, []string{"😀😀", "😀😀", "😀😀"}},
		{"SPL-010 one unit", "😀😀", 1, []string{"😀", "😀"}},
		{"family is whole", "aaa👨‍👩‍👧‍👦", 11, []string{"aaa", "👨‍👩‍👧‍👦"}},
		{"entity is whole", "aaaaaaaa&amp;b", 9, []string{"aaaaaaaa&amp;", "b"}},
		{"escape is whole", `aaaaaaaa\*b`, 9, []string{"aaaaaaaa", `\*b`}},
		{"nested spans", "_aa **bb cc dd** ee_", 6, []string{"_aa **bb**_", "_**cc dd**_", "_ee_"}},
		{"no head without a row", "|aaaa|bbbb|\n|-|-|\n|c|d|\n|e|f|", 17, []string{"|aaaa|bbbb|\n|-|-|\n|c|d|", "|aaaa|bbbb|\n|-|-|\n|e|f|"}},
		{"no new block", "aaaa bbbb - cccc dddd", 10, []string{"aaaa", "bbbb -", "cccc dddd"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Split(tc.in, limits(tc.limit))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// An item whose number is wider than its marker keeps what it holds.
func TestSplitWideNumber(t *testing.T) {
	doc := strings.Repeat("1. i\n", 11) + "1. first w1x words\n\n   second w2x words\n"
	for _, p := range Split(doc, limits(80)) {
		for _, w := range words(p, nil, nil) {
			if !strings.HasSuffix(w, "ListItem<List") {
				t.Errorf("%s in %q", w, p)
			}
		}
	}
}

var word = regexp.MustCompile(`w\d+x`)

// document generates CommonMark whose words are all different; heads are those of
// table heads.
func document(t *rapid.T) (doc string, heads map[string]bool) {
	n := 0
	heads = map[string]bool{}
	text := func(words int) string {
		var b []string
		for range rapid.IntRange(1, words).Draw(t, "words") {
			n++
			w := fmt.Sprintf("w%dx", n)
			switch rapid.IntRange(0, 14).Draw(t, "style") {
			case 0:
				n++
				w = fmt.Sprintf("**%s w%dx**", w, n)
			case 1:
				w = "`" + w + "`"
			case 2:
				w = "[" + w + "](https://h.example/_p_)"
			case 3:
				n++
				w = fmt.Sprintf("_%s **w%dx** y_", w, n)
			case 4:
				w += "."
			case 5:
				w = "😀" + w
			case 6:
				w = "~~" + w + "~~ &lt; \\* "
			}
			b = append(b, w)
		}
		return strings.Join(b, " ")
	}
	var block func(depth int) string
	block = func(depth int) string {
		kinds := 8
		if depth > 2 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0, 1:
			return text(40)
		case 2:
			return text(12) + "\n" + text(12)
		case 3:
			var lines []string
			for range rapid.IntRange(1, 12).Draw(t, "lines") {
				n++
				lines = append(lines, fmt.Sprintf("%sw%dx", strings.Repeat(" ", n%5), n))
			}
			return "```go\n" + strings.Join(lines, "\n") + "\n```"
		case 4:
			return "## " + text(6)
		case 5:
			return indent(block(depth+1), "> ", "> ")
		case 6:
			var items []string
			mark := rapid.SampledFrom([]string{"- ", "1. ", "10. "}).Draw(t, "mark")
			for range rapid.IntRange(1, 5).Draw(t, "items") {
				item := block(depth + 1)
				if rapid.Bool().Draw(t, "second") {
					item += "\n\n" + block(depth+1)
				}
				items = append(items, indent(item, mark, strings.Repeat(" ", len(mark))))
			}
			return strings.Join(items, "\n")
		default:
			var b strings.Builder
			fmt.Fprintf(&b, "| w%dx | w%dx |\n|---|:-:|", n+1, n+2)
			heads[fmt.Sprintf("w%dx", n+1)], heads[fmt.Sprintf("w%dx", n+2)] = true, true
			n += 2
			for range rapid.IntRange(1, 6).Draw(t, "rows") {
				fmt.Fprintf(&b, "\n| w%dx | w%dx |", n+1, n+2)
				n += 2
			}
			return b.String()
		}
	}
	var blocks []string
	for range rapid.IntRange(1, 8).Draw(t, "blocks") {
		blocks = append(blocks, block(0))
	}
	return strings.Join(blocks, "\n\n"), heads
}

func indent(s, first, other string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		switch {
		case i == 0:
			lines[i] = first + l
		case l != "" || other == "> ":
			lines[i] = strings.TrimRight(other+l, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// TestSplitKeepsContent covers SPL-002, SPL-003, SPL-005, SPL-006, SPL-007,
// SPL-010, SPL-011 and SPL-015: every word is shown once and in order, as what it
// was, in parts that fit.
func TestSplitKeepsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, heads := document(t)
		limit := rapid.SampledFrom([]int{60, 80, 120, 200, 400}).Draw(t, "limit")
		l := limits(limit)
		want := words(doc, heads, nil)
		var got []string
		seen := map[string]bool{}
		for i, p := range Split(doc, l) {
			if l.Size(p) > limit {
				t.Fatalf("part %d has %d units:\n%s", i, l.Size(p), p)
			}
			if strings.TrimSpace(Plain(p)) == "" {
				t.Fatalf("part %d shows nothing: %q", i, p)
			}
			got = append(got, words(p, heads, seen)...)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s\nof\n%s\nas\n%s", d, doc, strings.Join(Split(doc, l), "\n=====\n"))
		}
	})
}

// words lists the words that a text shows, each with the markup it stands in;
// repeated table heads are left out.
func words(s string, heads, seen map[string]bool) []string {
	tree := Parse(s)
	var out []string
	add := func(n ast.Node, text string) {
		for _, w := range word.FindAllString(text, -1) {
			if heads[w] && seen != nil {
				if seen[w] {
					continue
				}
				seen[w] = true
			}
			out = append(out, w+" "+style(n))
		}
	}
	_ = ast.Walk(tree.Root, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		switch k := n.(type) {
		case *ast.Text:
			add(n, tree.Text(k))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			add(n, tree.Code(n))
		}
		return ast.WalkContinue, nil
	})
	return out
}

func style(n ast.Node) string {
	var s []string
	for ; n != nil && n.Kind() != ast.KindDocument; n = n.Parent() {
		switch n.Kind() {
		case ast.KindText, ast.KindParagraph, ast.KindTextBlock:
		default:
			s = append(s, n.Kind().String())
		}
	}
	return strings.Join(s, "<")
}

// TestCutStreams: parts taken off never change, whatever the pieces that a text
// arrives in; and for pieces that end with complete blocks, they are those of the
// whole text.
func TestCutStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, _ := document(t)
		l := limits(rapid.SampledFrom([]int{60, 120, 400}).Draw(t, "limit"))
		var parts []string
		live := ""
		blocks := strings.SplitAfter(doc, "\n\n")
		for _, b := range blocks {
			live += b
			for {
				part, rest := Cut(live, l)
				if rest == "" {
					break
				}
				parts, live = append(parts, part), rest
			}
		}
		if part, _ := Cut(live, l); part != "" {
			parts = append(parts, part)
		}
		if strings.Contains(doc, "> ") || regexp.MustCompile(`(?m)^ *(-|\d+\.) `).MatchString(doc) {
			return // their blocks contain blank lines
		}
		if d := cmp.Diff(Split(doc, l), parts); d != "" {
			t.Fatalf("%s\nof\n%s", d, doc)
		}
	})
}

// TestSplitIsLinear: what is measured to divide a text grows with its length only,
// whatever the text; the benchmarks tell the times.
func TestSplitIsLinear(t *testing.T) {
	for name, s := range map[string]string{
		"words":     strings.Repeat("word ", 40_000),
		"no break":  strings.Repeat("x", 50_000),
		"stars":     strings.Repeat("*", 50_000),
		"brackets":  strings.Repeat("[", 10_000),
		"quotes":    strings.Repeat("> ", 20_000),
		"list":      strings.Repeat("- item of it\n", 3_000),
		"code":      "```" + strings.Repeat("i", 200) + "\n" + strings.Repeat("code();\n", 8_000),
		"backticks": strings.Repeat("`a", 20_000),
		"marks":     "a" + strings.Repeat("\u0301", 5_000),
		"empty":     strings.Repeat("[](http://x.example/)", 4_000),
	} {
		t.Run(name, func(t *testing.T) {
			l, measured := limits(4096), 0
			inner := l.Measure
			l.Measure = func(s string) int { measured += len(s); return inner(s) }
			parts := Split(s, l)
			t.Logf("%d parts, %d bytes measured for each of the text", len(parts), measured/len(s))
			most := 100 * max(len(s), 8*4096)
			if name == "marks" {
				most = 2000 * len(s) // one grapheme: cut between its runes, each of which is tried
			}
			if measured > most {
				t.Errorf("%d bytes were measured to divide %d", measured, len(s))
			}
			for _, p := range parts {
				if limits(4096).Size(p) > 4096 || len(p) > 8*4096 {
					t.Fatalf("a part has %d units, %d bytes", limits(4096).Size(p), len(p))
				}
			}
		})
	}
}

// FuzzSplit: whatever the text, cutting ends, loses no valid UTF-8, and keeps to
// the limit unless a single rune is larger.
func FuzzSplit(f *testing.F) {
	f.Add("```go\nx\n```\n", 5)
	f.Add("1. a\n   > - b\n   > ```\n   > c", 8)
	f.Add("a|b\n-|-\n**x|y**\n", 3)
	f.Add("0) 000000\n    #\n   0", 8) // SPL-011: only what was reopened would fit
	f.Add("000\n- ", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 1 + abs(limit)%300
		l := limits(limit)
		rest, part := s, ""
		for rest != "" {
			before := len(rest)
			part, rest = Cut(rest, l)
			if len(rest) >= before {
				t.Fatalf("no progress at %q", rest)
			}
			if utf8.ValidString(s) && !utf8.ValidString(part) {
				t.Fatalf("broken rune in %q", part)
			}
			if l.Size(part) > limit && utf8.RuneCountInString(part) > 1 {
				t.Fatalf("%d units over %d: %q", l.Size(part), limit, part)
			}
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}
