package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"parley/agentcore/tool"
)

const (
	defaultLines = 400
	maxLines     = 2000
	// widthLimit is bytes of one line.
	widthLimit = 2000
	// countLimit is how many bytes are looked at to count a file's lines.
	countLimit = 256 << 20
)

const readDescription = `Read a text file of the conversation's folder, with numbered lines ("12<TAB>text"; the number and the tab are not part of the file). What people have sent is in files/.
Long files come in pages: the result says which line to go on at. A very long line is cut; column reads on in it.`

type readInput struct {
	Path   string `json:"path" jsonschema:"the file, relative to the folder"`
	Offset int    `json:"offset,omitempty" jsonschema:"the line to begin at; 1 if not given"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines; 400 if not given, at most 2000"`
	Column int    `json:"column,omitempty" jsonschema:"only for very long lines: the byte of the line to begin at, 1 being the first; reads this one line"`
}

func readFile(ctx context.Context, f folder, in readInput) (tool.Result, error) {
	name, err := f.local(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	file, info, err := f.openRegular(name)
	if err != nil {
		return tool.Result{}, cannot("read", name, err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, headLimit)
	head, err := r.Peek(headLimit)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, cannot("read", name, err)
	}
	k := kindOf(head)
	if k.binary != "" {
		return tool.Failure("%s is a binary file (%s, %s); it has no text to read.", shown(name), k.binary, sized(info.Size())), nil
	}
	if len(head) == len(k.mark) {
		return tool.Result{Text: shown(name) + " is empty."}, nil
	}
	if _, err := r.Discard(len(k.mark)); err != nil {
		return tool.Result{}, cannot("read", name, err)
	}
	p := newPage(in)
	if err := p.read(ctx, k.reader(r)); err != nil {
		return tool.Result{}, cannot("read", name, err)
	}
	return p.result(name, k)
}

// page is the part of a file that one call shows.
type page struct {
	from, to int // lines, the first being 1; to is the last that is wanted
	column   int // bytes of the first line to leave out

	line    int // the line being read
	width   int // its bytes so far
	shown   int // those of them that are shown
	started bool
	full    bool // the text has reached its limit
	last    int  // the last line that is shown
	cutAt   int  // where the last cut line goes on, 0 if none is cut
	cutLine int
	crlf    bool
	more    bool // the end of the file was not looked for
	out     bytes.Buffer
}

func newPage(in readInput) *page {
	p := &page{from: max(in.Offset, 1), line: 1}
	lines := defaultLines
	if in.Limit > 0 {
		lines = min(in.Limit, maxLines)
	}
	if in.Column > 1 {
		p.column, lines = in.Column-1, 1
	}
	p.to = p.from + lines - 1
	return p
}

// read goes through the text once. What is not shown is only counted.
func (p *page) read(ctx context.Context, text io.Reader) error {
	r := bufio.NewReaderSize(text, headLimit)
	for total := 0; ; {
		chunk, err := r.ReadSlice('\n')
		total += len(chunk)
		p.add(chunk)
		switch {
		case errors.Is(err, io.EOF):
			if p.width == 0 {
				p.line-- // the file ends with a line end
			}
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case p.line > p.to && total > countLimit:
			p.more = true
			return nil
		}
	}
}

func (p *page) add(chunk []byte) {
	if len(chunk) == 0 {
		return
	}
	ended := bytes.HasSuffix(chunk, []byte("\n"))
	if p.line >= p.from && p.line <= p.to && !p.full {
		p.show(chunk)
	}
	p.width += len(chunk)
	if !ended {
		return
	}
	p.crlf = p.crlf || bytes.HasSuffix(chunk, []byte("\r\n"))
	if p.started {
		p.out.WriteByte('\n')
	}
	p.line, p.width, p.shown, p.started = p.line+1, 0, 0, false
}

// show adds a piece of a line that is wanted, as far as there is room.
func (p *page) show(chunk []byte) {
	if !p.started {
		if p.out.Len() >= textLimit {
			p.full = true
			return
		}
		p.started, p.last = true, p.line
		fmt.Fprintf(&p.out, "%d\t", p.line)
	}
	room, skip := widthLimit, 0
	if p.column > 0 {
		room, skip = textLimit, min(max(p.column-p.width, 0), len(chunk))
	}
	for ; skip > 0 && skip < len(chunk) && !utf8.RuneStart(chunk[skip]); skip++ {
	}
	if p.cutLine == p.line {
		return
	}
	text := bytes.TrimSuffix(bytes.TrimSuffix(chunk[skip:], []byte("\n")), []byte("\r"))
	if left := room - p.shown; len(text) > left {
		for left > 0 && !utf8.RuneStart(text[left]) {
			left--
		}
		text = text[:left]
		p.cutLine, p.cutAt = p.line, p.width+skip+left+1
		p.out.Write(text)
		fmt.Fprintf(&p.out, " [… the line goes on at column %d …]", p.cutAt)
		return
	}
	p.shown += len(text)
	p.out.Write(text)
}

func (p *page) result(name string, k kind) (tool.Result, error) {
	if p.last == 0 {
		return tool.Failure("%s has %d lines; there is no line %d.", shown(name), p.line, p.from), nil
	}
	var notes []string
	if k.name != "" {
		notes = append(notes, k.name)
	}
	if p.crlf {
		notes = append(notes, "lines end with CRLF")
	}
	of := fmt.Sprintf("of %d", p.line)
	if p.more {
		of = "of many"
	}
	text := fmt.Sprintf("%s, lines %d to %d %s", shown(name), p.from, p.last, of)
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	text += "."
	if p.last < p.line {
		text += fmt.Sprintf(" Read on with offset %d.", p.last+1)
	}
	return tool.Result{Text: text, Untrusted: strings.TrimSuffix(p.out.String(), "\n")}, nil
}
