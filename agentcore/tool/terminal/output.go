package terminal

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/agentcore/tool"
)

// output keeps the first 40 % and the last 60 % of limit bytes of what is written
// to it in memory, whatever the amount (TOL-003). What is more goes to a file.
type output struct {
	mu       sync.Mutex
	head     []byte // full when it has reached its capacity
	tail     []byte // a ring once it has reached its capacity
	next     int    // where the ring is written
	total    int
	progress *progress
	spool    *spool // nil as long as all is in memory
	folder   string // where it is made; empty: nowhere
}

func newOutput(limit int, folder string, p *progress) *output {
	h := limit * 2 / 5
	return &output{head: make([]byte, 0, h), tail: make([]byte, 0, limit-h), folder: folder, progress: p}
}

// Write implements io.Writer; it never fails.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	o.add(b)
	o.mu.Unlock()
	o.progress.feed(b)
	return len(b), nil
}

func (o *output) add(b []byte) {
	if o.spool == nil && o.folder != "" && o.total+len(b) > cap(o.head)+cap(o.tail) {
		o.spill()
	}
	if o.spool != nil {
		o.spool.write(b)
	}
	o.total += len(b)
	n := min(len(b), cap(o.head)-len(o.head))
	o.head = append(o.head, b[:n]...)
	b = b[n:]
	if n := len(b) - cap(o.tail); n > 0 {
		b = b[n:]
	}
	n = min(len(b), cap(o.tail)-len(o.tail))
	o.tail = append(o.tail, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(o.tail[o.next:], b)
		o.next = (o.next + n) % len(o.tail)
	}
}

// spill begins the file with what is in memory, which is still all of it.
func (o *output) spill() {
	o.spool = newSpool(o.folder)
	o.spool.write(o.head)
	o.spool.write(o.tail)
}

// keep returns the path of the file that has the whole output, "" if what is in
// memory is all, or all that there is.
func (o *output) keep() (path string, whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool == nil && o.folder != "" && o.binary() {
		o.spill()
	}
	if o.spool == nil {
		return "", true
	}
	return o.spool.keep(), o.spool.written == o.total
}

// binaryFrom is how much output is looked at as text whatever is in it.
const binaryFrom = 512

// binary says that the output is no text. o.mu is held.
func (o *output) binary() bool {
	if o.total < binaryFrom {
		return false
	}
	odd, all := 0, 0
	for _, r := range trimPartial(string(o.head)) {
		all++
		if r == 0 || r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\n\r\x1b\b\f", r) {
			odd++
		}
	}
	return odd*10 > all
}

// text returns what was kept, cleaned: no escape sequences, no control characters
// but tab and newline, no parted characters (TOL-007).
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.binary() {
		return fmt.Sprintf("(binary data, %s, %d bytes; it begins with:)\n%s", http.DetectContentType(o.head), o.total, hex.Dump(o.head[:min(len(o.head), 128)]))
	}
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	lost := o.total - len(o.head) - len(o.tail)
	if lost == 0 {
		return clean(string(o.head) + tail)
	}
	for i := 0; i < utf8.UTFMax-1 && tail != "" && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return clean(trimPartial(string(o.head))) + tool.Omitted(lost) + clean(tail)
}

var escapes = regexp.MustCompile(`\x1b(\[[0-9:;<=>?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_])`)

func clean(s string) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n' // a progress bar that draws over its line
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, s)
}

const (
	progressEvery = time.Second
	progressWidth = 120 // bytes of a line that are looked at
)

// progress shows the newest whole line of output, at most one a second.
type progress struct {
	show func(string)
	now  func() time.Time
	line []byte // the line being printed, its first progressWidth bytes
	last time.Time
}

// feed takes the next output; one goroutine calls it.
func (p *progress) feed(b []byte) {
	if p.show == nil {
		return
	}
	var whole []byte
	for _, c := range b {
		switch {
		case c == '\n':
			if len(p.line) > 0 {
				whole = append(whole[:0], p.line...)
			}
			p.line = p.line[:0]
		case len(p.line) < progressWidth:
			p.line = append(p.line, c)
		}
	}
	if whole == nil || p.now().Sub(p.last) < progressEvery {
		return
	}
	if line := strings.TrimSpace(clean(trimPartial(string(whole)))); line != "" {
		p.last = p.now()
		p.show(line)
	}
}

// trimPartial takes off a character that the cut has parted.
func trimPartial(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if utf8.RuneStart(s[len(s)-i]) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}
