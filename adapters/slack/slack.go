// Package slack is the adapter for Slack, on the library slack-go/slack: Socket
// Mode under its own supervision, or the Events API over HTTP.
//
// An event is stored before its envelope is acknowledged, whatever brought it, and
// its key is made of the message, so that redeliveries and the two events of one
// mention are one. In channels a thread is a conversation. While an answer is
// written it is a native stream where Slack allows one, and edits where it does not
// or no longer does; the gateway sees neither. Nothing that the bot says calls
// people. No error and no log line contains a token.
package slack

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	lib "github.com/slack-go/slack"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

// Deps is what an adapter works with.
type Deps struct {
	Log *zap.Logger
	// HTTP makes the requests; nil: one with fitting time limits.
	HTTP *http.Client
	// Commands are offered as slash commands by the app's manifest.
	Commands []chat.CommandInfo
	// PublicURL is where Slack reaches parley, for the manifest in mode events.
	PublicURL string
	// NoStreams switches native streaming off.
	NoStreams bool
	// Heal is the first wait after an error, which grows to 30 times that; 0: 1 s.
	Heal time.Duration
	// Silence is how long a socket may be without a ping; 0: 30 s.
	Silence time.Duration
}

// Adapter is one app in one workspace. It is safe for concurrent use.
type Adapter struct {
	cfg     Config
	deps    Deps
	account chat.AccountID
	api     *client
	log     *zap.Logger
	people  *people
	streams *streams
	marks   *marks
	uploads *uploads

	mu   sync.Mutex
	self *lib.AuthTestResponse // known after auth.test

	// door guards the way in over HTTP: requests hold it for reading.
	door    sync.RWMutex
	sink    chat.Sink // while Run is active
	running context.Context
}

var (
	_ chat.Adapter       = (*Adapter)(nil)
	_ chat.Editor        = (*Adapter)(nil)
	_ chat.Deleter       = (*Adapter)(nil)
	_ chat.Typer         = (*Adapter)(nil)
	_ chat.Reactor       = (*Adapter)(nil)
	_ chat.ButtonAcker   = (*Adapter)(nil)
	_ chat.FileOpener    = (*Adapter)(nil)
	_ chat.Finder        = (*Adapter)(nil)
	_ chat.Titler        = (*Adapter)(nil)
	_ chat.HistoryReader = (*Adapter)(nil)
	_ chat.Handlers      = (*Adapter)(nil)
	_ chat.Prober        = (*Adapter)(nil)
)

// New makes an adapter. It does not use the network.
func New(cfg Config, deps Deps) (*Adapter, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if deps.Heal == 0 {
		deps.Heal = time.Second
	}
	if deps.Silence == 0 {
		deps.Silence = 30 * time.Second
	}
	if deps.HTTP == nil {
		deps.HTTP = newHTTP()
	}
	a := &Adapter{
		cfg: cfg, deps: deps, account: chat.AccountID("slack/" + cfg.Name), log: deps.Log, api: newClient(cfg, deps.HTTP),
		streams: newStreams(!deps.NoStreams), marks: newMarks(), uploads: newUploads(),
	}
	a.people = newPeople(a.api)
	return a, nil
}

// Account implements chat.Adapter.
func (a *Adapter) Account() chat.AccountID { return a.account }

// Limits implements chat.Adapter.
func (a *Adapter) Limits() chat.Limits { return limits }

// Run implements chat.Adapter: it takes in events until ctx ends or a token is
// refused.
func (a *Adapter) Run(ctx context.Context, sink chat.Sink) error {
	heal := &healing.Link{Account: a.account, Sink: sink, First: a.deps.Heal, Log: a.log}
	if err := heal.Begin(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		_, err := a.me(ctx)
		if err == nil {
			break
		}
		if cred := a.credential(err, false); cred != nil {
			return cred
		}
		wait(ctx, heal, err)
	}
	if a.cfg.Mode == modeEvents {
		return a.runEvents(ctx, heal)
	}
	return a.runSockets(ctx, heal)
}

// me asks who the bot is, once.
func (a *Adapter) me(ctx context.Context) (*lib.AuthTestResponse, error) {
	a.mu.Lock()
	self := a.self
	a.mu.Unlock()
	if self != nil {
		return self, nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	self, err := a.api.AuthTestContext(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.self = self
	a.mu.Unlock()
	return self, nil
}

// bot is who the bot is, as far as known.
func (a *Adapter) bot() lib.AuthTestResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.self == nil {
		return lib.AuthTestResponse{}
	}
	return *a.self
}

// wait waits after an error, as long as Slack asked if it did.
func wait(ctx context.Context, heal *healing.Link, err error) {
	var asked time.Duration
	var limited *lib.RateLimitedError
	if errors.As(err, &limited) {
		asked = limited.RetryAfter
	}
	heal.Wait(ctx, explain(err), asked)
}
