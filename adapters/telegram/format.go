package telegram

import (
	"net/url"
	"strings"
	"unicode/utf16"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// escape is complete for text and for attributes in double quotes.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// clean removes what no message may hold: broken bytes, and control characters, of
// which nothing would be left.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// render turns CommonMark into the HTML that the Bot API takes. It is made from the
// tree, so it is always well nested, and holds no tags but Telegram's (MKD-002,
// MKD-013).
func render(commonMark string) string {
	r := renderer{Tree: markdown.Parse(clean(commonMark))}
	return strings.TrimSpace(r.blocks(r.Root, "", "\n\n"))
}

// composed is a message in the two forms it can be sent in.
type composed struct{ html, text string }

// compose puts the progress lines above the text, folded when they are many, and
// drops the oldest of them where there is no room.
func compose(m chat.Outgoing) composed {
	body := render(m.Text)
	room := textLimit - visible(body) - 1
	var lines []string
	for i := len(m.Progress) - 1; i >= 0; i-- {
		line := strings.Join(strings.Fields(clean(m.Progress[i])), " ")
		if room -= units(line) + 1; room < 0 {
			break
		}
		lines = append([]string{line}, lines...)
	}
	if len(lines) == 0 {
		return composed{body, plain(m.Text)}
	}
	tag := "<blockquote>"
	if len(lines) > foldFrom {
		tag = "<blockquote expandable>"
	}
	above := strings.Join(lines, "\n")
	out := composed{
		html: strings.TrimSpace(tag + escape.Replace(above) + "</blockquote>\n" + body),
		text: strings.TrimSpace(above + "\n\n" + plain(m.Text)),
	}
	if units(out.text) > textLimit {
		out.text = plain(m.Text)
	}
	return out
}

// foldFrom is the number of progress lines beyond which they are folded.
const foldFrom = 3

// plain is what is sent if the markup is refused: the text as it was written, or
// what it shows if that is too long (MKD-003, MKD-009).
func plain(commonMark string) string {
	if s := clean(commonMark); units(s) <= textLimit {
		return s
	}
	return markdown.Plain(clean(commonMark))
}

// visible counts the UTF-16 units of rendered HTML without its tags.
func visible(html string) int {
	n := 0
	for i := 0; i < len(html); {
		switch html[i] {
		case '<':
			i += strings.IndexByte(html[i:], '>') + 1
			continue
		case '&':
			i += strings.IndexByte(html[i:], ';') + 1
			n++
			continue
		}
		for _, r := range html[i:] {
			n += utf16.RuneLen(r)
			i += len(string(r))
			break
		}
	}
	return n
}

// units counts UTF-16 units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// renderer draws one tree. Blocks take the indentation of their lines; code has
// none, since it is to be copied.
type renderer struct {
	markdown.Tree
	quoted bool // Telegram does not nest quotes
}

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
		if s := r.inline(n); s != "" {
			return pad + "<b>" + s + "</b>"
		}
		return ""
	case *ast.FencedCodeBlock:
		return pre(r.Code(n), string(n.Language(r.Source)))
	case *ast.CodeBlock:
		return pre(r.Code(n), "")
	case *ast.ThematicBreak:
		return pad + "———"
	case *ast.Blockquote:
		return r.quote(n, pad)
	case *ast.List:
		return r.List(n, pad, r.blocks)
	case *east.Table:
		return pre(r.Table(n), "")
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

func pre(code, language string) string {
	if code == "" {
		return ""
	}
	language = strings.Map(func(c rune) rune {
		if c == '+' || c == '#' || c == '-' || c == '.' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return -1
	}, language)
	if language == "" {
		return "<pre>" + escape.Replace(code) + "</pre>"
	}
	return `<pre><code class="language-` + language + `">` + escape.Replace(code) + "</code></pre>"
}

func (r *renderer) quote(n ast.Node, pad string) string {
	if r.quoted {
		return r.blocks(n, pad+"&gt; ", "\n")
	}
	r.quoted = true
	s := r.blocks(n, pad, "\n")
	r.quoted = false
	if s == "" {
		return ""
	}
	return "<blockquote>" + s + "</blockquote>"
}

func (r *renderer) inline(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.WriteString(r.span(n))
	}
	return strings.Trim(b.String(), "\n")
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
		return wrap("code", escape.Replace(strings.ReplaceAll(r.Inline(n), "\n", " ")))
	case *ast.Emphasis:
		if n.Level == 2 {
			return wrap("b", r.inline(n))
		}
		return wrap("i", r.inline(n))
	case *east.Strikethrough:
		return wrap("s", r.inline(n))
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

func wrap(tag, s string) string {
	if s == "" {
		return ""
	}
	return "<" + tag + ">" + s + "</" + tag + ">"
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

// link draws a link whose text is HTML already. Telegram drops the address of what
// is not on the web, so it stays readable; and tg://user would call somebody
// (MEN-007).
func link(text, to string) string {
	to = strings.TrimSpace(to)
	onWeb := web(to)
	if !onWeb {
		to = strings.TrimPrefix(strings.TrimPrefix(to, "mailto:"), "tel:")
	}
	to = escape.Replace(strings.ReplaceAll(to, " ", "%20"))
	switch {
	case onWeb && text != "":
		return `<a href="` + to + `">` + text + "</a>"
	case text == "" || text == to:
		return to
	case to == "":
		return text
	default:
		return text + " (" + to + ")"
	}
}

// web says that Telegram takes an address for a link: it wants a host with a dot.
func web(to string) bool {
	u, err := url.Parse(to)
	return err == nil && (strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https")) &&
		(strings.Contains(u.Host, ".") || strings.HasPrefix(u.Host, "["))
}
