// Package telegram is the adapter for the Telegram Bot API, on the library
// telegram-bot-api. It polls, or takes what Telegram pushes; in both an update is
// acknowledged only when it is durable, one bad update never holds up the rest, and
// every error heals but a refused token. No error and no log line contains the token.
package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

// pollGrace is how much later than its own time a poll may be answered.
const pollGrace = 10 * time.Second

// Deps is what an adapter works with.
type Deps struct {
	Log *zap.Logger
	// HTTP makes the requests; nil: one with fitting time limits.
	HTTP *http.Client
	// Poll is how long a poll is held open; 0: 50 s. The Bot API takes whole
	// seconds. A webhook is looked after as often.
	Poll time.Duration
	// PublicURL is where Telegram reaches the Routes; needed in the mode webhook.
	PublicURL string
	// Heal is the first wait after an error, which grows to 30 times that; 0: 1 s.
	Heal time.Duration
}

// Adapter is one bot account. It is safe for concurrent use.
type Adapter struct {
	cfg     Config
	account chat.AccountID
	api     *client
	log     *zap.Logger
	poll    time.Duration
	grace   time.Duration
	heal    time.Duration
	hook    *webhook // nil when it polls
	moved   follows

	mu     sync.Mutex
	self   *tgbotapi.User // known after getMe
	priv   bool           // privacy mode: groups show only what is for the bot
	albums albums
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
	_ chat.Prober           = (*Adapter)(nil)
	_ chat.Inviter          = (*Adapter)(nil)
	_ chat.Handlers         = (*Adapter)(nil)
	_ chat.Drafter          = (*Adapter)(nil)
)

// New makes an adapter. It does not use the network.
func New(cfg Config, deps Deps) (*Adapter, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if deps.Poll == 0 {
		deps.Poll = 50 * time.Second
	}
	if deps.Heal == 0 {
		deps.Heal = time.Second
	}
	if deps.HTTP == nil {
		deps.HTTP = newHTTP()
	}
	a := &Adapter{
		cfg: cfg, account: chat.AccountID("telegram/" + cfg.Name), log: deps.Log, poll: deps.Poll, grace: pollGrace, heal: deps.Heal,
		api: &client{base: strings.TrimRight(cfg.APIBase, "/"), token: cfg.Token, http: deps.HTTP},
	}
	if cfg.Mode == "webhook" {
		if err := cfg.Reachable(deps.PublicURL); err != nil {
			return nil, err
		}
		a.hook = newWebhook(cfg, deps.PublicURL)
	}
	return a, nil
}

// Account implements chat.Adapter.
func (a *Adapter) Account() chat.AccountID { return a.account }

// Limits implements chat.Adapter. Only polls are one process's at a time.
func (a *Adapter) Limits() chat.Limits {
	l := limits
	l.SingleIntake = a.hook == nil
	return l
}

// Run implements chat.Adapter: it takes in updates until ctx ends or the token is
// refused.
func (a *Adapter) Run(ctx context.Context, sink chat.Sink) error {
	heal := a.link(sink)
	if err := heal.Begin(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		_, err := a.me(ctx)
		if err == nil {
			break
		}
		if cred := a.credential(err); cred != nil {
			return cred
		}
		wait(ctx, heal, err)
	}
	if a.hook != nil {
		return a.runWebhook(ctx, sink, heal)
	}
	return a.runPoll(ctx, sink, heal)
}

// runPoll asks for updates, again and again.
func (a *Adapter) runPoll(ctx context.Context, sink chat.Sink, heal *healing.Link) error {
	offset := 0
	for ctx.Err() == nil {
		poll := a.poll
		if !heal.Healthy() {
			poll = 0 // the first poll answers at once and shows that the link stands
		}
		raws, err := a.updates(ctx, offset, poll)
		if err != nil {
			if cred := a.credential(err); cred != nil {
				return cred
			}
			wait(ctx, heal, a.explain(ctx, err))
			continue
		}
		if offset, err = a.takeIn(ctx, sink, raws, offset); err != nil {
			wait(ctx, heal, fmt.Errorf("an update could not be stored: %w", err))
			continue
		}
		heal.Connected(ctx)
	}
	return nil
}

// allowedUpdates are the kinds that decode knows.
var allowedUpdates = []string{"message", "edited_message", "callback_query"}

// updates makes one long poll. Each update stays raw: one that the library cannot
// read must not spoil the others.
func (a *Adapter) updates(ctx context.Context, offset int, poll time.Duration) ([]json.RawMessage, error) {
	p := params{"timeout": strconv.Itoa(int(poll.Seconds()))}
	if offset > 0 {
		p["offset"] = strconv.Itoa(offset)
	}
	if err := p.json("allowed_updates", allowedUpdates); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, poll+a.grace) // a wedged poll ends too (REC-005)
	defer cancel()
	return request[[]json.RawMessage](ctx, a.api, "getUpdates", tgbotapi.Params(p))
}

// takeIn hands updates to the sink in order. The returned offset is behind the
// last one that is durable, or that holds nothing for the bot.
func (a *Adapter) takeIn(ctx context.Context, sink chat.Sink, raws []json.RawMessage, offset int) (int, error) {
	for _, raw := range raws {
		id, ev, err := a.read(raw)
		if id < offset {
			continue
		}
		if err != nil {
			a.log.Warn("an update cannot be read and is skipped", zap.Int("update", id), zap.Error(err))
		} else if ev != nil {
			if err := sink(ctx, ev); err != nil {
				return offset, err
			}
		}
		if id > 0 {
			offset = id + 1
		}
	}
	return offset, nil
}

// read decodes an update into its event, nil if it has nothing for the bot. It is a
// door: an update that makes the code panic is one that cannot be read, since it
// would come again for ever.
func (a *Adapter) read(raw json.RawMessage) (id int, ev chat.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("telegram: update: panic: %v", r)
		}
	}()
	u, err := decode(raw)
	id = u.ID
	if err == nil {
		ev = a.event(u)
	}
	return id, ev, err
}

// explain names the cause of a conflict, and removes a webhook that keeps polls
// out; no pending update is dropped.
func (a *Adapter) explain(ctx context.Context, err error) error {
	var e *tgbotapi.Error
	if !errors.As(err, &e) || e.Code != http.StatusConflict {
		return err
	}
	info, ierr := call[tgbotapi.WebhookInfo](ctx, a.api, "getWebhookInfo", nil)
	if ierr == nil && info.URL != "" {
		if _, derr := call[bool](ctx, a.api, "deleteWebhook", nil); derr != nil {
			return fmt.Errorf("a webhook is set for this bot and could not be removed: %w", derr)
		}
		return errors.New("a webhook was set for this bot; it is removed, since platforms.telegram says mode: poll")
	}
	return errors.New("another process polls this bot (409): stop it there, or give each its own bot")
}

// me asks who the bot is, once.
func (a *Adapter) me(ctx context.Context) (tgbotapi.User, error) {
	a.mu.Lock()
	self := a.self
	a.mu.Unlock()
	if self != nil {
		return *self, nil
	}
	u, err := call[tgbotapi.User](ctx, a.api, "getMe", nil)
	if err != nil {
		return u, err
	}
	a.mu.Lock()
	a.self, a.priv = &u, !u.CanReadAllGroupMessages
	a.mu.Unlock()
	return u, nil
}

// bot is who the bot is, as far as known.
func (a *Adapter) bot() tgbotapi.User {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.self == nil {
		return tgbotapi.User{}
	}
	return *a.self
}

// link is the account's connection, which heals itself.
func (a *Adapter) link(sink chat.Sink) *healing.Link {
	return &healing.Link{Account: a.account, Sink: sink, First: a.heal, Log: a.log}
}

// wait waits after an error, as long as the server asked if it did.
func wait(ctx context.Context, heal *healing.Link, err error) {
	var asked time.Duration
	var api *tgbotapi.Error
	if errors.As(err, &api) {
		asked = time.Duration(api.RetryAfter) * time.Second
	}
	heal.Wait(ctx, err.Error(), asked)
}
