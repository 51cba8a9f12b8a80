package slack

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"parley/gateway/markdown"
)

// escape is all that Slack's own markup wants escaped (MKD-001).
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// clean removes what no message may hold.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// apart is put into what would call people; it has no width.
const apart = "\u200b"

// What Slack takes for a mention: <@U…>, <!here>, <#C…>; @here and its like; also
// where the first character is written as an entity. The second group of each is what
// is put apart from the first.
var (
	inBrackets = regexp.MustCompile(`(<)(@[UWB][A-Z0-9]|#[CGD][A-Z0-9]|!(?:here|channel|everyone|subteam|date)\b|&#)|(&(?:lt|LT|#0*60|#[xX]0*3[cC]);)([@!#&])`)
	byName     = regexp.MustCompile(`((?:^|[^\pL\pN_@/])@)((?:here|channel|everyone)\b|&#)|(&(?:commat|#0*64|#[xX]0*40);)([A-Za-z&])`)
)

// vanishes matches what would not be shown: a link without a text, and a line that
// gives a link's address elsewhere, which is no Markdown of parley's.
var vanishes = regexp.MustCompile(`(\[\])(\()|((?m:^ {0,3}\[[^\]\n]+\]))(:)`)

// unsettled matches the end of a text that the next characters could make a mention.
var unsettled = regexp.MustCompile(`(?:<[@#!&]?[A-Za-z0-9]{0,9}|@&?|@[A-Za-z]{0,8})$`)

// inert is a text for a markdown block, which takes Markdown as models write it,
// with everything taken apart that would call people (MEN-007) or vanish. What is
// written after a text changes nothing of it, but for what is unsettled.
func inert(commonMark string) string {
	s := clean(commonMark)
	if !strings.ContainsAny(s, "<&@[") { // without them there is nothing of it, as in most texts
		return s
	}
	for _, what := range []*regexp.Regexp{inBrackets, byName, vanishes} {
		s = what.ReplaceAllString(s, "$1$3"+apart+"$2$4")
	}
	return s
}

// notice is the text of notifications and of clients without blocks: the whole in
// Slack's own markup, or the beginning without markup if that is too long.
func notice(commonMark string) string {
	if s := render(commonMark); length(s) <= noticeLimit {
		return s
	}
	r := []rune(inert(markdown.Plain(clean(commonMark))))
	for n := min(len(r), noticeLimit-1); ; n = n * 9 / 10 {
		if s := escape.Replace(string(r[:n])); length(s) < noticeLimit {
			return s + "…"
		}
	}
}

// render turns CommonMark into Slack's own markup. It is made from the tree, and
// everything that the text shows is escaped, so that it holds no tokens but its
// links.
func render(commonMark string) string {
	r := renderer{markdown.Parse(clean(commonMark))}
	return strings.TrimSpace(r.blocks(r.Root, "", "\n\n"))
}

// renderer draws one tree. Blocks take the indentation of their lines; code has
// none, since it is to be copied.
type renderer struct{ markdown.Tree }

func (r *renderer) blocks(parent ast.Node, pad, gap string) string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if s := r.block(n, pad); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, gap)
}

func (r *renderer) block(n ast.Node, pad string) string {
	switch n := n.(type) {
	case *ast.Heading:
		return indent(wrap("*", strings.NewReplacer("*", "", "\n", " ").Replace(r.inline(n))), pad)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return pre(r.Code(n))
	case *ast.ThematicBreak:
		return pad + "———"
	case *ast.Blockquote:
		return indent(r.blocks(n, "", "\n"), pad+"&gt; ")
	case *ast.List:
		return r.List(n, pad, r.blocks)
	case *east.Table:
		return pre(r.table(n))
	default:
		return indent(r.inline(n), pad)
	}
}

func indent(s, pad string) string {
	if s == "" {
		return ""
	}
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}

// pre is a block of code; a fence in it is taken apart, since Slack knows no longer
// ones.
func pre(code string) string {
	if code == "" {
		return ""
	}
	return "```\n" + escape.Replace(unfence(inert(code))) + "\n```"
}

// literal is text that has no markup and calls nobody. A backtick, which cannot be
// escaped, is drawn as one that Slack takes for no marker.
func literal(s string) string {
	return escape.Replace(strings.ReplaceAll(inert(s), "`", "ˋ"))
}

func unfence(s string) string { return strings.ReplaceAll(s, "```", "`"+apart+"`"+apart+"`") }

// table draws the cells with bars between them, in a block of code.
func (r *renderer) table(n *east.Table) string {
	var rows []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, strings.ReplaceAll(r.Inline(c), "\n", " "))
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return strings.Join(rows, "\n")
}

func (r *renderer) inline(parent ast.Node) string {
	var b strings.Builder
	marked := false
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		s := r.span(n)
		if s == "" {
			continue
		}
		is := n.Kind() == ast.KindEmphasis || n.Kind() == ast.KindCodeSpan || n.Kind() == east.KindStrikethrough
		if is && inWord(lastRune(b.String())) || marked && inWord(firstRune(s)) {
			b.WriteString(apart)
		}
		b.WriteString(s)
		marked = is
	}
	return strings.Trim(b.String(), "\n")
}

// inWord says whether a character keeps a marker beside it from being one: Slack
// wants a boundary there.
func inWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

func lastRune(s string) rune {
	c, _ := utf8.DecodeLastRuneInString(s)
	return c
}

func firstRune(s string) rune {
	c, _ := utf8.DecodeRuneInString(s)
	return c
}

func (r *renderer) span(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		s := literal(r.Text(n))
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n" // MKD-010
		}
		return s
	case *ast.String:
		return literal(string(n.Value))
	case *ast.CodeSpan:
		return wrap("`", literal(strings.ReplaceAll(r.Inline(n), "\n", " ")))
	case *ast.Emphasis:
		if n.Level == 2 {
			return wrap("*", r.inline(n))
		}
		return wrap("_", r.inline(n))
	case *east.Strikethrough:
		return wrap("~", r.inline(n))
	case *ast.Link:
		return anchor(r.label(n), string(n.Destination))
	case *ast.Image:
		return anchor(r.label(n), string(n.Destination))
	case *ast.AutoLink:
		return anchor(string(n.Label(r.Source)), string(n.URL(r.Source)))
	case *ast.RawHTML:
		return rawTag(r.Raw(n))
	case *east.TaskCheckBox:
		if n.IsChecked {
			return "☑ "
		}
		return "☐ "
	default:
		return r.inline(n)
	}
}

// label is what a link shows; Slack draws no markup in it.
func (r *renderer) label(n ast.Node) string {
	if n.ChildCount() == 0 {
		return ""
	}
	return r.Inline(n)
}

// wrap puts markers around what is not empty. Slack wants them next to something
// that is no space.
func wrap(mark, s string) string {
	if strings.Contains(s, "\n") { // a marker ends with its line
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			lines[i] = wrap(mark, line)
		}
		return strings.Join(lines, "\n")
	}
	inside := strings.TrimSpace(s)
	if inside == "" {
		return s
	}
	at := strings.Index(s, inside)
	return s[:at] + mark + inside + mark + s[at+len(inside):]
}

// rawTag draws a tag that the model wrote: a line break, nothing, or its text.
func rawTag(raw string) string {
	switch strings.ReplaceAll(strings.ToLower(raw), " ", "") {
	case "<br>", "<br/>":
		return "\n"
	case "<!---->":
		return ""
	}
	return literal(raw)
}

// inLink is what an address may not hold between the brackets.
var inLink = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", " ", "%20", "\n", "", "\t", "%09", "`", "%60")

// anchor draws a link. What Slack would not take for an address stays readable.
func anchor(label, to string) string {
	known := false
	for _, scheme := range []string{"http://", "https://", "mailto:", "tel:"} {
		known = known || len(to) > len(scheme) && strings.EqualFold(to[:len(scheme)], scheme)
	}
	label = literal(strings.NewReplacer("|", "¦", "\n", " ").Replace(label))
	to = strings.TrimSpace(to)
	shown := literal(to)
	scheme, rest, _ := strings.Cut(to, ":")
	switch {
	case known && (label == "" || label == shown):
		return "<" + strings.ToLower(scheme) + ":" + inLink.Replace(rest) + ">"
	case known:
		return "<" + strings.ToLower(scheme) + ":" + inLink.Replace(rest) + "|" + label + ">"
	case label == "" || label == shown:
		return shown
	case to == "":
		return label
	default:
		return label + " (" + shown + ")"
	}
}
