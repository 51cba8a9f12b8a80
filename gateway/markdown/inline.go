package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// span is emphasis or a code span that a cut can close and open again; its
// delimiter is the one in the source, since the closing one is still to come.
type span string

// closeSpans returns what ends the spans and what begins them again.
func closeSpans(spans []span) (closing, opening string) {
	for _, s := range spans {
		closing = string(s) + closing
		opening += string(s)
	}
	return closing, opening
}

// run is a range of the source that is shown as it stands, where it can be cut.
type run struct {
	start, stop int
	spans       []span
	code        bool // a line of a code block
}

// content is the runs of one block, and its line breaks with what is open there.
type content struct {
	all  []run
	ends []run // start: where the line's text ends
}

// inline lists the runs of a block. Links, images, tags and bare addresses have
// none: they are never cut.
func inline(t Tree, block ast.Node) content {
	var c content
	var walk func(n ast.Node, open []span)
	walk = func(n ast.Node, open []span) {
		for k := n.FirstChild(); k != nil; k = k.NextSibling() {
			switch k := k.(type) {
			case *ast.Text:
				c.text(k, open, n.Kind() == ast.KindCodeSpan)
			case *ast.Emphasis, *east.Strikethrough, *ast.CodeSpan:
				if d := delimiter(t.Source, k); d != "" {
					walk(k, append(open[:len(open):len(open)], d))
				}
			}
		}
	}
	walk(block, nil)
	return c
}

func (c *content) text(n *ast.Text, open []span, code bool) {
	if n.Segment.Len() > 0 {
		c.all = append(c.all, run{start: n.Segment.Start, stop: n.Segment.Stop, spans: open})
	}
	if !code && (n.SoftLineBreak() || n.HardLineBreak()) {
		c.ends = append(c.ends, run{start: n.Segment.Stop, spans: open})
	}
}

// delimiter is what a span begins with in the source.
func delimiter(src []byte, n ast.Node) span {
	pos := n.Pos()
	if pos < 0 || pos >= len(src) {
		return ""
	}
	count := 0
	for pos+count < len(src) && src[pos+count] == src[pos] {
		count++
	}
	switch n := n.(type) {
	case *ast.Emphasis:
		count = n.Level
	case *east.Strikethrough:
		count = min(count, 2)
	}
	if !strings.ContainsRune("*_~`", rune(src[pos])) {
		return ""
	}
	return span(strings.Repeat(string(src[pos]), count))
}

// runs are those that begin in a range of the source.
func (c content) runs(start, stop int) []run {
	var out []run
	for _, r := range c.all {
		if r.start >= start && r.start < stop {
			out = append(out, r)
		}
	}
	return out
}

// breaks returns what is open between two lines; ok is false inside a link, a code
// span or a tag.
func (c content) breaks(before, after text.Segment) (open []span, ok bool) {
	for _, e := range c.ends {
		if e.start >= before.Start && e.start < after.Start {
			return e.spans, true
		}
	}
	return nil, false
}

// inside are the places inside a line where it can be cut, down to a rank.
func (l line) inside(s string, least rank) []point {
	var out []point
	containers := reopen(l.leaf.containers)
	for _, r := range l.runs {
		closing, opening := closeSpans(r.spans)
		walkBreaks(s[r.start:r.stop], func(at int, k rank) {
			pos := r.start + at
			if len(r.spans) > 0 {
				k = min(k, inSpan)
			}
			if least == byWord && k == byGrapheme || !r.code && (unsafe(s, r, pos) || l.plain && opening == "" && beginsBlock(s[pos:])) {
				return
			}
			out = append(out, point{k, pos, pos, closing + l.leaf.close, containers + l.leaf.open + opening})
		})
	}
	return out
}

// walkBreaks calls at with each place between two grapheme clusters, before the
// first character of a word.
func walkBreaks(s string, at func(int, rank)) {
	state, rest, pos := -1, s, 0
	for len(rest) > 0 {
		var cluster string
		var bounds int
		cluster, rest, bounds, state = uniseg.StepString(rest, state)
		pos += len(cluster)
		if rest == "" {
			if strings.HasSuffix(cluster, " ") {
				at(pos, byWord) // before a span or a link
			}
			return
		}
		last, _ := utf8.DecodeLastRuneInString(cluster)
		next, _ := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(next):
		case bounds&uniseg.MaskLine == uniseg.LineDontBreak || !unicode.IsSpace(last) && last < 0x2E80:
			at(pos, byGrapheme)
		case bounds&uniseg.MaskSentence != 0 && strings.ContainsRune(".!?…。！？", lastShown(s[:pos])):
			at(pos, bySentence)
		default:
			at(pos, byWord)
		}
	}
}

// lastShown is the last rune that is no space and no closing quote or bracket.
func lastShown(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, " \t\n\"'”’»)]*_」』）"))
	return r
}

// unsafe says that a cut would fall into an escape, an entity or a run of
// delimiters, or leave a delimiter beside one that it does not belong to.
func unsafe(s string, r run, pos int) bool {
	const longest = 34 // bytes of an entity
	before := s[max(r.start, pos-longest):pos]
	if n := len(before) - len(strings.TrimRight(before, `\`)); n%2 == 1 {
		return true
	}
	if i := strings.LastIndexByte(before, '&'); i >= 0 {
		if e := entity.FindString(s[pos-len(before)+i:]); len(e) > len(before)-i {
			return true
		}
	}
	const delimiters = "*_~`"
	return strings.IndexByte(delimiters, s[pos-1]) >= 0 || pos < r.stop && strings.IndexByte(delimiters, s[pos]) >= 0
}

// beginsBlock says that a line with this beginning would not be a paragraph.
func beginsBlock(s string) bool {
	s = s[:min(len(s), 16)]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	mark := s[:len(s)-len(strings.TrimLeft(s, "#-+=|"))]
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	return s == "" || mark != "" || s[0] == '>' || s[0] == ' ' || s[0] == '\t' ||
		digits > 0 && digits <= 9 && digits < len(s) && (s[digits] == '.' || s[digits] == ')')
}

// graphemeEnds are the ends of the grapheme clusters of a text.
func graphemeEnds(s string) []int {
	var ends []int
	state, pos := -1, 0
	for len(s) > 0 {
		var cluster string
		cluster, s, _, state = uniseg.StepString(s, state)
		pos += len(cluster)
		ends = append(ends, pos)
	}
	return ends
}
