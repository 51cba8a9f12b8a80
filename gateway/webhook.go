package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/config/secret"
	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

const (
	// maxHook bounds the body of a webhook, in bytes.
	maxHook = 256 << 10
	// hookTolerance is how far a signed time may be off.
	hookTolerance = 5 * time.Minute
	// minHookSecret is the least length of a secret that nobody guesses, in bytes.
	minHookSecret = 16
)

// WebhookConfig is one entry of `webhooks:`, an outside event that begins a turn.
type WebhookConfig struct {
	// Secret signs the requests.
	Secret secret.String `yaml:"secret"`
	// Prompt says what is to be done with what comes in.
	Prompt string `yaml:"prompt"`
	// Deliver is the chat that it happens in: ACCOUNT/CHAT or ACCOUNT/CHAT/THREAD, where
	// an account is platform/name.
	Deliver string `yaml:"deliver"`
}

var hookName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// address reads Deliver.
func (c WebhookConfig) address() (chat.Address, bool) {
	p := strings.SplitN(c.Deliver, "/", 4)
	if len(p) < 3 || slices.Contains(p, "") {
		return chat.Address{}, false
	}
	a := chat.Address{Account: chat.AccountID(p[0] + "/" + p[1]), Chat: chat.ChatID(p[2])}
	if len(p) == 4 {
		a.Thread = chat.ThreadID(p[3])
	}
	return a, true
}

// validWebhooks reports every wrong value with its key and what is allowed.
func validWebhooks(hooks map[string]WebhookConfig) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(hooks)) {
		c, key := hooks[name], "webhooks."+name
		if !hookName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s: a name has 1 to 64 of the characters a-z, 0-9, _ and -", key))
		}
		if len(c.Secret.Reveal()) < minHookSecret {
			errs = append(errs, fmt.Errorf("%s.secret: needs at least %d characters, for example of `openssl rand -hex 32`", key, minHookSecret))
		}
		if strings.TrimSpace(c.Prompt) == "" {
			errs = append(errs, fmt.Errorf("%s.prompt: is empty; say what is to be done with what comes in", key))
		}
		if _, ok := c.address(); !ok {
			errs = append(errs, fmt.Errorf("%s.deliver: %q is not platform/name/chat (for example telegram/main/12345)", key, c.Deliver))
		}
	}
	return errs
}

// Routes are the gateway's own handlers by http.ServeMux pattern: none if no webhooks
// are configured.
func (g *Gateway) Routes() map[string]http.Handler {
	if len(g.cfg.Webhooks) == 0 {
		return nil
	}
	return map[string]http.Handler{"POST /webhook/in/{name}": http.HandlerFunc(g.hook)}
}

// hook takes in one outside event. It answers 202 once the event is durable, also for
// one that is known already.
func (g *Gateway) hook(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	c, ok := g.cfg.Webhooks[name]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, ok := signed(r.Header, body, c.Secret, g.now())
	if !ok {
		g.log.Warn("a webhook with a wrong signature", zap.String("name", name), zap.String("remote", r.RemoteAddr))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	status := g.takeHook(r, name, id, body)
	if status != http.StatusAccepted {
		w.Header().Set("Retry-After", "60")
	}
	w.WriteHeader(status)
}

// takeHook stores a genuine event and returns the status that says so.
func (g *Gateway) takeHook(r *http.Request, name, id string, body []byte) int {
	c, now := g.cfg.Webhooks[name], g.now()
	to, _ := c.address()
	log := g.log.With(zap.String("webhook", name))
	if g.self.Load() == nil || g.accounts[to.Account] == nil {
		log.Warn("a webhook cannot be taken in now: its account is off, or parley is starting")
		return http.StatusServiceUnavailable
	}
	rc, err := g.store.Enqueue(r.Context(), g.replica(), chat.TaskDue{
		Origin: chat.Origin{Key: chat.EventKey("webhook/" + name + "/" + id), Address: to, At: now},
		Title:  "webhook " + name, Prompt: c.Prompt, Data: string(body), Due: now,
	})
	switch {
	case errors.Is(err, record.ErrNotFound):
		log.Warn("a webhook is for a chat in which nobody has talked to the bot yet; write to it there first", zap.String("deliver", c.Deliver))
		return http.StatusServiceUnavailable
	case errors.Is(err, record.ErrConflict):
		log.Warn("a webhook is refused: too many events wait in its chat")
		return http.StatusTooManyRequests
	case err != nil:
		log.Error("a webhook could not be stored", zap.Error(err))
		return http.StatusServiceUnavailable
	}
	killpoint.Here(killpoint.IntakeStored)
	log.Info("webhook", zap.Bool("duplicate", rc.Duplicate))
	switch {
	case rc.Mine && rc.Duplicate: // it may have been taken in by a process that has died
		g.wake(rc.Fence, nil)
	case rc.Mine:
		g.wake(rc.Fence, &rc.Item)
	}
	return http.StatusAccepted
}

// signed checks a request's signature and returns what names the event for good: what
// is not signed names nothing, or a recorded request could be sent again under another
// name. It knows Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature)
// and GitHub's X-Hub-Signature-256, in which only the body is signed.
func signed(h http.Header, body []byte, key secret.String, now time.Time) (id string, ok bool) {
	if given, found := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256="); found {
		sum, err := hex.DecodeString(given)
		digest := sha256.Sum256(body)
		return hex.EncodeToString(digest[:]), err == nil && hmac.Equal(sum, mac([]byte(key.Reveal()), body))
	}
	id, at := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" || now.Sub(time.Unix(seconds, 0)).Abs() > hookTolerance {
		return "", false
	}
	want := mac(standardKey(key), []byte(id+"."+at+"."), body)
	for one := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		given, found := strings.CutPrefix(one, "v1,")
		sum, err := base64.StdEncoding.DecodeString(given)
		if found && err == nil && hmac.Equal(sum, want) {
			return id, true
		}
	}
	return "", false
}

// standardKey is the key of a secret: what stands behind "whsec_" in base64, else the
// secret itself.
func standardKey(s secret.String) []byte {
	if coded, found := strings.CutPrefix(s.Reveal(), "whsec_"); found {
		if key, err := base64.StdEncoding.DecodeString(coded); err == nil {
			return key
		}
	}
	return []byte(s.Reveal())
}

func mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, key)
	for _, p := range parts {
		_, _ = m.Write(p) // a hash never fails
	}
	return m.Sum(nil)
}
