// Package discord is the adapter for Discord, on the library discordgo under a
// supervisor of its own.
//
// It guarantees: events reach the sink in order, each again until it is durable; a
// lost connection is resumed, and what a lost session or a restart has missed is
// fetched; half-open sockets end; a refused token or intent ends the adapter with the
// exact next step; nothing that a model writes mentions anybody; a message is
// created once within the minutes for which Discord remembers a nonce; no error and
// no log line contains the token.
package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/zap"

	"parley/gateway/chat"
)

// Deps is what an adapter works with.
type Deps struct {
	Log *zap.Logger
	// Heard is the store; nil: nothing that was missed is fetched.
	Heard Heard
	// People are those whom the configuration names; what they wrote in direct chats is
	// fetched too. At most the first 50 are looked at.
	People []chat.Person
	// Transport makes the requests; nil: one with fitting limits.
	Transport http.RoundTripper
	// Idle is how long the gateway may be silent; 0: 90 s, two heartbeats.
	Idle time.Duration
	// Heal is the first wait after an error, which grows to 32 times that; 0: 1 s.
	Heal time.Duration
	// Gather is how long a new session waits for its guilds; 0: 10 s.
	Gather time.Duration
}

// Adapter is one bot account. It is safe for concurrent use.
type Adapter struct {
	cfg       Config
	account   chat.AccountID
	api       *client
	transport http.RoundTripper
	log       *zap.Logger
	heard     Heard
	people    []chat.Person
	now       func() time.Time
	idle      time.Duration
	heal      time.Duration
	gather    time.Duration
	ackAfter  time.Duration // how long a press waits for somebody to say something

	places places
	recent recent
	inter  interactions
	blind  sync.Once // said that messages come without their text

	mu  sync.Mutex
	who user
	app string
}

var (
	_ chat.Adapter          = (*Adapter)(nil)
	_ chat.Editor           = (*Adapter)(nil)
	_ chat.Deleter          = (*Adapter)(nil)
	_ chat.Typer            = (*Adapter)(nil)
	_ chat.Reactor          = (*Adapter)(nil)
	_ chat.ButtonAcker      = (*Adapter)(nil)
	_ chat.FileOpener       = (*Adapter)(nil)
	_ chat.CommandPublisher = (*Adapter)(nil)
	_ chat.Finder           = (*Adapter)(nil)
	_ chat.Prober           = (*Adapter)(nil)
	_ chat.Threader         = (*Adapter)(nil)
	_ chat.Titler           = (*Adapter)(nil)
	_ chat.HistoryReader    = (*Adapter)(nil)
)

// New makes an adapter. It does not use the network.
func New(cfg Config, deps Deps) (*Adapter, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	or := func(d, def time.Duration) time.Duration {
		if d == 0 {
			return def
		}
		return d
	}
	if deps.Transport == nil {
		deps.Transport = newTransport()
	}
	api, err := newClient(cfg.APIBase, cfg.Token, deps.Transport)
	if err != nil {
		return nil, err
	}
	const mostPeople = 50
	var people []chat.Person
	for _, p := range deps.People {
		if _, err := strconv.ParseUint(strings.TrimPrefix(string(p), "discord:"), 10, 64); err == nil && len(people) < mostPeople {
			people = append(people, p)
		}
	}
	return &Adapter{
		cfg: cfg, account: chat.AccountID("discord/" + cfg.Name), api: api, transport: deps.Transport, log: deps.Log, heard: deps.Heard, people: people, now: time.Now,
		idle: or(deps.Idle, 90*time.Second), heal: or(deps.Heal, time.Second), gather: or(deps.Gather, 10*time.Second), ackAfter: firstAnswer - 500*time.Millisecond,
		places: newPlaces(), inter: newInteractions(),
	}, nil
}

// Account implements chat.Adapter.
func (a *Adapter) Account() chat.AccountID { return a.account }

// Limits implements chat.Adapter.
func (a *Adapter) Limits() chat.Limits { return limits }

// Run implements chat.Adapter. Each run is a session of its own: what an earlier one
// had received and not stored is fetched again.
func (a *Adapter) Run(ctx context.Context, sink chat.Sink) error {
	began := a.now()
	a.tell(ctx, sink, chat.Connecting, "")
	intents, err := a.intents(ctx, sink)
	if err != nil || ctx.Err() != nil {
		return err
	}
	gw, err := newClient(a.cfg.APIBase, a.cfg.Token, a.transport)
	if err != nil {
		return err
	}
	gw.running.Store(&ctx)
	gw.session.Identify.Intents = intents
	gw.session.Identify.Compress = false // each event by itself: it costs more than it saves
	in := &intake{a: a, sink: sink, queue: newQueue(), gather: a.gather, began: began}
	l := &connection{session: gw.session, idle: a.idle, deliver: in.queue.push, lost: a.lost(sink, gw.session)}
	inner, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { in.run(inner) })
	err = l.run(ctx)
	cancel()
	tasks.Wait()
	return err
}

// lost judges why the gateway was lost: some reasons are for good. An intent that
// was switched off while parley runs is done without.
func (a *Adapter) lost(sink chat.Sink, s *discordgo.Session) func(context.Context, error) error {
	last := ""
	return func(ctx context.Context, err error) error {
		if closedWith(err) == closeDisallowedIntents && s.Identify.Intents&discordgo.IntentMessageContent != 0 {
			a.log.Warn("the message content intent is off: in servers only mentions can be read", zap.String("fix", contentFix))
			s.Identify.Intents &^= discordgo.IntentMessageContent
			return nil
		}
		if cred := a.credential(err); cred != nil {
			return cred
		}
		reason := "the connection to the gateway broke"
		if err != nil {
			reason = err.Error()
		}
		if reason != last || err == nil {
			last = reason
			a.tell(ctx, sink, chat.Reconnecting, reason)
		}
		return nil
	}
}

// leastIntents need nobody's permission.
const leastIntents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentDirectMessages

// contentFix is how the message content intent is switched on.
const contentFix = "Open " + portal + " → your application → Bot → Privileged Gateway Intents, switch Message Content Intent on, and restart parley"

// application is the bot's own entry in the developer portal.
type application struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Flags  int    `json:"flags"`
	Public bool   `json:"bot_public"`
	Bot    user   `json:"bot"`
}

// readsContent says that the portal allows the message content intent.
func (p application) readsContent() bool { return p.Flags&(1<<18|1<<19) != 0 }

// intents asks what the bot may see, until Discord answers.
func (a *Adapter) intents(ctx context.Context, sink chat.Sink) (discordgo.Intent, error) {
	for try := 0; ctx.Err() == nil; try++ {
		app, err := call[application](ctx, a.api, http.MethodGet, "/applications/@me", nil)
		if err == nil {
			a.introduce(app.Bot, app.ID)
			if app.readsContent() {
				return leastIntents | discordgo.IntentMessageContent, nil
			}
			a.log.Warn("the message content intent is off: in servers only mentions can be read", zap.String("fix", contentFix))
			return leastIntents, nil
		}
		if cred := a.credential(err); cred != nil {
			return 0, cred
		}
		if ctx.Err() == nil && try == 0 {
			a.tell(ctx, sink, chat.Reconnecting, err.Error())
		}
		wait(ctx, a.heal<<min(try, 5), err)
	}
	return 0, nil
}

// introduce notes who the bot is.
func (a *Adapter) introduce(u user, app string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.ID != "" {
		a.who = u
	}
	if app != "" {
		a.app = app
	}
}

// self is who the bot is, as far as known.
func (a *Adapter) self() user {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.who
}

// identity asks who the bot is, once.
func (a *Adapter) identity(ctx context.Context) (app string, err error) {
	a.mu.Lock()
	app = a.app
	a.mu.Unlock()
	if app != "" {
		return app, nil
	}
	got, err := call[application](ctx, a.api, http.MethodGet, "/applications/@me", nil)
	if err != nil {
		return "", err
	}
	a.introduce(got.Bot, got.ID)
	return got.ID, nil
}

// tell reports the link to the gateway of parley.
func (a *Adapter) tell(ctx context.Context, sink chat.Sink, s chat.ConnectionState, reason string) {
	ev := chat.ConnectionChanged{Origin: chat.Origin{Address: chat.Address{Account: a.account}, At: a.now()}, State: s, Reason: reason}
	if err := sink(ctx, ev); err != nil {
		a.log.Debug("connection state", zap.Error(fmt.Errorf("%s: %w", s, err)))
	}
}
