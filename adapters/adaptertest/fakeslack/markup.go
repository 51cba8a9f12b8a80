package fakeslack

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// control matches what Slack reads between angle brackets.
var control = regexp.MustCompile(`<([^<>]*)>`)

// unescape decodes exactly the three entities, in one pass.
var unescape = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// mention matches what calls people in a text of the bot's.
var mention = regexp.MustCompile(`<(?:@[UWB][A-Z0-9]|#[CGD][A-Z0-9]|!(?:here|channel|everyone|subteam|date)\b)[^<>]*>|(?:^|[^\w@/])@(?:here|channel|everyone)\b`)

// CheckMrkdwn says what is wrong with a text in Slack's own markup: brackets and
// ampersands that are not escaped, and addresses that are none.
func CheckMrkdwn(s string) []string {
	var wrong []string
	rest := control.ReplaceAllStringFunc(s, func(tok string) string {
		to, label, _ := strings.Cut(tok[1:len(tok)-1], "|")
		switch {
		case strings.HasPrefix(to, "@"), strings.HasPrefix(to, "#"), strings.HasPrefix(to, "!"):
		case !regexp.MustCompile(`^(?:https?|mailto|tel):`).MatchString(to) || strings.ContainsAny(to, " \n"):
			wrong = append(wrong, "no address: "+tok)
		case strings.ContainsAny(label, "|\n"):
			wrong = append(wrong, "no label: "+tok)
		}
		return ""
	})
	if strings.ContainsAny(rest, "<>") {
		wrong = append(wrong, "an angle bracket that is not escaped")
	}
	if regexp.MustCompile(`&(?:[^alg]|a[^m]|[lg][^t]|$)`).MatchString(rest) {
		wrong = append(wrong, "an ampersand that is not escaped")
	}
	if strings.Count(s, "```")%2 != 0 {
		wrong = append(wrong, "a fence without its end")
	}
	return wrong
}

// Mentions lists what in a text of the bot's would call people (MEN-007).
func Mentions(s string) []string { return mention.FindAllString(s, -1) }

// plainMrkdwn is what people read of a text in Slack's own markup.
func plainMrkdwn(s string) string {
	s = control.ReplaceAllStringFunc(s, func(tok string) string {
		to, label, labelled := strings.Cut(tok[1:len(tok)-1], "|")
		if labelled {
			return label
		}
		return to
	})
	s = strings.NewReplacer("```", "").Replace(s)
	for _, pair := range []string{"*", "_", "~", "`"} {
		q := regexp.QuoteMeta(pair)
		s = regexp.MustCompile(`(^|[\s(])`+q+`(\S(?:[^\n]*?\S)?)`+q+`($|[\s.,:;!?)])`).ReplaceAllString(s, "$1$2$3")
	}
	return unescape.Replace(s)
}

// inspect keeps what people should not see in a text or block as violations.
func (s *Server) inspect(method, plain string, blocks []block) {
	for _, v := range inspected(method, plain, blocks) {
		s.violation(v)
	}
}

func inspected(method, plain string, blocks []block) []Violation {
	var list []Violation
	add := func(where, what string) { list = append(list, Violation{method, where, what}) }
	mrkdwn := func(where, s string) {
		for _, w := range CheckMrkdwn(s) {
			add(where, w)
		}
		for _, m := range Mentions(s) {
			add(where, "calls people: "+m)
		}
	}
	if plain != "" {
		mrkdwn("text", plain)
	}
	for _, b := range blocks {
		if b.Type == "markdown" {
			for _, m := range Mentions(b.Text.Text) {
				add("markdown", "calls people: "+m)
			}
		}
		if b.Text != nil && b.Text.Type == "mrkdwn" {
			mrkdwn("section", b.Text.Text)
		}
		for _, e := range b.Elements {
			if e.Text != nil && e.Text.Type == "mrkdwn" {
				mrkdwn("context", e.Text.Text)
			}
		}
	}
	return list
}

// itemMark is what stands before an item of a list.
func itemMark(n *ast.ListItem) string {
	list, ok := n.Parent().(*ast.List)
	if !ok || !list.IsOrdered() {
		return "• "
	}
	number := list.Start
	for before := n.PreviousSibling(); before != nil; before = before.PreviousSibling() {
		number++
	}
	return strconv.Itoa(number) + ". "
}

// dialect is what a markdown block is taken for.
var dialect = goldmark.New(goldmark.WithExtensions(extension.GFM))

// plainMarkdown is what people read of a markdown block.
func plainMarkdown(s string) string {
	src := []byte(s)
	var b strings.Builder
	line := func() {
		if out := b.String(); out != "" && !strings.HasSuffix(out, "\n") {
			b.WriteByte('\n')
		}
	}
	_ = ast.Walk(dialect.Parser().Parse(gtext.NewReader(src)), func(n ast.Node, in bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if in {
				v := n.Value(src)
				if !n.IsRaw() && n.Parent().Kind() != ast.KindCodeSpan {
					v = util.ResolveNumericReferences(util.ResolveEntityNames(util.UnescapePunctuations(v)))
				}
				b.Write(v)
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte('\n')
				}
			}
		case *ast.String:
			if in {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if in {
				b.Write(n.Label(src))
			}
		case *ast.RawHTML:
			if in {
				b.Write(n.Segments.Value(src))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
			if in {
				line()
				b.Write(n.Lines().Value(src))
			}
		case *ast.ThematicBreak:
			if in {
				line()
				b.WriteString("───\n")
			}
		case *ast.ListItem:
			if in {
				line()
				b.WriteString(itemMark(n))
			}
		case *east.TableCell:
			if !in {
				b.WriteString("  ")
			}
		case *ast.Link, *ast.Image:
			if in && n.ChildCount() == 0 {
				b.WriteString("🔗")
			}
		default:
			if n.Type() == ast.TypeBlock && (!in || n.Kind() != ast.KindTextBlock && n.Kind() != ast.KindParagraph) && n.Kind() != ast.KindDocument {
				line()
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}
