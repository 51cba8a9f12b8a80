// Package gatewaytest runs a whole gateway in one process for tests: a platform
// in memory that behaves like a real one, a model that answers from a function,
// and the real store on a real PostgreSQL.
package gatewaytest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/gateway/chat"
)

// waitLimit is how long a test waits for something to happen.
const waitLimit = time.Minute

// Post is a message of the bot as the platform shows it.
type Post struct {
	ID      chat.MessageID
	Chat    chat.ChatID
	Out     chat.Outgoing
	Edits   int
	Deleted bool
}

// Platform is an adapter whose platform is in memory. It is safe for concurrent
// use.
type Platform struct {
	account chat.AccountID
	limits  chat.Limits

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at each change
	sink      chat.Sink
	connected chan struct{}
	posts     []*Post
	reactions map[chat.MessageID][]chat.Reaction
	acks      []string
	typing    int
	said      func(before chat.MessageID) ([]chat.Quote, error)
	open      func(f chat.File) (io.ReadCloser, error)
	next      int
	// fail is asked before each call; a non-nil error is returned instead.
	fail func(op string, m chat.Outgoing) error
	// after is asked once a call has taken effect.
	after func(op string, m chat.Outgoing) error
}

// NewPlatform makes a platform.
func NewPlatform(l chat.Limits) *Platform {
	return &Platform{account: "test/main", limits: l, changed: make(chan struct{}), connected: make(chan struct{}), reactions: map[chat.MessageID][]chat.Reaction{}}
}

// Fail sets what each call is answered with before it takes effect, and After
// what it is answered with although it has (an unknown outcome).
func (p *Platform) Fail(f func(op string, m chat.Outgoing) error) {
	p.mu.Lock()
	p.fail = f
	p.mu.Unlock()
}

// After sets what a call is answered with although it took effect.
func (p *Platform) After(f func(op string, m chat.Outgoing) error) {
	p.mu.Lock()
	p.after = f
	p.mu.Unlock()
}

// Account implements chat.Adapter.
func (p *Platform) Account() chat.AccountID { return p.account }

// Limits implements chat.Adapter.
func (p *Platform) Limits() chat.Limits { return p.limits }

// Run implements chat.Adapter.
func (p *Platform) Run(ctx context.Context, sink chat.Sink) error {
	p.mu.Lock()
	p.sink = sink
	select {
	case <-p.connected:
	default:
		close(p.connected)
	}
	p.mu.Unlock()
	if err := sink(ctx, chat.ConnectionChanged{State: chat.Connected}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Send implements chat.Adapter.
func (p *Platform) Send(_ context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ask(p.fail, "send", m); err != nil {
		return "", err
	}
	p.next++
	post := &Post{ID: chat.MessageID(fmt.Sprintf("b%d", p.next)), Chat: to.Chat, Out: m}
	p.posts = append(p.posts, post)
	p.touch()
	return post.ID, p.ask(p.after, "send", m)
}

// Edit implements chat.Editor.
func (p *Platform) Edit(_ context.Context, _ chat.Address, id chat.MessageID, m chat.Outgoing) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ask(p.fail, "edit", m); err != nil {
		return err
	}
	for _, post := range p.posts {
		if post.ID == id && !post.Deleted {
			post.Out, post.Edits = m, post.Edits+1
			p.touch()
			return p.ask(p.after, "edit", m)
		}
	}
	return chat.ErrGone
}

// Delete implements chat.Deleter.
func (p *Platform) Delete(_ context.Context, _ chat.Address, id chat.MessageID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, post := range p.posts {
		if post.ID == id {
			post.Deleted = true
		}
	}
	p.touch()
	return nil
}

// React implements chat.Reactor.
func (p *Platform) React(_ context.Context, _ chat.Address, id chat.MessageID, r chat.Reaction) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reactions[id] = append(p.reactions[id], r)
	p.touch()
	return nil
}

// Said sets what people said before a message.
func (p *Platform) Said(f func(before chat.MessageID) ([]chat.Quote, error)) {
	p.mu.Lock()
	p.said = f
	p.mu.Unlock()
}

// History implements chat.HistoryReader.
func (p *Platform) History(_ context.Context, _ chat.Address, before chat.MessageID, _ int) ([]chat.Quote, error) {
	p.mu.Lock()
	f := p.said
	p.mu.Unlock()
	if f == nil {
		return nil, nil
	}
	return f(before)
}

// Hold sets what an attached file is.
func (p *Platform) Hold(open func(f chat.File) (io.ReadCloser, error)) {
	p.mu.Lock()
	p.open = open
	p.mu.Unlock()
}

// OpenFile implements chat.FileOpener.
func (p *Platform) OpenFile(_ context.Context, f chat.File) (io.ReadCloser, error) {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	if open == nil {
		return nil, chat.ErrGone
	}
	return open(f)
}

// AckButton implements chat.ButtonAcker.
func (p *Platform) AckButton(_ context.Context, _ chat.ButtonPressed, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ask(p.fail, "ack", chat.Outgoing{Text: text}); err != nil {
		return err
	}
	p.acks = append(p.acks, text)
	p.touch()
	return nil
}

// Typing implements chat.Typer; the gateway uses it where Limits.TypingTTL is set.
func (p *Platform) Typing(context.Context, chat.Address) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typing++
	p.touch()
	return p.ask(p.fail, "typing", chat.Outgoing{})
}

// Typings returns how many typing notices there were.
func (p *Platform) Typings() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.typing
}

func (p *Platform) ask(f func(string, chat.Outgoing) error, op string, m chat.Outgoing) error {
	if f == nil {
		return nil
	}
	return f(op, m)
}

func (p *Platform) touch() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Deliver hands an event to the gateway, as the platform would.
func (p *Platform) Deliver(ctx context.Context, ev chat.Event) error {
	select {
	case <-p.connected:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	sink := p.sink
	p.mu.Unlock()
	return sink(ctx, ev)
}

// Posts returns what a chat shows of the bot, in order; "" for all chats.
func (p *Platform) Posts(of chat.ChatID) []Post {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ps []Post
	for _, post := range p.posts {
		if !post.Deleted && (of == "" || post.Chat == of) {
			ps = append(ps, *post)
		}
	}
	return ps
}

// Await waits until a chat has posts and they satisfy ok, and returns them.
func (p *Platform) Await(t testing.TB, of chat.ChatID, what string, ok func([]Post) bool) (ps []Post) {
	t.Helper()
	p.await(t, of, what, func() bool {
		ps = p.Posts(of)
		return len(ps) > 0 && ok(ps)
	})
	return ps
}

func (p *Platform) await(t testing.TB, of chat.ChatID, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(waitLimit)
	defer limit.Stop()
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("%s: did not happen; the chat shows:\n%s", what, show(p.Posts(of)))
		}
	}
}

// AwaitReaction waits for a reaction on a person's message.
func (p *Platform) AwaitReaction(t testing.TB, id chat.MessageID, r chat.Reaction) {
	t.Helper()
	p.await(t, "", "reaction "+string(r), func() bool {
		rs := p.Reactions(id)
		return len(rs) > 0 && rs[len(rs)-1] == r
	})
}

// Reactions returns every reaction that was set on a person's message, in order.
func (p *Platform) Reactions(id chat.MessageID) []chat.Reaction {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reactions[id])
}

// Acks returns the notices that button presses were answered with.
func (p *Platform) Acks() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.acks)
}

func show(ps []Post) string {
	s := ""
	for _, p := range ps {
		s += fmt.Sprintf("  [%s live=%v] %q %q\n", p.ID, p.Out.Live, p.Out.Progress, p.Out.Text)
	}
	return s
}
