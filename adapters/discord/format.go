package discord

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// gap shows nothing. It stands where two marks would be read as one, and inside what
// would else be a mention or the end of a code block.
const gap = "\u200b"

// clean removes what no message may hold.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// escape takes the meaning from a text's characters, and from what would be a
// mention: of all (whose backslash Discord does not heed), and everything that begins
// with "<" (MEN-007).
var escape = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "~", `\~`, "|", `\|`, "<", `\<`, "[", `\[`, "]", `\]`,
	"@everyone", "@"+gap+"everyone", "@here", "@"+gap+"here", "://", `\://`,
)

// lineMark matches what has a meaning at the beginning of a line only.
var lineMark = regexp.MustCompile(`(?m)^( *)(#{1,3}\s|-#|-\s|>|[0-9]+\.\s)`)

// unmark takes that meaning away.
func unmark(s string) string {
	return lineMark.ReplaceAllStringFunc(s, func(m string) string {
		word := strings.TrimLeft(m, " ")
		pad := m[:len(m)-len(word)]
		if i := strings.IndexByte(word, '.'); i > 0 {
			return pad + word[:i] + `\` + word[i:]
		}
		return pad + `\` + word
	})
}

// render turns CommonMark into Discord's own markdown. It is made from the tree, so
// that what is a mark in it was one in the source, and nothing else is (MKD-002).
func render(commonMark string) string {
	r := renderer{Tree: markdown.Parse(clean(commonMark))}
	return strings.TrimSpace(join(r.blocks(r.Root, true)))
}

// compose puts the progress lines above the text, small, and drops the oldest of
// them where there is no room.
func compose(m chat.Outgoing) string {
	body := render(m.Text)
	room := textLimit - utf8.RuneCountInString(body) - 1
	var lines []string
	for i := len(m.Progress) - 1; i >= 0; i-- {
		line := "-# " + unmark(escape.Replace(strings.Join(strings.Fields(clean(m.Progress[i])), " ")))
		if room -= utf8.RuneCountInString(line) + 1; room < 0 {
			break
		}
		lines = append([]string{line}, lines...)
	}
	return strings.TrimSpace(strings.Join(append(lines, body), "\n"))
}

// line is a line of output. Code is copied as it stands, so it takes no indentation.
type line struct {
	text string
	code bool
}

func join(lines []line) string {
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.text
	}
	return strings.Join(texts, "\n")
}

func plainLines(s string) []line {
	if s == "" {
		return nil
	}
	var out []line
	for t := range strings.SplitSeq(s, "\n") {
		out = append(out, line{text: t})
	}
	return out
}

// renderer draws one tree.
type renderer struct {
	markdown.Tree
	quoted       bool // Discord does not nest quotes
	inside       bool // a list item or a quote, which has no headings
	bold, italic bool // one inside the other of its kind has no marks
}

// blocks draws the children of a container, apart from each other by an empty line
// where spaced.
func (r *renderer) blocks(parent ast.Node, spaced bool) []line {
	var out []line
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b := r.block(n)
		if len(b) > 0 && len(out) > 0 && spaced {
			out = append(out, line{})
		}
		out = append(out, b...)
	}
	return out
}

func (r *renderer) block(n ast.Node) []line {
	switch n := n.(type) {
	case *ast.Heading:
		return r.heading(n)
	case *ast.FencedCodeBlock:
		return fence(r.Code(n), string(n.Language(r.Source)))
	case *ast.CodeBlock:
		return fence(r.Code(n), "")
	case *ast.ThematicBreak:
		return plainLines("———")
	case *ast.Blockquote:
		return r.quote(n)
	case *ast.List:
		return r.list(n)
	case *east.Table:
		return fence(r.Table(n), "")
	default:
		return plainLines(unmark(r.inline(n)))
	}
}

// maxHeading is how deep Discord's headings go; deeper ones are bold.
const maxHeading = 3

func (r *renderer) heading(n *ast.Heading) []line {
	deep := n.Level > maxHeading || r.inside
	outer := r.bold
	r.bold = r.bold || deep
	s := strings.ReplaceAll(r.inline(n), "\n", " ")
	r.bold = outer
	switch {
	case s == "":
		return nil
	case !deep:
		return plainLines(strings.Repeat("#", n.Level) + " " + s)
	case outer:
		return plainLines(unmark(s))
	}
	return plainLines(unmark(mark("**", s)))
}

// language keeps what Discord takes for the name of a language.
var language = regexp.MustCompile(`[^A-Za-z0-9_+.#-]`)

// fences are what would end a block of code.
var fences = regexp.MustCompile("`{3,}")

func fence(code, info string) []line {
	if code == "" {
		return nil
	}
	code = fences.ReplaceAllStringFunc(code, func(s string) string { return strings.Join(strings.Split(s, ""), gap) })
	out := []line{{"```" + language.ReplaceAllString(info, ""), true}}
	for t := range strings.SplitSeq(code, "\n") {
		out = append(out, line{t, true})
	}
	return append(out, line{"```", true})
}

func (r *renderer) quote(n *ast.Blockquote) []line {
	quoted, inside := r.quoted, r.inside
	r.quoted, r.inside = true, true
	lines := r.blocks(n, false)
	r.quoted, r.inside = quoted, inside
	prefix := "> "
	if quoted {
		prefix = `\> `
	}
	for i := range lines {
		if !quoted || !lines[i].code {
			lines[i].text = prefix + lines[i].text
		}
	}
	return lines
}

func (r *renderer) list(list *ast.List) []line {
	var out []line
	number := list.Start
	for c := list.FirstChild(); c != nil; c = c.NextSibling() {
		item, ok := c.(*ast.ListItem)
		if !ok {
			continue
		}
		sign := "- "
		if list.IsOrdered() {
			sign = strconv.Itoa(number) + ". "
			number++
		}
		out = append(out, r.item(item, sign)...)
	}
	return out
}

// item draws a list item; what does not begin with text goes below its sign.
func (r *renderer) item(item *ast.ListItem, sign string) []line {
	inside := r.inside
	r.inside = true
	lines := r.blocks(item, false)
	r.inside = inside
	if len(lines) == 0 {
		return nil
	}
	pad := strings.Repeat(" ", len(sign))
	first := 0
	if !r.Continued(item) {
		switch item.FirstChild().Kind() {
		case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading:
			lines[0].text = sign + lines[0].text
		default:
			lines = append([]line{{text: sign + gap}}, lines...)
		}
		first = 1
	}
	for i := first; i < len(lines); i++ {
		if !lines[i].code {
			lines[i].text = pad + lines[i].text
		}
	}
	return lines
}

func (r *renderer) inline(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		s := r.span(n)
		if touch(b.String(), s) {
			b.WriteString(gap)
		}
		b.WriteString(s)
	}
	return strings.Trim(b.String(), "\n")
}

// touch says that the marks at the end of one span and at the beginning of the next
// would be read as one.
func touch(before, after string) bool {
	if before == "" || after == "" {
		return false
	}
	last := before[len(before)-1]
	return last == after[0] && strings.IndexByte("*~`", last) >= 0
}

func (r *renderer) span(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		s := escape.Replace(r.Text(n))
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n" // MKD-010
		}
		return s
	case *ast.String:
		return escape.Replace(string(n.Value))
	case *ast.CodeSpan:
		return code(strings.ReplaceAll(r.Inline(n), "\n", " "))
	case *ast.Emphasis:
		return r.emphasis(n)
	case *east.Strikethrough:
		return mark("~~", r.inline(n))
	case *ast.Link:
		return link(r.inline(n), string(n.Destination))
	case *ast.Image:
		return link(r.inline(n), string(n.Destination))
	case *ast.AutoLink:
		return link(escape.Replace(string(n.Label(r.Source))), string(n.URL(r.Source)))
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

func (r *renderer) emphasis(n *ast.Emphasis) string {
	on, sign := &r.italic, "*"
	if n.Level == 2 {
		on, sign = &r.bold, "**"
	}
	if *on {
		return r.inline(n)
	}
	*on = true
	s := r.inline(n)
	*on = false
	return mark(sign, s)
}

// mark puts marks around a text, if Discord reads them as such: it looks for the end
// without regard to code and links in between.
func mark(sign, s string) string {
	if s == "" || closing(sign, s+sign) != len(s) {
		return s
	}
	return sign + s + sign
}

// closing is where Discord sees the end of a marked text whose beginning has been
// read; -1 if nowhere.
func closing(sign, s string) int {
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		double := strings.HasPrefix(s[i:], "**")
		switch {
		case c == '\\' && sign != "~~":
			i += 2
		case sign == "*" && double:
			i += 2
		case sign == "*" && c == '*' && i > 0, sign == "~~" && i > 0 && strings.HasPrefix(s[i:], "~~"),
			sign == "**" && i > 0 && double && !strings.HasPrefix(s[i+2:], "*"):
			return i
		case sign == "*" && unicode.IsSpace(c):
			rest := strings.TrimLeftFunc(s[i:], unicode.IsSpace)
			if i == 0 || rest == "" || rest[0] == '*' && !strings.HasPrefix(rest, "**") {
				return -1
			}
			i = len(s) - len(rest)
		default:
			i += n
		}
	}
	return -1
}

// code is a code span. Its fence is of one or two backticks, since three begin a
// block.
func code(s string) string {
	switch {
	case s == "":
		return ""
	case !strings.Contains(s, "`"):
		return "`" + s + "`"
	}
	s = strings.ReplaceAll(s, "``", "`"+gap+"`")
	s = strings.ReplaceAll(s, "``", "`"+gap+"`") // what was three
	if s[0] == '`' {
		s = gap + s
	}
	if s[len(s)-1] == '`' {
		s += gap
	}
	return "``" + s + "``"
}

// rawTag draws a tag that the model wrote: a line break, nothing, or its text.
func rawTag(raw string) string {
	switch strings.ReplaceAll(strings.ToLower(raw), " ", "") {
	case "<br>", "<br/>":
		return "\n"
	case "<!---->":
		return ""
	}
	return escape.Replace(raw)
}

// address makes a link's address harmless inside angle brackets and round ones.
var address = strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", "(", "%28", ")", "%29", `\`, "%5C", "\n", "", "@everyone", "%40everyone", "@here", "%40here")

// linkText is what may stand in the brackets of a link: pairs of brackets, escaped or
// not, and no code.
var linkText = regexp.MustCompile("^(?:\\[[^\\[\\]`\n]*\\]|[^\\[\\]`\n])+$")

// link draws a link whose text is markup already. Addresses that Discord does not
// make links of stay readable; so does the address behind a text that would end its
// brackets early or looks like an address itself.
func link(text, to string) string {
	to = strings.TrimSpace(to)
	known := false
	for _, scheme := range []string{"http://", "https://"} {
		known = known || len(to) > len(scheme) && strings.EqualFold(to[:len(scheme)], scheme)
	}
	angle := "<" + address.Replace(to) + ">"
	switch {
	case text == "" && to == "":
		return ""
	case known && (text == "" || text == escape.Replace(to)):
		return angle
	case known && linkText.MatchString(text) && !strings.Contains(text, `://`):
		return "[" + text + "](" + angle + ")"
	case known:
		return text + " (" + angle + ")"
	case text == "" || text == escape.Replace(to):
		return escape.Replace(to)
	case to == "":
		return text
	default:
		return text + " (" + escape.Replace(to) + ")"
	}
}
