package terminal_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"parley/adapters/terminal"
	"parley/gateway/chat"
	"parley/store/storetest"
)

func TestMain(m *testing.M) {
	// The databases' server outlives the tests.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("parley/store.(*Private).watchOver"))
}

var address = chat.Address{Account: terminal.Account, Chat: "main"}

// paper is an output whose content can be waited for.
type paper struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newPaper() *paper { return &paper{changed: make(chan struct{})} }

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.text.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits for a text to be printed.
func (p *paper) until(t *testing.T, want string) {
	t.Helper()
	for {
		p.mu.Lock()
		have, changed := p.text.String(), p.changed
		p.mu.Unlock()
		if strings.Contains(have, want) {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("%q was not printed: %q", want, have)
		}
	}
}

// away is a timeline that can refuse to write.
type away struct {
	chat.Timeline
	mu  sync.Mutex
	err error
}

func (a *away) set(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *away) Append(ctx context.Context, to chat.Address, e chat.Entry) (chat.MessageID, error) {
	a.mu.Lock()
	err := a.err
	a.mu.Unlock()
	if err != nil {
		return "", err
	}
	return a.Timeline.Append(ctx, to, e)
}

// fixture is a terminal somebody sits at.
type fixture struct {
	*terminal.Adapter
	t      *testing.T
	out    *paper
	keys   *io.PipeWriter
	events chan chat.Event
	ended  chan error
	stop   context.CancelFunc
}

func start(t *testing.T, tl chat.Timeline, tty bool) *fixture {
	t.Helper()
	return open(t, terminal.Deps{Timeline: tl, TTY: tty})
}

func open(t *testing.T, d terminal.Deps) *fixture {
	t.Helper()
	in, keys := io.Pipe()
	f := &fixture{t: t, out: newPaper(), keys: keys, events: make(chan chat.Event, 20), ended: make(chan error, 1)}
	d.Log, d.In, d.Out = zap.NewNop(), in, f.out
	var err error
	f.Adapter, err = terminal.New(d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	connected := make(chan struct{})
	go func() {
		f.ended <- f.Run(ctx, func(_ context.Context, ev chat.Event) error {
			if _, ok := ev.(chat.ConnectionChanged); ok {
				close(connected)
				return nil
			}
			f.events <- ev
			return nil
		})
		close(f.ended)
	}()
	t.Cleanup(func() {
		cancel()
		_ = keys.Close()
		for err := range f.ended {
			if err != nil {
				t.Error(err)
			}
		}
	})
	<-connected
	return f
}

func (f *fixture) write(s string) {
	f.t.Helper()
	if _, err := io.WriteString(f.keys, s); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) send(m chat.Outgoing) chat.MessageID {
	f.t.Helper()
	id, err := f.Send(f.t.Context(), address, m)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) edit(id chat.MessageID, m chat.Outgoing) {
	f.t.Helper()
	if err := f.Edit(f.t.Context(), address, id, m); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) want(text string) {
	f.t.Helper()
	if got := f.out.String(); got != text {
		f.t.Errorf("printed %q\nwant    %q", got, text)
	}
}

func TestLinesBecomeMessages(t *testing.T) {
	f := start(t, storetest.New(t).Timeline(), false)
	f.write("hello there\n\n/status\nno newline")
	_ = f.keys.Close()
	for _, want := range []string{"hello there", "/status", "no newline"} {
		ev := (<-f.events).(chat.MessageReceived)
		if ev.Text != want || !ev.ForBot || ev.Kind != chat.Direct || ev.From.ID != "terminal:local" || ev.Address != address || ev.Message == "" {
			t.Errorf("event %+v, want %q", ev, want)
		}
	}
	if err := <-f.ended; err != nil {
		t.Errorf("the end of the input: %v", err)
	}
	f.want("")
}

// Live text is printed as it grows, progress once, and the final text is completed
// in place (STR-004, STR-012); the same edit again prints nothing (STR-005).
func TestTextIsPrintedAsItGrows(t *testing.T) {
	f := start(t, storetest.New(t).Timeline(), false)
	id := f.send(chat.Outgoing{Key: "a", Live: true})
	for _, m := range []chat.Outgoing{
		{Key: "a", Live: true, Text: "Let me check."},
		{Key: "a", Live: true, Progress: []string{"💬 Let me check.", "⚙ ls"}},
		{Key: "a", Live: true, Progress: []string{"💬 Let me check.", "⚙ ls"}, Text: "Two"},
		{Key: "a", Live: true, Progress: []string{"💬 Let me check.", "⚙ ls"}, Text: "Two fi"},
		{Key: "a", Text: "Two files."},
		{Key: "a", Text: "Two files."},
	} {
		f.edit(id, m)
	}
	f.want("Let me check.\n  ⚙ ls\nTwo files.\n")
}

func TestReplacedTextIsPrintedAnew(t *testing.T) {
	f := start(t, storetest.New(t).Timeline(), false)
	id := f.send(chat.Outgoing{Key: "a", Live: true, Text: "First tr"})
	f.edit(id, chat.Outgoing{Key: "a", Live: true, Text: "Second"})
	notice := f.send(chat.Outgoing{Key: "b", Text: "A notice."})
	f.edit(id, chat.Outgoing{Key: "a", Text: "Second try."})
	f.want("First tr\nSecond\nA notice.\n try.\n")
	if notice == id {
		t.Error("two messages have one id")
	}
}

// A message is recorded after it was printed: what was not recorded is sent again
// and printed again by the next process, what was recorded is found (DEL-004).
func TestRecordFollowsPrint(t *testing.T) {
	tl := &away{Timeline: storetest.New(t).Timeline()}
	f := start(t, tl, false)
	tl.set(errors.New("the database is away"))
	if _, err := f.Send(t.Context(), address, chat.Outgoing{Key: "a", Text: "answer"}); err == nil {
		t.Error("a message that is not recorded counts as sent")
	}
	if _, ok, err := f.Find(t.Context(), address, chat.Attempt{Key: "a"}); ok || err != nil {
		t.Errorf("found %v, %v", ok, err)
	}
	tl.set(nil)
	id := f.send(chat.Outgoing{Key: "a", Text: "answer"})
	if again := f.send(chat.Outgoing{Key: "a", Text: "answer"}); again != id {
		t.Errorf("ids %s and %s", id, again)
	}
	f.want("answer\n")
	if got, ok, err := f.Find(t.Context(), address, chat.Attempt{Key: "a"}); got != id || !ok || err != nil {
		t.Errorf("found %s %v, %v", got, ok, err)
	}
}

// What a crash kept from the screen comes with the next start (RST-001): the bot's
// text by delivering it again, the person's message by offering it again.
func TestNextStartTakesUp(t *testing.T) {
	tl := storetest.New(t).Timeline()
	first := start(t, tl, false)
	first.write("question\n")
	key := (<-first.events).Meta().Key
	id := first.send(chat.Outgoing{Key: "a", Live: true, Text: "half an"})
	first.stop()
	_ = first.keys.Close()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
	second := start(t, tl, false)
	if ev := (<-second.events).(chat.MessageReceived); ev.Key != key || ev.Text != "question" {
		t.Errorf("offered %+v", ev)
	}
	second.edit(id, chat.Outgoing{Key: "a", Text: "half an answer"})
	second.want("half an answer\n")
}

func TestOtherProcessesPostsAreShown(t *testing.T) {
	tl := storetest.New(t).Timeline()
	old := start(t, tl, false)
	old.send(chat.Outgoing{Key: "old", Text: "shown before"})
	a, b := start(t, tl, false), start(t, tl, false)
	b.write("asked at b\n")
	<-b.events
	a.out.until(t, "you, elsewhere: asked at b\n")
	id := a.send(chat.Outgoing{Key: "x", Live: true, Text: "answ"})
	a.edit(id, chat.Outgoing{Key: "x", Text: "answered by a", Buttons: [][]chat.Button{{{Label: "More", Data: "m"}}}})
	b.out.until(t, "answered by a\n  1) More\n")
	b.want("answered by a\n  1) More\n")
	b.write("1\n")
	if ev := (<-b.events).(chat.ButtonPressed); ev.Data != "m" || ev.Message != id {
		t.Errorf("event %+v", ev)
	}
}

func TestButtonsAreNumbers(t *testing.T) {
	f := start(t, storetest.New(t).Timeline(), false)
	card := func(key string) chat.Outgoing {
		return chat.Outgoing{Key: key, Text: "May I?", Buttons: [][]chat.Button{{{Label: "Allow", Data: key + "-yes"}}, {{Label: "Deny\x1b[2J", Data: key + "-no"}}}}
	}
	one, two := f.send(card("one")), f.send(card("two"))
	f.want("May I?\n  1) Allow  2) Deny\nMay I?\n  3) Allow  4) Deny\n")
	for _, tc := range []struct {
		typed, data string
		message     chat.MessageID
	}{{"2", "one-no", one}, {" 3 ", "two-yes", two}} {
		f.write(tc.typed + "\n")
		if ev := (<-f.events).(chat.ButtonPressed); ev.Data != tc.data || ev.Message != tc.message || ev.Key == "" {
			t.Errorf("%q: event %+v", tc.typed, ev)
		}
	}
	f.edit(one, chat.Outgoing{Key: "one", Text: "Denied."})
	for _, typed := range []string{"1", "5", "0", "3 times"} {
		f.write(typed + "\n")
		if ev, ok := (<-f.events).(chat.MessageReceived); !ok || ev.Text != typed {
			t.Errorf("%q is not a message", typed)
		}
	}
	f.edit(two, chat.Outgoing{Key: "two", Text: "Allowed."})
	f.send(card("three"))
	f.out.until(t, "Allowed.\nMay I?\n  1) Allow  2) Deny\n")
}

func TestInterruptStopsOnlyWork(t *testing.T) {
	f := start(t, storetest.New(t).Timeline(), false)
	if f.Interrupt() {
		t.Error("nothing was under way")
	}
	f.write("work\n")
	<-f.events
	id := f.send(chat.Outgoing{Key: "a", Live: true, Text: "working"})
	if !f.Interrupt() {
		t.Error("a turn was under way")
	}
	if _, ok := (<-f.events).(chat.StopPressed); !ok {
		t.Error("no stop event")
	}
	if f.Interrupt() {
		t.Error("the second interrupt does not end the program")
	}
	f.edit(id, chat.Outgoing{Key: "a", Live: true, Text: "working on"})
	f.send(chat.Outgoing{Key: "card", Text: "May I?", Buttons: [][]chat.Button{{{Label: "Yes", Data: "y"}}}})
	if !f.Interrupt() {
		t.Error("a question ended the turn")
	}
	<-f.events
	f.edit(id, chat.Outgoing{Key: "a", Text: "working on. Done."})
	if f.Interrupt() {
		t.Error("the turn was over")
	}
	if err := f.Typing(t.Context(), address); err != nil || !f.Interrupt() {
		t.Errorf("typing is no work: %v", err)
	}
	<-f.events
}

// Whoever pipes lines in gets an answer to each before the next is read; a question
// is answered by the next line, and the end of the input waits for the last answer.
func TestSequentialLinesWaitForTheirAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, terminal.Deps{Timeline: memory{}, Sequential: true})
		go func() {
			_, _ = io.WriteString(f.keys, "one\n1\ntwo\n")
			_ = f.keys.Close()
		}()
		quiet := func() {
			t.Helper()
			synctest.Wait()
			if n := len(f.events); n > 0 {
				t.Errorf("%d events came before the answer", n)
			}
		}
		<-f.events
		quiet()
		live := f.send(chat.Outgoing{Key: "a", Live: true, Text: "Thinking"})
		quiet()
		card := f.send(chat.Outgoing{Key: "card", Text: "May I?", Buttons: [][]chat.Button{{{Label: "Yes", Data: "y"}}}})
		if ev, ok := (<-f.events).(chat.ButtonPressed); !ok || ev.Message != card {
			t.Errorf("event %+v", ev)
		}
		f.edit(card, chat.Outgoing{Key: "card", Text: "Allowed."})
		quiet()
		f.edit(live, chat.Outgoing{Key: "a", Text: "Thinking is done."})
		if ev, ok := (<-f.events).(chat.MessageReceived); !ok || ev.Text != "two" {
			t.Errorf("event %+v", ev)
		}
		quiet()
		select {
		case <-f.ended:
			t.Error("the end of the input did not wait")
		default:
		}
		f.send(chat.Outgoing{Key: "b", Text: "Second."})
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestTerminalHasPromptAndColours(t *testing.T) {
	f := start(t, storetest.New(t).Timeline(), true)
	f.out.until(t, "› ")
	f.write("hi\n")
	<-f.events
	id := f.send(chat.Outgoing{Key: "a", Live: true, Progress: []string{"⚙ ls"}})
	f.edit(id, chat.Outgoing{Key: "a", Live: true, Text: "An"})
	f.edit(id, chat.Outgoing{Key: "a", Text: "Answer"})
	f.send(chat.Outgoing{Key: "b", Text: "Late."})
	f.want("› \x1b[2m  ⚙ ls\x1b[0m\nAnswer\n› \r\x1b[KLate.\n› ")
	if err := f.AckButton(t.Context(), chat.ButtonPressed{}, "Too late"); err != nil {
		t.Error(err)
	}
	f.out.until(t, "\r\x1b[K\x1b[2m  Too late\x1b[0m\n")
}

// memory is the least timeline: it knows no other process.
type memory struct{ chat.Timeline }

func (memory) Append(_ context.Context, _ chat.Address, e chat.Entry) (chat.MessageID, error) {
	return chat.MessageID(e.Key), nil
}
func (memory) Replace(context.Context, chat.Address, chat.MessageID, chat.Entry) error { return nil }
func (memory) List(context.Context, chat.Address, int) ([]chat.Entry, error)           { return nil, nil }
func (memory) Watch(ctx context.Context, _ chat.Address, _ func()) error               { <-ctx.Done(); return nil }

// A paste comes line by line; on a terminal it is one message.
func TestPasteIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, memory{}, true)
		f.write("func main() {\n\tprintln()\n}\n")
		if got := (<-f.events).(chat.MessageReceived).Text; got != "func main() {\n\tprintln()\n}" {
			t.Errorf("got %q", got)
		}
		f.write("one\n")
		<-time.After(time.Second) // the bubble's clock
		f.write("two\n")
		f.write("/stop\n")
		for _, want := range []string{"one", "two\n/stop"} {
			if got := (<-f.events).(chat.MessageReceived).Text; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// Input that cannot be stored is kept and the person is told once.
func TestInputWaitsForTheTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := &away{Timeline: memory{}}
		tl.set(errors.New("the database is away"))
		f := start(t, tl, false)
		f.write("keep me\n")
		<-time.After(time.Minute)
		f.want("  not stored yet, trying again\n")
		tl.set(nil)
		if got := (<-f.events).(chat.MessageReceived).Text; got != "keep me" {
			t.Errorf("got %q", got)
		}
	})
}
