package slack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	lib "github.com/slack-go/slack"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

// requestLimit is the largest request that is read.
const requestLimit = 4 << 20

// runEvents lets the handler take events in until ctx ends, and waits for what it is
// taking in then.
func (a *Adapter) runEvents(ctx context.Context, heal *healing.Link) error {
	a.openDoor(ctx, heal.Sink)
	defer a.openDoor(ctx, nil)
	heal.Connected(ctx)
	<-ctx.Done()
	return nil
}

func (a *Adapter) openDoor(ctx context.Context, s chat.Sink) {
	a.door.Lock()
	defer a.door.Unlock()
	a.sink, a.running = s, ctx
}

// Routes implements chat.Handlers: the one request URL for events, interactions and
// commands, in mode events.
func (a *Adapter) Routes() map[string]http.Handler {
	if a.cfg.Mode != modeEvents {
		return nil
	}
	return map[string]http.Handler{"POST /webhook/slack/" + a.cfg.Name: http.HandlerFunc(a.serveEvent)}
}

// serveEvent answers 200 once what a request brings is durable. Slack repeats one
// that is answered with anything else, three times.
func (a *Adapter) serveEvent(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
	if err != nil {
		http.Error(w, "the request is too large or broken", http.StatusBadRequest)
		return
	}
	if err := verify(r.Header, body, a.cfg.SigningSecret.Reveal()); err != nil {
		a.log.Warn("a request without Slack's signature", zap.Error(err), zap.String("fix", "compare platforms.slack.signing_secret with the app's page, and the clock with the time"))
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	kind, payload, challenge := unwrap(r.Header.Get("Content-Type"), body)
	if challenge != "" {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, challenge)
		return
	}
	a.door.RLock()
	defer a.door.RUnlock()
	if a.sink == nil {
		http.Error(w, "not running", http.StatusServiceUnavailable)
		return
	}
	// Slack hangs up after three seconds; what is being stored is stored all the same.
	if err := a.take(a.running, a.sink, kind, payload); err != nil {
		a.log.Warn("an event could not be stored", zap.Error(err))
		http.Error(w, "not stored", http.StatusServiceUnavailable)
	}
}

// verify checks Slack's signature and the age of a request.
func verify(h http.Header, body []byte, secret string) error {
	v, err := lib.NewSecretsVerifier(h, secret)
	if err != nil {
		return err
	}
	if _, err := v.Write(body); err != nil {
		return err
	}
	return v.Ensure()
}

// unwrap brings a request into the form of an envelope: events are JSON,
// interactions JSON within a form, commands the form itself.
func unwrap(contentType string, body []byte) (kind string, payload json.RawMessage, challenge string) {
	if !strings.HasPrefix(contentType, "application/x-www-form-urlencoded") {
		var v struct {
			Type      string `json:"type"`
			Challenge string `json:"challenge"`
		}
		if json.Unmarshal(body, &v) == nil && v.Type == "url_verification" {
			return "", nil, v.Challenge
		}
		return kindEvents, body, ""
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", body, ""
	}
	if p := form.Get("payload"); p != "" {
		return kindInteractive, json.RawMessage(p), ""
	}
	fields := map[string]string{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	payload, err = json.Marshal(fields)
	if err != nil {
		return "", body, ""
	}
	return kindSlash, payload, ""
}
