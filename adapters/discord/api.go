package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/config/secret"
)

// libraryBase is how the library begins every address; its own variables are for
// the whole process and stay as they are.
const libraryBase = "https://discord.com/api/v9"

// callLimit bounds a call, fileLimit an upload.
const (
	callLimit = 20 * time.Second
	fileLimit = 5 * time.Minute
)

// client makes the calls of one bot through the library, which sleeps through rate
// limits without regard to contexts, repeats posts after a 502 and shows the token
// in its errors (STR-013, SEC-004). So every answer that is not a success becomes an
// error below the library already, in RoundTrip, and its limiter is not used. It is
// safe for concurrent use.
type client struct {
	session *discordgo.Session
	base    string
	next    http.RoundTripper
	rates   rates
	// running bounds the calls that the library makes by itself, without a context.
	running atomic.Pointer[context.Context]
}

// newClient makes the client and the library's session that it belongs to.
func newClient(base string, token secret.String, next http.RoundTripper) (*client, error) {
	s, err := discordgo.New("Bot " + token.Reveal())
	if err != nil {
		return nil, fmt.Errorf("discord: %w", err)
	}
	c := &client{session: s, base: strings.TrimRight(base, "/"), next: next, rates: newRates()}
	s.Client = &http.Client{Transport: c}
	s.UserAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, " + discordgo.VERSION + ")"
	s.LogLevel = -1 // it writes to the standard error; what matters is in errors
	s.MaxRestRetries = 0
	s.ShouldRetryOnRateLimit = false
	s.ShouldReconnectOnError = false
	s.ShouldReconnectVoiceOnSessionError = false
	s.StateEnabled = false
	s.SyncEvents = true
	return c, nil
}

// apiError is an answer that is not a success. It holds no request, and so no token.
type apiError struct {
	status  int
	code    int // Discord's own, 0 if the answer was not Discord's
	message string
	// after is the wait that a 429 asks for; global says that all calls have to.
	after  time.Duration
	global bool
}

func (e *apiError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("discord: HTTP %d that is not from the API", e.status)
	}
	return fmt.Sprintf("discord: %d: %s (code %d)", e.status, e.message, e.code)
}

// unsentError says that a request never left this machine.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// RoundTrip implements http.RoundTripper.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if run := c.running.Load(); ctx.Done() == nil && run != nil {
		ctx = *run
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	u, err := url.Parse(c.base + strings.TrimPrefix(r.URL.String(), libraryBase))
	if err != nil {
		return nil, &unsentError{fmt.Errorf("discord: %w", err)}
	}
	key := bucketKey(r.Method, strings.TrimPrefix(r.URL.EscapedPath(), "/api/v9"))
	if wait, global := c.rates.claim(key, time.Now()); wait > 0 {
		return nil, &apiError{status: http.StatusTooManyRequests, message: "the limit that Discord told is used up", after: wait, global: global}
	}
	req := r.Clone(ctx)
	req.URL, req.Host = u, u.Host
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		if !sent.Load() {
			err = &unsentError{fmt.Errorf("discord: %w", err)}
		}
		return nil, err
	}
	c.rates.learn(key, resp.Header, time.Now())
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	failed := readError(resp)
	if failed.status == http.StatusTooManyRequests {
		c.rates.refused(key, failed, time.Now())
	}
	return nil, failed
}

// errorBody is how Discord answers what it refuses.
type errorBody struct {
	Code       int             `json:"code"`
	Message    string          `json:"message"`
	Errors     json.RawMessage `json:"errors"`
	RetryAfter float64         `json:"retry_after"`
	Global     bool            `json:"global"`
}

func readError(resp *http.Response) *apiError {
	const enough = 64 << 10
	e := &apiError{status: resp.StatusCode}
	b, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	var body errorBody
	if err == nil && json.Unmarshal(b, &body) == nil && body.Message != "" {
		e.code, e.message = body.Code, body.Message
		if details := fieldErrors(body.Errors); details != "" {
			e.message += ": " + details
		}
	}
	if e.status == http.StatusTooManyRequests {
		after, perr := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		e.after = time.Duration(body.RetryAfter * float64(time.Second))
		switch {
		case e.after > 0:
		case perr == nil && after > 0:
			e.after = after
		default:
			e.after = time.Second
		}
		// A page instead of JSON is Cloudflare's block of the whole address.
		e.global = body.Global || e.message == ""
	}
	return e
}

// fieldErrors flattens the tree of errors about fields.
func fieldErrors(raw json.RawMessage) string {
	var tree map[string]json.RawMessage
	if json.Unmarshal(raw, &tree) != nil {
		return ""
	}
	var out []string
	for field, sub := range tree {
		if field != "_errors" {
			if s := fieldErrors(sub); s != "" {
				out = append(out, field+" "+s)
			}
			continue
		}
		var list []struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(sub, &list) == nil {
			for _, e := range list {
				out = append(out, e.Message)
			}
		}
	}
	return strings.Join(out, "; ")
}

// body is what a call sends.
type body struct {
	mime string
	data []byte
}

// asJSON encodes a call's body.
func asJSON(v any) (body, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return body{}, fmt.Errorf("discord: %w", err)
	}
	return body{"application/json", b}, nil
}

// call makes one request, within callLimit, and decodes its result. path begins
// with a slash; in is nil or what to send as JSON.
func call[T any](ctx context.Context, c *client, method, path string, in any) (T, error) {
	var out T
	var b body
	if in != nil {
		var err error
		if b, err = asJSON(in); err != nil {
			return out, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return request[T](ctx, c, method, path, b)
}

// request is call with a body of any kind and without a limit of its own.
func request[T any](ctx context.Context, c *client, method, path string, b body) (T, error) {
	var out T
	free := discordgo.NewRatelimiter().LockBucket("")
	raw, err := c.session.RequestWithLockedBucket(method, libraryBase+path, b.mime, b.data, free, 0, discordgo.WithContext(ctx))
	if err != nil {
		return out, cause(err)
	}
	if len(raw) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("discord: %s: %w", method, err)
	}
	return out, nil
}

// cause is an error without its address, which may hold the token of an interaction
// or of a file.
func cause(err error) error {
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// none is the result of calls that have none.
type none struct{}

// newTransport is for many chats at once. It speaks HTTP/1.1 only: a wedged
// connection then holds up one call and not all of them (REC-005).
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 128, 128
	return t
}
