// Package terminal is the chat of `parley chat`: one conversation with the person
// at a terminal, or with a program that pipes lines in and reads text out.
//
// What it guarantees. What the bot posts is printed first and then recorded in the
// Timeline, under its key: a record means "was shown", so that an answer which a
// crash kept from the screen is delivered again and one that was recorded is not.
// Text that grows is printed as it grows and never rewritten. No control character
// of a model reaches the terminal.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"parley/gateway/chat"
)

const (
	// Account is the one account of the terminal.
	Account chat.AccountID = "terminal/local"
	// Person is who types.
	Person chat.Person = "terminal:local"

	mainChat  chat.ChatID = "main"
	retryWait             = time.Second
	// pasteWait is how soon the next line of a paste follows on a terminal.
	pasteWait = 30 * time.Millisecond
	// followed is how many of the newest entries are looked at for what another
	// process posted.
	followed = 50
	// reofferFor bounds how old a person's entry may be to be offered again at
	// the start: it is far below the time for which the inbox knows its keys.
	reofferFor = time.Hour
)

// Deps is what the terminal needs.
type Deps struct {
	Log      *zap.Logger
	Timeline chat.Timeline
	In       io.Reader
	Out      io.Writer
	// TTY says that In and Out are a person's terminal: it gets colours, a prompt
	// and pastes as one message. Otherwise each line is a message.
	TTY bool
	// Sequential answers each line before the next one is read, the end of the
	// input included: whoever pipes lines in cannot wait for that themselves.
	Sequential bool
}

// Adapter is the terminal's side of the gateway.
type Adapter struct {
	deps      Deps
	address   chat.Address
	screen    *screen
	interrupt chan struct{}
	// settled is woken when the bot has had its last word, or asks something.
	settled chan struct{}

	mu sync.Mutex
	// busy is true from a message's acceptance until its answer is complete.
	busy bool
	// known holds the keys of entries that need not be printed any more.
	known map[string]bool
	// choices are the open buttons, by number from 1.
	choices []choice
}

// choice is a button that can be pressed by its number.
type choice struct {
	message chat.MessageID
	button  chat.Button
	pressed bool // it, or another one of its message
}

// The terminal's capabilities.
var (
	_ chat.Adapter     = (*Adapter)(nil)
	_ chat.Editor      = (*Adapter)(nil)
	_ chat.Deleter     = (*Adapter)(nil)
	_ chat.Typer       = (*Adapter)(nil)
	_ chat.ButtonAcker = (*Adapter)(nil)
	_ chat.Finder      = (*Adapter)(nil)
)

// New makes the adapter.
func New(d Deps) (*Adapter, error) {
	if d.Log == nil || d.Timeline == nil || d.In == nil || d.Out == nil {
		return nil, errors.New("terminal: Log, Timeline, In and Out are required")
	}
	return &Adapter{
		deps:      d,
		address:   chat.Address{Account: Account, Chat: mainChat},
		screen:    newScreen(d.Out, d.TTY),
		interrupt: make(chan struct{}, 1),
		settled:   make(chan struct{}, 1),
		known:     map[string]bool{},
	}, nil
}

// Account implements chat.Adapter.
func (*Adapter) Account() chat.AccountID { return Account }

// Limits implements chat.Adapter: a terminal has hardly any.
func (*Adapter) Limits() chat.Limits {
	return chat.Limits{EditInterval: 50 * time.Millisecond, TypingTTL: 5 * time.Second, OwnStop: true}
}

// Interrupt is what Ctrl-C does: while the bot is at work it stops it and returns
// true; otherwise it returns false, and the caller ends the program.
func (a *Adapter) Interrupt() bool {
	a.mu.Lock()
	busy := a.busy
	a.busy = false // a second Ctrl-C ends the program, whatever became of the first
	a.mu.Unlock()
	if !busy {
		return false
	}
	select {
	case a.interrupt <- struct{}{}:
	default:
	}
	return true
}

// Run reads what is typed until the input ends or ctx does, and returns nil in both
// cases. A read that is under way cannot be taken back: its goroutine ends with
// the input.
func (a *Adapter) Run(ctx context.Context, sink chat.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !a.again(ctx, func() error { return a.seed(ctx, sink) }) {
		return nil
	}
	var watching sync.WaitGroup
	watching.Go(func() { a.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	state := chat.ConnectionChanged{Origin: chat.Origin{Address: chat.Address{Account: Account}, At: time.Now()}, State: chat.Connected}
	a.deliver(ctx, sink, state)
	lines := a.read(ctx)
	for {
		a.screen.prompt(!a.isBusy())
		next := lines
		if a.deps.Sequential && a.awaited() {
			next = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.settled:
		case <-a.interrupt:
			a.deliver(ctx, sink, chat.StopPressed{Origin: a.origin("stop/" + string(mainChat) + "/" + uuid.NewString())})
		case line, ok := <-next:
			if !ok {
				return nil
			}
			a.screen.typed()
			a.handle(ctx, sink, a.paste(ctx, line, lines))
		}
	}
}

// read starts the one goroutine that reads the input.
func (a *Adapter) read(ctx context.Context) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		r := bufio.NewReader(a.deps.In)
		for {
			line, err := r.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// paste joins the lines that come faster than anybody types.
func (a *Adapter) paste(ctx context.Context, first string, lines <-chan string) string {
	if !a.deps.TTY || strings.HasPrefix(first, "/") {
		return first
	}
	text := first
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return text
			}
			text += "\n" + line
		case <-time.After(pasteWait):
			return text
		case <-ctx.Done():
			return text
		}
	}
}

// handle turns what was typed into an event: the number of an open choice presses
// it, anything else is a message.
func (a *Adapter) handle(ctx context.Context, sink chat.Sink, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	if c, ok := a.chosen(text); ok {
		o := a.origin("button/" + string(mainChat) + "/" + string(c.message) + "/" + uuid.NewString())
		o.Message = c.message
		a.deliver(ctx, sink, chat.ButtonPressed{Origin: o, Data: c.button.Data})
		return
	}
	key := "person/" + uuid.NewString()
	a.know(key)
	var id chat.MessageID
	if !a.again(ctx, func() (err error) {
		id, err = a.deps.Timeline.Append(ctx, a.address, chat.Entry{Key: key, From: Person, Text: text, At: time.Now()})
		return err
	}) {
		return
	}
	a.setBusy(true)
	a.deliver(ctx, sink, a.message(id, text))
}

// message is the event of an entry: its key follows from the entry, so that
// offering it again changes nothing.
func (a *Adapter) message(id chat.MessageID, text string) chat.MessageReceived {
	o := a.origin("message/" + string(mainChat) + "/" + string(id))
	o.Message = id
	return chat.MessageReceived{Origin: o, Text: text, ForBot: true}
}

// deliver gives an event to the sink until it is taken.
func (a *Adapter) deliver(ctx context.Context, sink chat.Sink, ev chat.Event) {
	a.again(ctx, func() error { return sink(ctx, ev) })
}

// again repeats f until it works; it reports false when ctx ended first. The person
// is told once.
func (a *Adapter) again(ctx context.Context, f func() error) bool {
	for told := false; ; {
		err := f()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		a.deps.Log.Warn("terminal input is not stored yet", zap.Error(err))
		if !told {
			a.screen.notice("not stored yet, trying again")
			told = true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryWait):
		}
	}
}

func (a *Adapter) origin(key string) chat.Origin {
	return chat.Origin{Key: chat.EventKey(key), Address: a.address, Kind: chat.Direct, From: chat.User{ID: Person}, At: time.Now()}
}

// chosen is the choice whose number was typed.
func (a *Adapter) chosen(text string) (choice, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(a.choices) || a.choices[n-1].message == "" {
		return choice{}, false
	}
	c := a.choices[n-1]
	for i := range a.choices {
		a.choices[i].pressed = a.choices[i].pressed || a.choices[i].message == c.message
	}
	return c, true
}

// asks says whether a message has open choices.
func (a *Adapter) asks(id chat.MessageID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.choices, func(c choice) bool { return c.message == id })
}

// offer replaces a message's choices and returns their lines with numbers. Numbers
// begin at 1 again when nothing is open.
func (a *Adapter) offer(id chat.MessageID, rows [][]chat.Button) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, c := range a.choices {
		if c.message == id {
			a.choices[i] = choice{}
		}
	}
	if !slices.ContainsFunc(a.choices, func(c choice) bool { return c.message != "" }) {
		a.choices = nil
	}
	var labels []string
	for _, row := range rows {
		for _, b := range row {
			a.choices = append(a.choices, choice{message: id, button: b})
			labels = append(labels, strconv.Itoa(len(a.choices))+") "+oneLine(b.Label))
		}
	}
	if len(labels) > 0 {
		a.wake()
	}
	return strings.Join(labels, "  ")
}

func (a *Adapter) setBusy(b bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = b
	if !b {
		a.wake()
	}
}

func (a *Adapter) wake() {
	select {
	case a.settled <- struct{}{}:
	default:
	}
}

// awaited says that the bot is at work and asks nothing.
func (a *Adapter) awaited() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy && !slices.ContainsFunc(a.choices, func(c choice) bool { return c.message != "" && !c.pressed })
}

func (a *Adapter) isBusy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy
}

// know marks a key as shown; it reports whether it was already.
func (a *Adapter) know(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.known[key]
	a.known[key] = true
	return was
}
