// Package web is the chat page that parley serves itself: one conversation with
// the person at this machine, in a browser.
//
// What it guarantees. A message is answered with 202 once it is durable and
// never before; the page keeps it until then and sends it again under the same id,
// which counts once. What the bot posts is an entry of the Timeline, so that
// every tab, every replica and every restart shows the same transcript; only the
// text of a message that is still being written lives in memory. No text of a
// model or a person becomes markup: the server renders Markdown into a fixed set
// of tags. Every request needs the cookie that the printed URL sets, and passes
// the guard against foreign pages.
package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"parley/config/secret"
	"parley/gateway/chat"
)

const (
	// Account is the one account of the page.
	Account chat.AccountID = "web/main"
	// Person is who writes on the page: whoever holds the cookie.
	Person chat.Person = "web:local"

	mainChat chat.ChatID = "main"
	// shown is how many of the newest entries the page shows.
	shown = 200
	// sessionsShown is how many sessions the page lists.
	sessionsShown = 100
	// reofferFor bounds how old a person's entry may be to be offered again at
	// the start: it is far below the time for which the inbox knows its keys.
	reofferFor = time.Hour
	retryWait  = 2 * time.Second
)

// Deps is what the page needs.
type Deps struct {
	Log       *zap.Logger
	Timeline  chat.Timeline
	Directory chat.Directory
	// Token is the secret of the printed URL ("/?token=…"). The cookie is derived
	// from it, so that it outlives a restart if the token does.
	Token secret.String
	// Guard refuses requests with a foreign Host or Origin; it is put before every
	// route.
	Guard func(http.Handler) http.Handler
}

// Adapter is the page's side of the gateway.
type Adapter struct {
	deps    Deps
	log     *zap.Logger
	address chat.Address
	room    *room
	access  access
	page    *page
	// loading holds a token while the Timeline is read: reads are merged in the
	// order in which they were made.
	loading chan struct{}
	// sink is nil while Run is not active: events are refused then.
	sink atomic.Pointer[chat.Sink]
}

// The page's capabilities.
var (
	_ chat.Adapter          = (*Adapter)(nil)
	_ chat.Editor           = (*Adapter)(nil)
	_ chat.Deleter          = (*Adapter)(nil)
	_ chat.Typer            = (*Adapter)(nil)
	_ chat.ButtonAcker      = (*Adapter)(nil)
	_ chat.Finder           = (*Adapter)(nil)
	_ chat.CommandPublisher = (*Adapter)(nil)
	_ chat.Handlers         = (*Adapter)(nil)
)

// New makes the adapter.
func New(_ Config, d Deps) (*Adapter, error) {
	if d.Log == nil || d.Timeline == nil || d.Directory == nil || d.Guard == nil || d.Token.Empty() {
		return nil, errors.New("web: Log, Timeline, Directory, Guard and Token are required")
	}
	p, err := newPage()
	if err != nil {
		return nil, err
	}
	html := newRenderer()
	return &Adapter{
		deps:    d,
		log:     d.Log,
		address: chat.Address{Account: Account, Chat: mainChat},
		room:    newRoom(rand.Text(), func(text string) string { return render(html, text) }),
		access:  newAccess(d.Token),
		page:    p,
		loading: make(chan struct{}, 1),
	}, nil
}

// Account implements chat.Adapter.
func (*Adapter) Account() chat.AccountID { return Account }

// Limits implements chat.Adapter. A page bears long texts and quick edits.
func (*Adapter) Limits() chat.Limits {
	return chat.Limits{Text: 100_000, EditInterval: 80 * time.Millisecond, TypingTTL: 5 * time.Second, Buttons: 100, ButtonsPerRow: 8, OwnStop: true}
}

// StartPath is the path and query of the URL to print: opening it signs the
// browser in. It holds the token.
func (a *Adapter) StartPath() string { return "?token=" + a.deps.Token.Reveal() }

// Run takes in what the page sends until ctx ends and follows what other
// replicas post. Requests are served before and after, but events are refused.
func (a *Adapter) Run(ctx context.Context, sink chat.Sink) error {
	a.sink.Store(&sink)
	defer a.sink.Store(nil)
	for {
		err := a.follow(ctx, sink)
		if ctx.Err() != nil {
			return nil
		}
		reason := "the timeline's watch ended"
		if err != nil {
			reason = err.Error()
		}
		a.log.Warn("web chat lost its timeline and tries again", zap.String("reason", reason))
		a.report(ctx, sink, chat.Reconnecting, reason)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryWait):
		}
	}
}

// follow offers what a crash may have kept from the sink and then watches.
func (a *Adapter) follow(ctx context.Context, sink chat.Sink) error {
	if err := a.offerAgain(ctx, sink); err != nil {
		return err
	}
	if err := a.refresh(ctx); err != nil {
		return err
	}
	a.report(ctx, sink, chat.Connected, "")
	return a.deps.Timeline.Watch(ctx, a.address, func() {
		if err := a.refresh(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("web chat could not read its timeline", zap.Error(err))
		}
	})
}

// offerAgain gives the sink the person's latest entries once more. An entry is
// appended before its event, so that a crash between the two leaves a message
// that nobody answers; the inbox knows the others by their keys.
func (a *Adapter) offerAgain(ctx context.Context, sink chat.Sink) error {
	list, err := a.deps.Timeline.List(ctx, a.address, shown)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.From == "" || time.Since(e.At) > reofferFor {
			continue
		}
		if err := sink(ctx, a.message(e.ID, e.Text, e.At)); err != nil {
			return err
		}
	}
	return nil
}

func (a *Adapter) report(ctx context.Context, sink chat.Sink, state chat.ConnectionState, reason string) {
	ev := chat.ConnectionChanged{Origin: chat.Origin{Address: chat.Address{Account: Account}, At: time.Now()}, State: state, Reason: reason}
	if err := sink(ctx, ev); err != nil && ctx.Err() == nil {
		a.log.Warn("web chat could not report its state", zap.Error(err))
	}
}

// refresh merges the Timeline's truth into the room.
func (a *Adapter) refresh(ctx context.Context) error {
	select {
	case a.loading <- struct{}{}:
		defer func() { <-a.loading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	list, err := a.deps.Timeline.List(ctx, a.address, shown)
	if err != nil {
		return err
	}
	a.room.merge(list)
	return nil
}
