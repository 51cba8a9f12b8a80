// Package corpus is texts as models write them, and what every adapter makes of
// them: the markup of each is kept as a golden file beside the adapter, and read
// back by a parser of the platform's markup that is as strict as the platform. So
// a change of a renderer shows, nothing is refused, nothing is lost or doubled, and
// what was bold is bold (MKD-002, MKD-013, MEN-007, SPL-002, SPL-007).
//
// The texts have words like bold7: the number counts through the text, and the word
// before it says how it is to be shown; that of w7 is open.
package corpus

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/gateway/chat"
	"parley/gateway/markdown"
)

//go:embed text/*.md
var files embed.FS

// Text is one text of the corpus, CommonMark.
type Text struct{ Name, Text string }

// Texts are all texts by name, the long one last.
func Texts() []Text {
	entries, err := files.ReadDir("text")
	if err != nil {
		panic(err) // the files are embedded
	}
	var all []Text
	for _, e := range entries {
		b, err := files.ReadFile("text/" + e.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, Text{strings.TrimSuffix(e.Name(), ".md"), string(b)})
	}
	return append(all, Text{long, longText()})
}

// long is the text of 50,000 characters, of which only the beginnings are kept as
// golden file.
const long = "long"

// longText has something of everything, so that every kind of cut is made in it.
func longText() string {
	var b strings.Builder
	n := 0
	put := func(format string, words ...string) {
		args := make([]any, len(words))
		for i, w := range words {
			n++
			args[i] = fmt.Sprint(w, n)
		}
		fmt.Fprintf(&b, format, args...)
	}
	for section := 1; b.Len() < 50_000; section++ {
		put("## Section: %s\n\n", "w")
		for range 6 {
			put("A sentence with %s and **%s** and [%s](https://example.com/?a=1&b=2). It goes on with `%s` & <%s>.\n", "w", "bold", "link", "code", "w")
		}
		put("\n- %s\n  - %s *%s*\n- %s\n\n```go\n", "w", "w", "ital", "w")
		for range 5 + section%20 {
			put("if a < %s && b > 0 { return \"*x*\" }\n", "pre")
		}
		put("```\n\n> %s 😀\n> %s\n\n| Key | Value |\n|---|---|\n", "quote", "quote")
		for range 3 + section%7 {
			put("| %s | %s |\n", "w", "w")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Span is a piece of what a platform shows, and how.
type Span struct {
	Text string
	// Styles are of bold, italic, strike, code, pre, quote and link; what else the
	// platform has may have any name. A "mention" is one that would call somebody.
	Styles []string
}

// Rendering is what an adapter makes of a text, and how its platform reads that.
type Rendering struct {
	// Folder of testdata holds the golden files; empty: corpus.
	Folder string
	Limits chat.Limits
	// Render is the markup for one message.
	Render func(commonMark string) string
	// Read parses markup as strictly as the platform, its length included.
	Read func(markup string) ([]Span, error)
	// Lacks are styles that the platform does not have, or does not have where some
	// text asks for it.
	Lacks []string
}

// Run holds a rendering to the corpus. The golden files are in testdata/corpus of
// the calling package; they are written anew when UPDATE_GOLDEN is set.
func Run(t *testing.T, r Rendering) {
	if r.Folder == "" {
		r.Folder = "corpus"
	}
	for _, text := range Texts() {
		t.Run(text.Name, func(t *testing.T) {
			var golden strings.Builder
			var shown []Span
			for i, part := range markdown.Split(text.Text, r.Limits) {
				markup := r.Render(part)
				spans, err := r.Read(markup)
				if err != nil {
					t.Errorf("message %d is refused: %v\n%s", i+1, err, markup)
				}
				shown = append(shown, spans...)
				golden.WriteString(message(text.Name, i+1, markup, spans))
			}
			r.judge(t, text.Text, shown)
			compare(t, filepath.Join("testdata", r.Folder, text.Name+".golden"), golden.String())
		})
	}
}

// message is a message in a golden file: its markup and what is read from it.
func message(name string, n int, markup string, spans []Span) string {
	if name == long {
		first, _, _ := strings.Cut(markup, "\n")
		return fmt.Sprintf("message %d: %d bytes: %s\n", n, len(markup), first)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "=== message %d\n%s\n--- is shown as\n", n, markup)
	for _, s := range spans {
		fmt.Fprintf(&b, "%s\t%q\n", strings.Join(s.Styles, " "), s.Text)
	}
	return b.String()
}

// compare holds a text to a golden file.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; UPDATE_GOLDEN=1 writes it", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("it is rendered otherwise than %s says (UPDATE_GOLDEN=1 writes it anew):\n%s", path, d)
	}
}

// marker is a word that says how it is to be shown.
var marker = regexp.MustCompile(`(w|bold|ital|strike|code|pre|quote|link)(\d+)`)

var styles = map[string]string{"bold": "bold", "ital": "italic", "strike": "strike", "code": "code", "pre": "pre", "quote": "quote", "link": "link"}

// judge looks for each marked word of the text: shown once, in order, in its style.
func (r Rendering) judge(t *testing.T, text string, shown []Span) {
	t.Helper()
	want := marker.FindAllString(text, -1)
	var got []string
	for _, s := range shown {
		if slices.Contains(s.Styles, "mention") {
			t.Errorf("%q calls somebody (MEN-007)", s.Text)
		}
		for _, m := range marker.FindAllStringSubmatch(s.Text, -1) {
			got = append(got, m[0])
			style := styles[m[1]]
			if style != "" && !slices.Contains(s.Styles, style) && !slices.Contains(r.Lacks, style) {
				t.Errorf("%s is shown as %q", m[0], s.Styles)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what is shown is not what the text says (-text +shown):\n%s", d)
	}
}
