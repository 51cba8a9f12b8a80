// Package wire is what the API modes have in common on their way to a server. It
// guarantees:
//
//   - an answer is complete only if the server said so, never because the
//     connection ended (Exchange.Play);
//   - every failure is a *llm.Error whose kind comes from the status, the code and
//     the error object, wherever in the answer that object stands (Classify);
//   - a server that is silent for too long is given up, one that talks is never;
//   - whatever bytes a server calls a stream come out as whole JSON events;
//   - what a history holds of other providers is put so that any server takes it:
//     ids, names, arguments, images (IDs, ToolName, Arguments, Picture).
//
// It knows no API: what the events mean is said by the folds of the modes.
package wire

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// Config is one server.
type Config struct {
	// Name is the provider's name in the configuration.
	Name string
	// BaseURL ends before /chat/completions, /responses or /v1/messages.
	BaseURL string
	// APIKey may be empty for servers that need none.
	APIKey secret.String
	// FirstByte bounds the wait for the answer's first byte; 0: 120 s.
	FirstByte time.Duration
	// Idle bounds the silence between two bytes; comments count as life; 0: 90 s.
	Idle time.Duration
}

// Deps are what a client works with. Both may be nil.
type Deps struct {
	Log *zap.Logger
	// HTTP must have no Timeout, which would cut long answers (PST-005).
	HTTP *http.Client
}

// Endpoint is a server as a client reaches it. It is safe for concurrent use.
type Endpoint struct {
	Config
	Log  *zap.Logger
	http *http.Client
}

// NewEndpoint fails without a base URL.
func NewEndpoint(cfg Config, deps Deps) (*Endpoint, error) {
	if cfg.BaseURL == "" {
		return nil, errors.New("no base URL")
	}
	if cfg.FirstByte == 0 {
		cfg.FirstByte = 120 * time.Second
	}
	if cfg.Idle == 0 {
		cfg.Idle = 90 * time.Second
	}
	e := &Endpoint{Config: cfg, Log: deps.Log, http: deps.HTTP}
	if e.Log == nil {
		e.Log = zap.NewNop()
	}
	if e.http == nil {
		e.http = &http.Client{Transport: Transport()}
	}
	return e, nil
}

// Transport keeps a connection for each conversation that is answered at the same
// time, and finds dead HTTP/2 connections by pings within seconds (PST-002).
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     60 * time.Second,
		// Events are small: a buffer for each stream that waits for its model.
		ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10,
	}
}

// Close gives up the idle connections.
func (e *Endpoint) Close() { e.http.CloseIdleConnections() }

// Stream makes the sequence of llm.Provider from a function that emits the events
// and returns nil when the answer is complete or emit refused one. Once the context
// has ended its error is the sequence's.
func Stream(ctx context.Context, ask func(emit func(llm.Event) bool) error) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		err := ask(func(ev llm.Event) bool { return yield(ev, nil) })
		if err == nil {
			return
		}
		if ended := ctx.Err(); ended != nil {
			err = ended
		}
		yield(nil, err)
	}
}
