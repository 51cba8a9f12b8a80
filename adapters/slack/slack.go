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
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	lib "github.com/slack-go/slack"
	"go.uber.org/zap"

	"parley/gateway/chat"
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
	heal := &healing{a: a, sink: sink}
	if err := sink(ctx, chat.ConnectionChanged{Origin: a.origin(), State: chat.Connecting}); err != nil {
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
		heal.wait(ctx, err)
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

func (a *Adapter) origin() chat.Origin {
	return chat.Origin{Address: chat.Address{Account: a.account}, At: time.Now()}
}

// healing is the growing wait after errors in a row, told to the gateway. It is for
// one goroutine.
type healing struct {
	a       *Adapter
	sink    chat.Sink
	failed  int
	reason  string
	healthy bool
}

// wait tells what is wrong and waits: longer with each failure, or as long as
// Slack asked.
func (h *healing) wait(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	heal := h.a.deps.Heal
	d := min(heal<<min(h.failed, 5), 30*heal)
	d = time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
	var limited *lib.RateLimitedError
	if errors.As(err, &limited) {
		d = max(d, limited.RetryAfter)
	}
	h.failed++
	if reason := explain(err); h.healthy || reason != h.reason {
		h.healthy, h.reason = false, reason
		h.tell(ctx, chat.ConnectionChanged{Origin: h.a.origin(), State: chat.Reconnecting, Reason: reason})
	}
	pause(ctx, d)
}

func (h *healing) connected(ctx context.Context) {
	if !h.healthy {
		h.healthy = true
		h.tell(ctx, chat.ConnectionChanged{Origin: h.a.origin(), State: chat.Connected})
	}
	h.failed = 0
}

func (h *healing) tell(ctx context.Context, ev chat.ConnectionChanged) {
	if err := h.sink(ctx, ev); err != nil {
		h.a.log.Debug("connection state", zap.Error(err))
	}
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
