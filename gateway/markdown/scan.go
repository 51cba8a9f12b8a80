package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// rank is how good a place for a cut is.
type rank int

const (
	never      rank = iota
	byGrapheme      // inside a word
	inSpan          // between words inside emphasis
	byWord
	bySentence
	byCodeLine // a line of code, or the one after a heading
	byLine     // a line of a paragraph, an empty line of code
	byItem     // a list item, a table row, a block inside an item or a quote
	byBlock
)

// point is a place to cut: the part is what comes before pos and close, the rest is
// open and what follows next.
type point struct {
	rank        rank
	pos, next   int
	close, open string
}

func (p point) head(s string) string { return strings.TrimRight(s[:p.pos], " \t\r\n") + p.close }
func (p point) tail(s string) string { return p.open + s[p.next:] }

// advances says that the part has something and the rest is shorter than the text.
func (p point) advances(s string) bool {
	return p.next > len(p.open) && strings.TrimSpace(s[:p.pos]) != ""
}

// container is a quote or a list item that is open at some place.
type container struct {
	marker string // of a list item; empty: a quote
	offset int    // columns that a list item's content is indented by
}

// frame is what is open at some place and must be opened again after a cut there.
type frame struct {
	containers []container
	close      string // ends the leaf, on a line of its own
	open       string // begins it again, line breaks included
}

// prefix is what each line inside the containers begins with.
func prefix(cs []container) string {
	var b strings.Builder
	for _, c := range cs {
		if c.marker == "" {
			b.WriteString("> ")
		} else {
			b.WriteString(strings.Repeat(" ", c.offset))
		}
	}
	return b.String()
}

// reopen is the source that opens the containers again, up to where content goes.
func reopen(cs []container) string {
	var b strings.Builder
	for i, c := range cs {
		if c.marker == "" {
			b.WriteString("> ")
			continue
		}
		room := c.offset - len(c.marker)
		lead := min(3, room-1)
		b.WriteString(strings.Repeat(" ", lead) + c.marker + strings.Repeat(" ", room-lead) + continued + "\n")
		b.WriteString(strings.TrimRight(prefix(cs[:i]), " ") + "\n" + prefix(cs[:i+1]))
	}
	return b.String()
}

// strip returns the index in s of what follows the containers' prefix of a line.
func strip(s string, at int, cs []container) int {
	for _, c := range cs {
		i, columns := at, 0
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') && (c.marker == "" || columns < c.offset) {
			columns++
			if s[i] == '\t' {
				columns += 3 - (columns-1)%4
			}
			i++
		}
		switch {
		case c.marker != "":
			at = i
		case i < len(s) && s[i] == '>':
			if at = i + 1; at < len(s) && s[at] == ' ' {
				at++
			}
		default:
			return at // a lazy line
		}
	}
	return at
}

// line is a line of the source, as far as cuts are concerned.
type line struct {
	start  int   // where it begins
	rank   rank  // of a cut before it; never: not here
	outer  frame // what is open before it
	marker string
	spans  []span // what is open before it, inline
	// Of a line that can be cut inside:
	leaf  frame
	runs  []run // ranges of its text
	plain bool  // what follows must not begin a block
}

// before is the cut that ends a part with the line before.
func (l line) before(s string) (point, bool) {
	if l.rank == never {
		return point{}, false
	}
	next := strip(s, l.start, l.outer.containers)
	if l.plain {
		next += len(s[next:]) - len(strings.TrimLeft(s[next:], " \t"))
	}
	open := reopen(l.outer.containers) + l.outer.open
	if l.marker != "" { // an item that must keep its number
		next += len(s[next:]) - len(strings.TrimLeft(s[next:], " \t0123456789"))
		open += l.marker
	}
	closing, opening := closeSpans(l.spans)
	return point{l.rank, l.start, next, closing + l.outer.close, open + opening}, true
}

// scanner walks a tree and lists its lines.
type scanner struct {
	Tree
	src   string
	lines []line
}

// scan lists the lines of a text at which or inside of which it can be cut, in
// order.
func scan(t Tree) []line {
	s := scanner{Tree: t, src: string(t.Source)}
	s.blocks(t.Root, nil)
	return s.lines
}

func (s *scanner) lineStart(pos int) int { return strings.LastIndexByte(s.src[:pos], '\n') + 1 }

// blocks lists the children of a container; a cut before the first is the
// container's own.
func (s *scanner) blocks(parent ast.Node, open []container) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			s.boundary(n, open)
		}
		s.block(n, open)
	}
}

func (s *scanner) boundary(n ast.Node, open []container) {
	pos := position(n)
	if pos < 0 {
		return
	}
	r := byBlock
	if len(open) > 0 {
		r = byItem
	}
	if n.PreviousSibling().Kind() == ast.KindHeading {
		r = byCodeLine
	}
	s.lines = append(s.lines, line{start: s.lineStart(pos), rank: r, outer: frame{containers: open}})
}

// position is a place on the first line of a block, or -1.
func position(n ast.Node) int {
	if n.Kind() == east.KindTable {
		n = n.FirstChild() // the table's own is that of the paragraph it was part of
	}
	return n.Pos()
}

func (s *scanner) block(n ast.Node, open []container) {
	switch n := n.(type) {
	case *ast.List:
		s.list(n, open)
	case *ast.Blockquote:
		s.blocks(n, append(open[:len(open):len(open)], container{}))
	case *ast.Paragraph, *ast.TextBlock:
		s.paragraph(n, frame{containers: open})
	case *ast.Heading:
		s.paragraph(n, frame{containers: open, open: strings.Repeat("#", n.Level) + " "})
	case *ast.FencedCodeBlock:
		s.fence(n, open)
	case *ast.CodeBlock:
		s.code(n, frame{containers: open, open: "    "}, frame{containers: open})
	case *east.Table:
		s.table(n, open)
	}
}

func (s *scanner) list(n *ast.List, open []container) {
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		item, ok := c.(*ast.ListItem)
		if !ok || item.Pos() < 0 {
			continue
		}
		marker, fresh := string(n.Marker), ""
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + marker
			if s.renumbers(item, marker) {
				fresh = strconv.Itoa(number)
			}
			number++
		}
		if item.PreviousSibling() != nil {
			s.lines = append(s.lines, line{start: s.lineStart(item.Pos()), rank: byItem,
				outer: frame{containers: open}, marker: fresh})
		}
		if len(marker) >= item.Offset { // too wide for what the item's lines are indented by
			marker = "1" + string(n.Marker)
		}
		s.blocks(item, append(open[:len(open):len(open)], container{marker, max(item.Offset, len(marker)+1)}))
	}
}

// renumbers says that an item at the head of a part must be given its number: "1.
// 1. 1." counts up, but not across parts. A number of another width would move the
// item's further lines out of it, so an item that has any keeps the one it has.
func (s *scanner) renumbers(item *ast.ListItem, marker string) bool {
	at := s.src[item.Pos():]
	if strings.HasPrefix(at, marker) {
		return false
	}
	digits := len(at) - len(strings.TrimLeft(at, "0123456789"))
	only := item.FirstChild()
	return digits == len(marker)-1 ||
		only == item.LastChild() && (only == nil || only.Kind() == ast.KindTextBlock && only.Lines().Len() == 1)
}

// paragraph lists the lines of a block of inline content.
func (s *scanner) paragraph(n ast.Node, f frame) {
	in := inline(s.Tree, n)
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		l := line{start: s.lineStart(seg.Start), outer: f, leaf: f, plain: f.open == "", runs: in.runs(seg.Start, seg.Stop)}
		if i > 0 {
			if spans, ok := in.breaks(n.Lines().At(i-1), seg); ok {
				l.rank, l.spans = byLine, spans
				if len(spans) > 0 {
					l.rank = inSpan
				}
			}
		}
		s.lines = append(s.lines, l)
	}
}

func (s *scanner) fence(n *ast.FencedCodeBlock, open []container) {
	pos := n.Pos()
	if pos < 0 || s.src[pos] != '`' && s.src[pos] != '~' {
		return
	}
	fence := strings.TrimRight(s.src[pos:s.lineEnd(pos)], " \t\r\n")
	run := fence[:len(fence)-len(strings.TrimLeft(fence, fence[:1]))]
	indent := s.src[min(pos, strip(s.src, s.lineStart(pos), open)):pos]
	if strings.Trim(indent, " ") != "" {
		indent = "" // it begins on the line of its item's marker
	}
	p := prefix(open)
	f := frame{containers: open, close: "\n" + p + indent + run, open: indent + fence + "\n" + p}
	s.code(n, f, f)
}

func (s *scanner) lineEnd(pos int) int {
	if i := strings.IndexByte(s.src[pos:], '\n'); i >= 0 {
		return pos + i
	}
	return len(s.src)
}

// code lists the lines of a code block: between is what a cut before a line
// reopens, within what a cut inside one does.
func (s *scanner) code(n ast.Node, within, between frame) {
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		l := line{start: s.lineStart(seg.Start), outer: between, leaf: within}
		stop := seg.Start + len(strings.TrimRight(s.src[seg.Start:seg.Stop], "\r\n"))
		l.runs = []run{{start: seg.Start, stop: stop, code: true}}
		if i > 0 {
			l.rank = byCodeLine
			prev := n.Lines().At(i - 1)
			if strings.TrimSpace(string(prev.Value(s.Source))) == "" {
				l.rank = byLine
			}
		}
		s.lines = append(s.lines, l)
	}
}

// table lists the rows of a table; each part but the first repeats the head.
func (s *scanner) table(n *east.Table, open []container) {
	head := position(n)
	body := strip(s.src, min(s.lineEnd(head)+1, len(s.src)), open)
	get := func(at int) string { return strings.TrimSpace(s.src[at:s.lineEnd(at)]) }
	p := prefix(open)
	f := frame{containers: open, open: get(head) + "\n" + p + get(body) + "\n" + p}
	i := 0
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		if row.Pos() < 0 {
			continue
		}
		l := line{start: s.lineStart(row.Pos()), outer: f, leaf: frame{containers: open}, plain: true}
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			in := inline(s.Tree, cell)
			l.runs = append(l.runs, in.runs(l.start, s.lineEnd(l.start))...)
		}
		if i >= 2 {
			l.rank = byItem
		}
		i++
		s.lines = append(s.lines, l)
	}
}
