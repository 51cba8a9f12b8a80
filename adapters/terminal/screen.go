package terminal

import (
	"io"
	"slices"
	"strings"
	"sync"

	"parley/gateway/chat"
)

const (
	promptText = "› "
	dim        = "\x1b[2m"
	plain      = "\x1b[0m"
	clearLine  = "\r\x1b[K"
)

// screen prints messages that grow. It only ever appends: what was printed of a
// message is remembered, and its next state continues there. Safe for concurrent
// use.
type screen struct {
	out io.Writer
	tty bool

	mu sync.Mutex
	// open are the messages that may still grow, by key.
	open map[string]*printed
	// current is the key whose text the cursor stands behind.
	current string
	// column is where the cursor is.
	column column
}

// printed is what the screen shows of a message.
type printed struct {
	text  string
	lines []string // progress
	done  bool
}

// said says whether a progress line only repeats the text that it replaces, behind
// its mark.
func (p *printed) said(line string) bool {
	_, words, _ := strings.Cut(line, " ")
	words = strings.TrimRight(words, "…")
	return words != "" && strings.HasPrefix(oneLine(p.text), words)
}

// column is the place of the cursor.
type column int

const (
	atStart  column = iota // of an empty line
	inText                 // behind text
	atPrompt               // behind the prompt
)

func newScreen(out io.Writer, tty bool) *screen {
	return &screen{out: out, tty: tty, open: map[string]*printed{}}
}

// show brings a message to a newer state.
func (s *screen) show(key string, m chat.Outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open[key]
	if p == nil {
		p = &printed{}
		s.open[key] = p
	}
	for _, line := range m.Progress {
		line = oneLine(line)
		if line == "" || slices.Contains(p.lines, line) || p.said(line) {
			continue
		}
		s.newLine()
		s.faint("  " + line)
		s.newLine()
	}
	p.lines = cleanLines(m.Progress)
	s.grow(key, p, clean(unescape(entryOf(m).Text)))
	if !m.Live && !p.done {
		s.newLine()
		p.done = true
	}
}

// grow prints what is new of a text. A text that does not continue the printed one
// is printed whole.
func (s *screen) grow(key string, p *printed, text string) {
	more, continues := strings.CutPrefix(text, p.text)
	p.text = text
	if !continues {
		more = text
	}
	if more == "" {
		return
	}
	if s.current != key || !continues {
		s.newLine()
		s.current = key
	}
	s.clearPrompt()
	s.write(more)
	s.column = inText
	if strings.HasSuffix(more, "\n") {
		s.column = atStart
	}
	p.done = false
}

// choices prints the numbered buttons of a message, once for each wording.
func (s *screen) choices(key, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open[key]
	if p == nil || slices.Contains(p.lines, line) {
		return
	}
	p.lines = append(p.lines, line)
	s.newLine()
	s.write("  " + line + "\n")
	s.showPrompt()
}

// notice prints a line that belongs to no message.
func (s *screen) notice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newLine()
	s.faint("  " + oneLine(text))
	s.newLine()
}

// prompt shows that it is the person's turn.
func (s *screen) prompt(show bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if show {
		s.showPrompt()
	}
}

// typed says that the person ended a line.
func (s *screen) typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty {
		s.column = atStart
	}
	s.current = ""
}

func (s *screen) showPrompt() {
	if s.tty && s.column != atPrompt {
		s.newLine()
		s.write(promptText)
		s.column = atPrompt
	}
}

func (s *screen) clearPrompt() {
	if s.column == atPrompt {
		s.write(clearLine)
		s.column = atStart
	}
}

func (s *screen) newLine() {
	s.clearPrompt()
	if s.column == inText {
		s.write("\n")
	}
	s.column = atStart
	s.current = ""
}

func (s *screen) faint(text string) {
	if s.tty {
		text = dim + text + plain
	}
	s.write(text)
	s.column = inText
}

// write gives up silently: a terminal that is gone cannot be told.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }

func cleanLines(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, oneLine(l))
	}
	return out
}
