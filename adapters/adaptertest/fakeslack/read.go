package fakeslack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Span is a piece of what people see, and how: bold, italic, strike, code, pre, quote,
// link, mention.
type Span struct {
	Text   string
	Styles []string
}

// ReadMarkdown reads a markdown block as Slack does, its length included.
func ReadMarkdown(s string) ([]Span, error) {
	if n := utf8.RuneCountInString(s); n == 0 || n > markdownLimit {
		return nil, fmt.Errorf("a markdown block of %d characters", n)
	}
	src := []byte(s)
	var r reader
	on := map[ast.NodeKind]string{
		ast.KindCodeSpan: "code", ast.KindFencedCodeBlock: "pre", ast.KindCodeBlock: "pre", ast.KindBlockquote: "quote", ast.KindLink: "link",
		ast.KindImage: "link", ast.KindAutoLink: "link", ast.KindHeading: "bold", east.KindStrikethrough: "strike",
	}
	_ = ast.Walk(dialect.Parser().Parse(gtext.NewReader(src)), func(n ast.Node, in bool) (ast.WalkStatus, error) {
		style := on[n.Kind()]
		if e, ok := n.(*ast.Emphasis); ok {
			style = map[int]string{1: "italic", 2: "bold"}[e.Level]
		}
		if !in {
			r.pop(style)
			if n.Type() == ast.TypeBlock {
				r.put("\n")
			}
			return ast.WalkContinue, nil
		}
		r.push(style)
		switch n := n.(type) {
		case *ast.Text:
			v := n.Value(src)
			if !n.IsRaw() && n.Parent().Kind() != ast.KindCodeSpan {
				v = util.ResolveNumericReferences(util.ResolveEntityNames(util.UnescapePunctuations(v)))
			}
			r.put(string(v))
			if n.SoftLineBreak() || n.HardLineBreak() {
				r.put("\n")
			}
		case *ast.String:
			r.put(string(n.Value))
		case *ast.AutoLink:
			r.put(string(n.Label(src)))
		case *ast.RawHTML:
			r.put(string(n.Segments.Value(src)))
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
			r.put(string(n.Lines().Value(src)))
		}
		return ast.WalkContinue, nil
	})
	return r.done(), nil
}

// reader gathers spans.
type reader struct {
	spans  []Span
	styles []string
}

func (r *reader) push(style string) {
	if style != "" {
		r.styles = append(r.styles, style)
	}
}

func (r *reader) pop(style string) {
	if style != "" {
		r.styles = r.styles[:len(r.styles)-1]
	}
}

func (r *reader) put(s string) {
	if s == "" {
		return
	}
	styles := slices.Compact(slices.Sorted(slices.Values(r.styles)))
	if n := len(r.spans); n > 0 && slices.Equal(r.spans[n-1].Styles, styles) {
		r.spans[n-1].Text += s
		return
	}
	r.spans = append(r.spans, Span{s, styles})
}

// done marks what would call people.
func (r *reader) done() []Span {
	for i, s := range r.spans {
		if len(Mentions(s.Text)) > 0 {
			r.spans[i].Styles = append(r.spans[i].Styles, "mention")
		}
	}
	return r.spans
}

// ReadMrkdwn reads a text in Slack's own markup as strictly as Slack: nothing that
// wants escaping may stand bare, and a marker counts only between a boundary and
// something that is no space.
func ReadMrkdwn(s string) ([]Span, error) {
	if wrong := CheckMrkdwn(s); len(wrong) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	var r reader
	for i, part := range strings.Split(s, "```") {
		if i%2 == 1 {
			r.push("pre")
			r.put(unescape.Replace(strings.Trim(part, "\n")))
			r.pop("pre")
			continue
		}
		for line := range strings.Lines(part) {
			quoted := false
			for strings.HasPrefix(strings.TrimLeft(line, " "), "&gt;") {
				line, quoted = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(line, " "), "&gt;"), " "), true
			}
			if quoted {
				r.push("quote")
			}
			r.line(line)
			if quoted {
				r.pop("quote")
			}
		}
	}
	return r.done(), nil
}

// marks are the markers of Slack's own markup.
var marks = map[byte]string{'*': "bold", '_': "italic", '~': "strike", '`': "code"}

// line reads one line, or what stands between two markers.
func (r *reader) line(s string) {
	plain := 0
	flush := func(to int) { r.put(unescape.Replace(s[plain:to])) }
	for i := 0; i < len(s); {
		if s[i] == '<' {
			end := i + strings.IndexByte(s[i:], '>')
			flush(i)
			to, label, labelled := strings.Cut(s[i+1:end], "|")
			if !labelled {
				label = to
			}
			style := "link"
			if strings.ContainsAny(to[:1], "@!#") {
				style = "mention"
			}
			r.push(style)
			r.put(unescape.Replace(label))
			r.pop(style)
			i = end + 1
			plain = i
			continue
		}
		style := marks[s[i]]
		if end := closing(s, i); style != "" && end > 0 {
			flush(i)
			r.push(style)
			if style == "code" {
				r.put(unescape.Replace(s[i+1 : end]))
			} else {
				r.line(s[i+1 : end])
			}
			r.pop(style)
			i = end + 1
			plain = i
			continue
		}
		i++
	}
	flush(len(s))
}

// bracketed is what hides the markers in it.
var bracketed = regexp.MustCompile("<[^<>]*>|`[^`\n]+`")

// closing finds the marker that ends what the one at i begins; 0 if it begins nothing.
func closing(s string, i int) int {
	if !boundary(lastRune(s[:i])) || i+1 >= len(s) || unicode.IsSpace(firstRune(s[i+1:])) || s[i+1] == s[i] {
		return 0
	}
	inside := bracketed.FindAllStringIndex(s, -1)
	for j := i + 2; j < len(s); j++ {
		hidden := s[i] != '`' && slices.ContainsFunc(inside, func(at []int) bool { return at[0] < j && j < at[1]-1 })
		if s[j] == s[i] && !hidden && !unicode.IsSpace(lastRune(s[:j])) && boundary(firstRune(s[j+1:])) {
			return j
		}
	}
	return 0
}

func lastRune(s string) rune {
	c, _ := utf8.DecodeLastRuneInString(s)
	return c
}

func firstRune(s string) rune {
	c, _ := utf8.DecodeRuneInString(s)
	return c
}

// boundary is what may stand outside of a marker; the ends of a text are RuneError.
func boundary(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
