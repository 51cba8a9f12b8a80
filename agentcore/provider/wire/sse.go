package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"parley/agentcore/llm"
)

// maxEvent bounds one event of a stream.
const maxEvent = 16 << 20

var errEventTooLong = &llm.Error{Kind: llm.KindNetwork, Message: "an event of the answer is too long"}

// cleaner reads whatever servers call a stream and gives the library one line
// `data: JSON` for each event, and nothing else. The library counts lines that are
// no data, loses a last line without newline, breaks on split data, and sees only
// some errors (PST-006, PST-024); errors reach the fold as ordinary data.
type cleaner struct {
	src *bufio.Reader
	x   *Exchange
	// whole: the answer is one JSON document, not a stream.
	whole bool
	event []byte // the name of the event that is being read
	data  []byte // its data; nil: none yet
	out   bytes.Buffer
	err   error
}

// Read implements io.Reader.
func (c *cleaner) Read(p []byte) (int, error) {
	for c.out.Len() == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.out.Reset()
		if c.whole {
			c.readWhole()
		} else {
			c.readLine()
		}
	}
	return c.out.Read(p)
}

func (c *cleaner) readWhole() {
	b, err := io.ReadAll(io.LimitReader(c.src, maxAnswer))
	if c.err = err; err == nil {
		c.err = io.EOF
	}
	if json.Valid(b) {
		c.x.done = true
	}
	c.data = b
	c.dispatch()
}

// readLine takes one line. A blank one ends an event, and so does the end of the
// stream.
func (c *cleaner) readLine() {
	line, err := c.line()
	if len(line) > 0 {
		c.field(line)
	} else if err == nil {
		c.dispatch()
	}
	if err != nil {
		c.err = err
		c.dispatch()
	}
}

// line returns the next line without its end, valid until the next call.
func (c *cleaner) line() ([]byte, error) {
	b, err := c.src.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(b)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxEvent {
			b, err = c.src.ReadSlice('\n')
			long = append(long, b...)
		}
		b = long
		if len(b) >= maxEvent {
			return nil, errEventTooLong
		}
	}
	return bytes.TrimRight(b, "\r\n"), err
}

func (c *cleaner) field(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("data:")):
		c.addData(bytes.TrimPrefix(line[len("data:"):], []byte(" ")))
	case bytes.HasPrefix(line, []byte("event:")):
		c.event = bytes.Clone(bytes.TrimSpace(line[len("event:"):]))
	case line[0] == '{' || line[0] == '[':
		c.addData(line) // an error object that a proxy threw in between
	}
}

// addData joins the lines of an event. Servers that put no blank line between
// events are told by data that is complete already.
func (c *cleaner) addData(d []byte) {
	if c.data != nil && json.Valid(c.data) {
		c.dispatch()
	}
	if c.data == nil {
		c.data = append(c.data, d...)
		return
	}
	c.data = append(append(c.data, ' '), d...)
	if len(c.data) > maxEvent {
		c.data, c.err = nil, errEventTooLong
	}
}

// dispatch writes the event that was read.
func (c *cleaner) dispatch() {
	data, event := bytes.TrimSpace(c.data), c.event
	c.data, c.event = nil, nil
	switch {
	case len(data) == 0:
		return
	case string(data) == "[DONE]":
		c.x.done = true
	case string(event) == "error":
		data = asError(data)
	}
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		data = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, data)
	}
	c.out.WriteString("data: ")
	// A space hides an error object from the library, which sees it in some places
	// and not in others.
	if rest, ok := bytes.CutPrefix(data, []byte(`{"error"`)); ok {
		c.out.WriteString(`{ "error"`)
		data = rest
	}
	c.out.Write(data)
	c.out.WriteString("\n\n")
}

// asError makes the data of an `event: error` an error object.
func asError(data []byte) []byte {
	var object struct {
		Error json.RawMessage `json:"error"`
	}
	switch err := json.Unmarshal(data, &object); {
	case err == nil && len(object.Error) > 0:
		return data
	case json.Valid(data):
		return append(append([]byte(`{"error":`), data...), '}')
	default:
		return append(strconv.AppendQuote([]byte(`{"error":`), string(data)), '}')
	}
}

// cleanBody is the body that the library reads.
type cleanBody struct {
	*cleaner
	closer io.Closer
	watch  *watch
}

// Close implements io.Closer.
func (b *cleanBody) Close() error {
	b.watch.stop()
	return b.closer.Close()
}
