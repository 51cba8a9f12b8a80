package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lib "github.com/slack-go/slack"

	"parley/config/secret"
)

// callLimit bounds a call that moves no file.
const callLimit = 20 * time.Second

// client calls the Web API through the prescribed library. It is safe for
// concurrent use.
type client struct {
	*lib.Client
	base  string
	token secret.String
	doer  *doer
}

// newClient makes a client. The library wants a slash at the end of the address.
// Its debug mode is never switched on: it would make sockets short-lived.
func newClient(cfg Config, h *http.Client) *client {
	base := cfg.APIBase
	if base[len(base)-1] != '/' {
		base += "/"
	}
	d := &doer{http: h, limited: map[string]time.Time{}}
	return &client{
		Client: lib.New(cfg.BotToken.Reveal(), lib.OptionAPIURL(base), lib.OptionAppLevelToken(cfg.AppToken.Reveal()), lib.OptionHTTPClient(d)),
		base:   base, token: cfg.BotToken, doer: d,
	}
}

// unsentError says that a request never left this machine.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// doer makes the library's requests, keeps addresses out of errors, since some of
// them are secrets, and marks the errors of requests that never left this machine.
// Slack counts calls by method: a method that was told to wait is not called before
// the time, for any chat.
type doer struct {
	http *http.Client

	mu      sync.Mutex
	limited map[string]time.Time
}

// perChannel are the methods whose rate is a channel's.
var perChannel = map[string]bool{"chat.postMessage": true}

// Do implements the library's client.
func (d *doer) Do(r *http.Request) (*http.Response, error) {
	method := path.Base(r.URL.Path)
	if w := d.wait(method); w > 0 {
		return nil, &lib.RateLimitedError{RetryAfter: w}
	}
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	resp, err := d.http.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		if err = fmt.Errorf("slack: %w", err); !sent.Load() {
			err = &unsentError{err}
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests && !perChannel[method] {
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			d.mu.Lock()
			d.limited[method] = time.Now().Add(time.Duration(seconds) * time.Second)
			d.mu.Unlock()
		}
	}
	if strings.HasPrefix(method, "chat.") && resp.StatusCode == http.StatusOK {
		err = reduce(resp)
	}
	return resp, err
}

// reduce leaves of an answer what is needed of it. Slack shows the posted message
// in it, translated, and the library refuses the whole answer over a block of it
// that it does not understand, although the message was posted.
func reduce(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, frameLimit))
	if err != nil {
		return fmt.Errorf("slack: %w", err)
	}
	var answer struct {
		OK        bool            `json:"ok"`
		Error     string          `json:"error,omitempty"`
		Needed    string          `json:"needed,omitempty"`
		Channel   string          `json:"channel,omitempty"`
		TS        string          `json:"ts,omitempty"`
		MessageTS string          `json:"message_ts,omitempty"`
		Meta      json.RawMessage `json:"response_metadata,omitempty"`
	}
	if json.Unmarshal(body, &answer) == nil {
		if small, err := json.Marshal(answer); err == nil {
			body = small
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func (d *doer) wait(method string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	until, ok := d.limited[method]
	w := time.Until(until)
	if ok && w <= 0 {
		delete(d.limited, method)
	}
	return w
}

// read makes a call whose answer the library would read more strictly than is good.
func (c *client) read(ctx context.Context, method string, values url.Values, into any) error {
	values.Set("token", c.token.Reveal())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+method, strings.NewReader(values.Encode()))
	if err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.doer.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusTooManyRequests {
		return &lib.RateLimitedError{RetryAfter: max(c.doer.wait(method), time.Second)}
	}
	if resp.StatusCode != http.StatusOK {
		return lib.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("slack: %s: %w", method, err)
	}
	return nil
}

// limited binds a call to its time limit.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
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
