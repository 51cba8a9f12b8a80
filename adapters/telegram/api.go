package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/config/secret"
)

// client calls the Bot API through the prescribed library, which takes no context,
// shows the token in its errors and knows methods up to Bot API 5: a copy of it is
// made per call, bound to the call's context, and newer methods go through
// MakeRequest. It is safe for concurrent use.
type client struct {
	base  string
	token secret.String
	http  *http.Client
}

// statusError is an answer that is not Bot API JSON: a proxy's page.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("telegram: HTTP %d that is not from the Bot API", e.status)
}

// unsentError says that a request never left this machine.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// doer binds a context to the library's requests, keeps the token out of errors and
// marks those of requests that never left this machine.
type doer struct {
	ctx    context.Context
	client *client
}

// Do implements tgbotapi.HTTPClient.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	ctx := httptrace.WithClientTrace(d.ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	resp, err := d.client.http.Do(r.WithContext(ctx))
	if err != nil {
		if err = d.client.redact(err); !sent.Load() {
			err = &unsentError{err}
		}
		return nil, err
	}
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode >= 300 && !strings.Contains(ct, "json") {
		_ = resp.Body.Close()
		return nil, &statusError{resp.StatusCode}
	}
	return resp, nil
}

// redact removes the address, which holds the token (SEC-004).
func (c *client) redact(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("telegram: %w", err)
}

// bot returns the library's client for one call.
func (c *client) bot(ctx context.Context) *tgbotapi.BotAPI {
	b := &tgbotapi.BotAPI{Token: c.token.Reveal(), Client: doer{ctx, c}}
	b.SetAPIEndpoint(c.base + "/bot%s/%s")
	return b
}

// callLimit bounds a call that is not a poll.
const callLimit = 20 * time.Second

// call makes one request, within callLimit, and decodes its result.
func call[T any](ctx context.Context, c *client, method string, p tgbotapi.Params) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return request[T](ctx, c, method, p)
}

// request is call without a limit of its own.
func request[T any](ctx context.Context, c *client, method string, p tgbotapi.Params) (T, error) {
	var out T
	resp, err := c.bot(ctx).MakeRequest(method, p)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(resp.Result, &out); err != nil {
		return out, fmt.Errorf("telegram: %s: %w", method, err)
	}
	return out, nil
}

// params builds a call's parameters.
type params tgbotapi.Params

// set adds a value that is not empty.
func (p params) set(key, value string) {
	if value != "" {
		p[key] = value
	}
}

// json adds a nested object.
func (p params) json(key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("telegram: %s: %w", key, err)
	}
	p[key] = string(b)
	return nil
}

// newHTTP is a client for many chats at once. It speaks HTTP/1.1 only: a wedged
// connection then holds up one call and not all of them (REC-005).
func newHTTP() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 128, 128
	return &http.Client{Transport: t}
}
