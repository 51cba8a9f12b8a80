package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

// hookBody bounds what is read of a push; an update has a few KB.
const hookBody = 1 << 20

// webhook is how Telegram pushes: to any process that runs, since nothing but the
// inbox remembers what came.
type webhook struct {
	path, url string
	// secret is in a header of each push. It comes from the token, so that all
	// processes know it and none has to keep it.
	secret string

	mu      sync.Mutex
	running context.Context // nil: nothing is taken in now
	sink    chat.Sink
	pushes  sync.WaitGroup // under way
}

func newWebhook(cfg Config, publicURL string) *webhook {
	path := "/webhook/telegram/" + cfg.Name
	sum := sha256.Sum256([]byte("parley webhook\x00" + cfg.Token.Reveal()))
	return &webhook{path: path, url: strings.TrimRight(publicURL, "/") + path, secret: hex.EncodeToString(sum[:])}
}

// Routes implements chat.Handlers.
func (a *Adapter) Routes() map[string]http.Handler {
	if a.hook == nil {
		return nil
	}
	return map[string]http.Handler{"POST " + a.hook.path: http.HandlerFunc(a.push)}
}

// push takes an update in. Telegram sends it again after any answer but a 2xx.
func (a *Adapter) push(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Telegram-Bot-Api-Secret-Token")), []byte(a.hook.secret)) != 1 {
		http.Error(w, "the secret token is wrong", http.StatusUnauthorized)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hookBody))
	if err != nil {
		http.Error(w, "the body is too large or was cut", http.StatusRequestEntityTooLarge)
		return
	}
	ctx, sink, end := a.hook.enter(r.Context())
	if sink == nil {
		http.Error(w, "nothing is taken in now", http.StatusServiceUnavailable)
		return
	}
	defer end()
	id, ev, err := a.read(raw)
	switch {
	case err != nil:
		a.log.Warn("an update cannot be read and is skipped", zap.Int("update", id), zap.Error(err))
	case ev != nil:
		if err := sink(ctx, ev); err != nil {
			a.log.Warn("an update could not be stored; Telegram will send it again", zap.Int("update", id), zap.Error(err))
			http.Error(w, "the update could not be stored", http.StatusServiceUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusOK)
}

// enter gives a push the sink, nil if nothing is taken in now, and a context that
// ends with the request or with Run.
func (h *webhook) enter(request context.Context) (context.Context, chat.Sink, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		return request, nil, nil
	}
	h.pushes.Add(1)
	ctx, cancel := context.WithCancel(request)
	stop := context.AfterFunc(h.running, cancel)
	return ctx, h.sink, func() { stop(); cancel(); h.pushes.Done() }
}

// open lets pushes in until the returned function is called, which waits for those
// under way.
func (h *webhook) open(ctx context.Context, sink chat.Sink) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	h.running, h.sink = ctx, sink
	h.mu.Unlock()
	return func() {
		h.mu.Lock()
		h.running, h.sink = nil, nil
		h.mu.Unlock()
		cancel()
		h.pushes.Wait()
	}
}

// runWebhook lets pushes in and looks after the webhook. It stays when this process
// ends: what is written meanwhile waits at Telegram.
func (a *Adapter) runWebhook(ctx context.Context, sink chat.Sink, heal *healing.Link) error {
	defer a.hook.open(ctx, sink)()
	var known hookState
	for ctx.Err() == nil {
		var err error
		if known, err = a.lookAfter(ctx, known); err != nil {
			if cred := a.credential(err); cred != nil {
				return cred
			}
			wait(ctx, heal, err)
			continue
		}
		heal.Connected(ctx)
		healing.Pause(ctx, a.poll)
	}
	return nil
}

// hookState is what was last seen of the webhook.
type hookState struct {
	ours    bool // it was set as it should be
	errorAt int
	failing bool // Telegram could not deliver what waits
}

// lookAfter sets the webhook if it is not as it should be, and says what keeps
// Telegram from delivering. Telegram keeps the last error for ever, so only one that
// is new, while updates wait, tells of now.
func (a *Adapter) lookAfter(ctx context.Context, known hookState) (hookState, error) {
	info, err := call[tgbotapi.WebhookInfo](ctx, a.api, "getWebhookInfo", nil)
	if err != nil {
		return known, err
	}
	fresh := info.LastErrorDate != known.errorAt && info.LastErrorMessage != ""
	now := hookState{ours: true, errorAt: info.LastErrorDate}
	foreign := fresh && strings.Contains(info.LastErrorMessage, "401") // set with another secret
	if info.URL != a.hook.url || !sameKinds(info.AllowedUpdates) || foreign {
		if err := a.setWebhook(ctx); err != nil {
			return known, err
		}
		if known.ours && info.URL != a.hook.url {
			return now, errors.New("another process took the webhook away, or polls this bot (409): stop it there, or give each its own bot; the webhook is set again")
		}
		return now, nil
	}
	now.failing = info.PendingUpdateCount > 0 && (known.failing || fresh && known.ours)
	if now.failing {
		return now, fmt.Errorf("the webhook is not reached at %s: %s", a.hook.url, info.LastErrorMessage)
	}
	return now, nil
}

func (a *Adapter) setWebhook(ctx context.Context) error {
	p := params{"url": a.hook.url, "secret_token": a.hook.secret}
	if err := p.json("allowed_updates", allowedUpdates); err != nil {
		return err
	}
	_, err := call[bool](ctx, a.api, "setWebhook", tgbotapi.Params(p))
	return err
}

func sameKinds(kinds []string) bool {
	kinds = slices.Sorted(slices.Values(kinds))
	return slices.Equal(kinds, slices.Sorted(slices.Values(allowedUpdates)))
}

// intake tells how updates come in, and what is in the way.
func (a *Adapter) intake(info tgbotapi.WebhookInfo) chat.Finding {
	switch {
	case a.hook == nil && info.URL == "":
		return chat.Finding{OK: true, What: "updates are polled"}
	case a.hook == nil:
		return chat.Finding{
			What: "a webhook is set, which keeps polling out",
			Fix:  "start parley: it removes the webhook, since the mode is poll; if it comes back, another program sets it",
		}
	case info.URL == "":
		return chat.Finding{OK: true, What: "no webhook is set yet; parley sets it when it starts, to " + a.hook.url}
	case info.URL != a.hook.url:
		return chat.Finding{
			What: "the webhook of this bot leads elsewhere", Fix: "start parley: it sets the webhook to " + a.hook.url + "; if it changes again, another program uses this bot",
		}
	case info.LastErrorMessage != "" && info.PendingUpdateCount > 0:
		return chat.Finding{
			What: fmt.Sprintf("Telegram cannot deliver: %s (%d updates wait)", info.LastErrorMessage, info.PendingUpdateCount),
			Fix:  "let " + a.hook.url + " lead to http.listen of a running parley, with a certificate that Telegram trusts; or set mode: poll",
		}
	}
	return chat.Finding{OK: true, What: "updates are pushed to " + a.hook.url}
}
