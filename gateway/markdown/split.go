package markdown

import (
	"sort"
	"strings"
	"unicode/utf8"

	"parley/gateway/chat"
)

// Split divides a text into parts that each fit the limits; a text that shows
// nothing has no parts. It is Cut, repeated.
func Split(s string, l chat.Limits) []string {
	var parts []string
	for s != "" {
		var part string
		if part, s = Cut(s, l); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// Cut takes the first part off a text. If the text fits the limits, rest is empty.
//
// The part and the rest are each CommonMark on their own. A cut is made, in this
// order, between blocks, list items or table rows, lines, sentences, words, and
// only if there is none of them in the second half of the part between characters:
// never inside a grapheme cluster, an entity, a link or a tag (a single grapheme
// that is larger than a message is cut between runes). A code fence that the cut
// falls into is closed and opened again with its info string, and so are quotes,
// lists (an item that goes on shows no second bullet), headings and emphasis; a
// table's head is repeated, and the items of a numbered list go on counting. What the parts show, one after the other, is what the
// text shows, repeated table heads and white space at the cuts aside
// (SPL-002, SPL-005, SPL-007, SPL-015).
//
// The rest ends with the very bytes the text ended with, and is never longer than
// the text less one byte, so cutting always comes to an end (SPL-010, SPL-011).
// Only if not even one rune fits, a part of that one rune is over the limit.
//
// Cut streams: to divide a text that is still arriving, keep the rest, append to it
// what comes, and cut again. Parts taken off so far never change. Cutting the whole
// text afterwards gives the same parts if, at each cut, what followed did not
// change the reading of what was there: this holds when the text that was cut ended
// at the end of a line, with no emphasis, code span, link or table head left open,
// and the measure of a text is never less than that of its beginning.
//
// A part is at most 8 bytes of source for each unit of the limit, so that cutting
// is linear in the length of the text.
func Cut(s string, l chat.Limits) (part, rest string) {
	c := cutter{limit: l.Text, size: l.Size, source: max(8*l.Text, 1024)}
	for {
		part, rest = c.cut(trimBlankLines(s))
		if rest == "" || Plain(part) != "" {
			break
		}
		s = rest
	}
	if rest == "" && Plain(part) == "" {
		return "", ""
	}
	return part, rest
}

// cutter cuts to one limit.
type cutter struct {
	limit  int // units of size; not positive: unlimited
	size   func(string) int
	source int // bytes of source that a part may have
}

func (c cutter) fits(s string) bool {
	return c.limit <= 0 || len(s) <= c.source && c.size(s) <= c.limit
}

func (c cutter) cut(s string) (part, rest string) {
	if whole := strings.TrimRight(s, " \t\r\n"); c.fits(whole) {
		return whole, ""
	}
	win := c.window(s)
	lines := scan(Parse(win))
	if p, ok := c.choose(win, lines); ok {
		return p.head(win), p.tail(s)
	}
	return c.raw(s)
}

// window is as much of the beginning as can matter: twice what no longer fits.
func (c cutter) window(s string) string {
	n := max(2*c.limit, 256)
	for n < len(s) && n < c.source && c.fits(runePrefix(s, n)) {
		n *= 2
	}
	return runePrefix(s, 2*n)
}

// runePrefix returns at most n bytes, and no broken rune at the end.
func runePrefix(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for i := n; i > n-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n]
}

// choose finds the best place to cut.
func (c cutter) choose(win string, lines []line) (point, bool) {
	breaks := make([]point, 0, len(lines))
	from := make([]int, 0, len(lines)) // the line that each break is before
	for i := range lines {
		if p, ok := lines[i].before(win); ok && p.advances(win) {
			breaks, from = append(breaks, p), append(from, i)
		}
	}
	fit, last := c.lastFit(win, breaks)
	if p, ok := c.best(win, breaks[:last+1]); ok {
		return p, true
	}
	// No break fills half a part: look inside the lines up to the first that is not
	// in.
	first, end := 0, len(lines)
	if fit >= 0 {
		first = from[fit]
	}
	if fit+1 < len(from) {
		end = from[fit+1]
	}
	for _, least := range []rank{byWord, byGrapheme} {
		var inner []point
		for _, l := range lines[first:end] {
			for _, p := range l.inside(win, least) {
				if p.advances(win) {
					inner = append(inner, p)
				}
			}
		}
		_, k := c.lastFit(win, inner)
		if p, ok := c.best(win, inner[:k+1]); ok {
			return p, true
		}
		if last >= 0 {
			return breaks[last], true
		}
		if k >= 0 {
			return inner[k], true
		}
	}
	return point{}, false
}

// lastFit finds the last point whose part fits, by halving, and from there the
// last that really does: parts grow from point to point, all but a few. It is -1 if
// there is none.
func (c cutter) lastFit(win string, ps []point) (fit, last int) {
	fit = sort.Search(len(ps), func(i int) bool { return !c.fits(ps[i].head(win)) }) - 1
	for last = fit; last >= 0 && !c.fits(ps[last].head(win)); {
		last--
	}
	return fit, last
}

// best is the strongest point, and of equals the last, whose part is at least half
// of the limit. The last point fits.
func (c cutter) best(win string, ps []point) (point, bool) {
	k := sort.Search(len(ps), func(i int) bool { return 2*c.size(ps[i].head(win)) >= c.limit })
	if k == len(ps) {
		return point{}, false
	}
	top := ps[k]
	for _, p := range ps[k:] {
		if p.rank >= top.rank {
			top = p
		}
	}
	if !c.fits(top.head(win)) {
		top = ps[len(ps)-1]
	}
	return top, true
}

// raw cuts without regard to structure, for limits so small that what is to be
// reopened fills a part.
func (c cutter) raw(s string) (part, rest string) {
	ends := graphemeEnds(runePrefix(s, c.source))
	k := sort.Search(len(ends), func(i int) bool { return !c.fits(s[:ends[i]]) }) - 1
	if k >= 0 {
		return s[:ends[k]], strings.TrimLeft(s[ends[k]:], " \t\r\n")
	}
	_, end := utf8.DecodeRuneInString(s)
	for end < ends[0] {
		_, n := utf8.DecodeRuneInString(s[end:])
		if !c.fits(s[:end+n]) {
			break
		}
		end += n
	}
	return s[:end], s[end:]
}

// trimBlankLines drops the blank lines that a text begins with, but not the
// indentation of the first that is not.
func trimBlankLines(s string) string {
	for {
		i := strings.IndexByte(s, '\n')
		if i < 0 || strings.TrimSpace(s[:i]) != "" {
			return s
		}
		s = s[i+1:]
	}
}
