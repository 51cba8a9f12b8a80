package fakediscord

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Span is a piece of what a message shows. Styles are those of package corpus, and
// "heading", "small", "underline" and "spoiler".
type Span struct {
	Text   string
	Styles []string
}

// Read parses the markup of a message as Discord's own clients do, mark by mark. It
// is stricter where they are silent: a mark that means nothing, and one of Discord's
// own references, are an error, since a bot that escapes what it is given writes none.
func Read(markup string) ([]Span, error) {
	markup = strings.TrimSpace(markup)
	if n := utf8.RuneCountInString(markup); n > maxText {
		return nil, fmt.Errorf("%d characters are more than %d", n, maxText)
	}
	if markup == "" {
		return nil, errors.New("cannot send an empty message")
	}
	r := &reader{}
	r.read(markup, place{start: true})
	return r.spans, errors.Join(r.wrong...)
}

// Shown is the text that people see of a message.
func Shown(markup string) string {
	spans, _ := Read(markup)
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// reader collects what is shown.
type reader struct {
	spans []Span
	wrong []error
}

// place is where a text stands.
type place struct {
	styles []string
	quoted bool
	start  bool // at the beginning of a line
}

func (c place) in(style ...string) place {
	c.styles = append(append([]string{}, c.styles...), style...)
	return c
}

func (r *reader) put(text string, c place) {
	if text == "" {
		return
	}
	if n := len(r.spans); n > 0 && strings.Join(r.spans[n-1].Styles, " ") == strings.Join(c.styles, " ") {
		r.spans[n-1].Text += text
		return
	}
	r.spans = append(r.spans, Span{text, c.styles})
}

func (r *reader) bad(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

// rule reads one thing at the beginning of a text and returns its length, 0 if it is
// not there.
type rule func(r *reader, s string, c place) int

// lineRules hold at the beginning of a line only.
func lineRules() []rule { return []rule{(*reader).quote, (*reader).heading, (*reader).bullet} }

// markRules hold everywhere.
func markRules() []rule {
	return []rule{(*reader).block, (*reader).codeSpan, (*reader).escaped, (*reader).reference, (*reader).address, (*reader).masked, (*reader).emphasis}
}

func (r *reader) read(s string, c place) {
	for s != "" {
		n := 0
		if c.start {
			n = r.first(lineRules(), s, c)
		}
		if n == 0 {
			n = r.first(markRules(), s, c)
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s)
			if strings.Contains("*_~|`<[", s[:1]) {
				r.bad("the mark %q in %.40q means nothing", s[:1], s)
			}
			r.put(s[:n], c)
		}
		c.start = s[n-1] == '\n'
		s = s[n:]
	}
}

func (r *reader) first(rules []rule, s string, c place) int {
	for _, f := range rules {
		if n := f(r, s, c); n > 0 {
			return n
		}
	}
	return 0
}

var (
	quotePattern   = regexp.MustCompile(`^( *> [^\n]*(?:\n|$))+`)
	quotePrefix    = regexp.MustCompile(`(?m)^ *> `)
	headingPattern = regexp.MustCompile(`^ *(#{1,3})\s+([^\n]+)\n?`)
	smallPattern   = regexp.MustCompile(`^ *-# ([^\n]+)\n?`)
	bulletPattern  = regexp.MustCompile(`^ *([-*]|[0-9]+\.) +`)
)

func (r *reader) quote(s string, c place) int {
	m := quotePattern.FindString(s)
	if c.quoted || m == "" {
		return 0
	}
	inner := c.in("quote")
	inner.quoted, inner.start = true, true
	r.read(quotePrefix.ReplaceAllString(m, ""), inner)
	return len(m)
}

func (r *reader) heading(s string, c place) int {
	style, m := []string{"heading", "bold"}, headingPattern.FindStringSubmatch(s)
	if m == nil {
		style = []string{"small"}
		if m = smallPattern.FindStringSubmatch(s); m == nil {
			return 0
		}
	}
	inner := c.in(style...)
	inner.start = false
	r.read(m[len(m)-1], inner)
	r.put("\n", c)
	return len(m[0])
}

func (r *reader) bullet(s string, c place) int {
	m := bulletPattern.FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	pad := m[0][:strings.Index(m[0], m[1])]
	if m[1] == "-" || m[1] == "*" {
		m[1] = "•"
	}
	r.put(pad+m[1]+" ", c)
	return len(m[0])
}

var blockPattern = regexp.MustCompile("(?is)^```(?:([a-z0-9_+\\-.#]+?)\n)?\n*([^\n].*?)\n*```")

func (r *reader) block(s string, c place) int {
	if !strings.HasPrefix(s, "```") {
		return 0
	}
	m := blockPattern.FindStringSubmatch(s)
	if m == nil {
		r.bad("the code block in %.40q has no end", s)
		return 0
	}
	c = c.in("pre")
	if m[1] != "" {
		c = c.in(m[1])
	}
	r.put(m[2], c)
	return len(m[0])
}

func (r *reader) codeSpan(s string, c place) int {
	fence := 0
	for fence < len(s) && s[fence] == '`' {
		fence++
	}
	if fence == 0 {
		return 0
	}
	for i := fence + 1; i <= len(s)-fence; i++ {
		if s[i-1] != '`' && strings.HasPrefix(s[i:], s[:fence]) && !strings.HasPrefix(s[i+fence:], "`") {
			r.put(s[fence:i], c.in("code"))
			return i + fence
		}
	}
	return 0
}

func (r *reader) escaped(s string, c place) int {
	if s[0] != '\\' {
		return 0
	}
	next, n := utf8.DecodeRuneInString(s[1:])
	if n == 0 || next < utf8.RuneSelf && (unicode.IsLetter(next) || unicode.IsDigit(next)) || unicode.IsSpace(next) {
		r.put(`\`, c)
		return 1
	}
	r.put(s[1:1+n], c)
	return 1 + n
}

var referencePattern = regexp.MustCompile(`^(?:<(?:@[!&]?|#|a?:\w+:|/[^>:]+:|id:|t:)[^>]*>|@everyone|@here)`)

func (r *reader) reference(s string, c place) int {
	m := referencePattern.FindString(s)
	r.put(m, c.in("mention"))
	return len(m)
}

var (
	anglePattern = regexp.MustCompile(`^<(https?://[^ >\n]+)>`)
	barePattern  = regexp.MustCompile(`^https?://[^\s<]+[^<.,:;"')\]\s]`)
	linkPattern  = regexp.MustCompile(`^\[((?:\[[^\[\]]*\]|[^\[\]])+)\]\(<?(https?://[^\s)>]+)>?\)`)
)

func (r *reader) address(s string, c place) int {
	if m := anglePattern.FindStringSubmatch(s); m != nil {
		r.put(m[1], c.in("link"))
		return len(m[0])
	}
	m := barePattern.FindString(s)
	if m != "" {
		r.bad("the address in %.40q takes what follows with it", s)
	}
	r.put(m, c.in("link"))
	return len(m)
}

func (r *reader) masked(s string, c place) int {
	m := linkPattern.FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	inner := c.in("link", m[2])
	inner.start = false
	r.read(m[1], inner)
	return len(m[0])
}

// emphasis takes the longest of the marks that begin here, as Discord does.
func (r *reader) emphasis(s string, c place) int {
	best, inner, style := 0, "", ""
	for _, m := range []struct{ sign, style string }{
		{"*", "italic"}, {"_", "italic"}, {"**", "bold"}, {"__", "underline"}, {"~~", "strike"}, {"||", "spoiler"},
	} {
		if !strings.HasPrefix(s, m.sign) {
			continue
		}
		end := ends(m.sign, s[len(m.sign):])
		if n := end + 2*len(m.sign); end > 0 && n > best {
			best, inner, style = n, s[len(m.sign):len(m.sign)+end], m.style
		}
	}
	if best > 0 {
		nested := c.in(style)
		nested.start = false
		r.read(inner, nested)
	}
	return best
}

// ends is where the text between two marks ends; 0 if it does not.
func ends(sign, s string) int {
	if len(sign) == 1 {
		return endsSingle(sign[0], s)
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && sign != "~~" && sign != "||":
			i++
		case i > 0 && strings.HasPrefix(s[i:], sign) && !(sign != "||" && strings.HasPrefix(s[i+2:], map[string]string{"**": "*", "__": "_", "~~": "_"}[sign])):
			return i
		}
	}
	return 0
}

// endsSingle is ends for italics: no white space after the first mark, none before
// the last, and doubled marks in between belong together.
func endsSingle(sign byte, s string) int {
	double := string([]byte{sign, sign})
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case i > 0 && s[i] == sign && !strings.HasPrefix(s[i:], double):
			return i
		case strings.HasPrefix(s[i:], double):
			i += 2
		case s[i] == sign:
			return 0
		case c == '\\':
			i += 2
		case unicode.IsSpace(c):
			rest := strings.TrimLeftFunc(s[i:], unicode.IsSpace)
			if i == 0 || rest == "" || rest[0] == sign && !strings.HasPrefix(rest, double) {
				return 0
			}
			i = len(s) - len(rest)
		default:
			i += n
		}
	}
	return 0
}
