// Package chatcompletions speaks the chat completions API of OpenAI and of every
// server that imitates it, on sashabaranov/go-openai. It guarantees:
//
//   - an answer is complete only if the server said so (a finish reason or
//     [DONE]), never because the connection ended;
//   - every failure is a *llm.Error whose kind comes from the status, the code and
//     the error object, wherever in the stream that object stands;
//   - a server that is silent for too long is given up, one that talks is never;
//   - ending the context or breaking out of the loop abandons the request at once.
//
// The path of an answer: wire.go mends the bytes, stream.go folds the chunks into
// events. request.go makes the body, which is ours, since the library drops fields
// that other servers need. errors.go says what went wrong.
package chatcompletions

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// Config is one server.
type Config struct {
	// Name is the provider's name in the configuration.
	Name string
	// BaseURL ends before /chat/completions.
	BaseURL string
	// APIKey may be empty for servers that need none.
	APIKey secret.String
	// FirstByte bounds the wait for the answer's first byte; 0: 120 s.
	FirstByte time.Duration
	// Idle bounds the silence between two bytes; comments count as life; 0: 90 s.
	Idle time.Duration
}

// Deps are what a Client works with. Both may be nil.
type Deps struct {
	Log *zap.Logger
	// HTTP must have no Timeout, which would cut long answers (PST-005).
	HTTP *http.Client
}

// Client is a llm.Provider; it is safe for concurrent use.
type Client struct {
	cfg     Config
	log     *zap.Logger
	http    *http.Client
	api     *openai.Client
	dialect dialect
	newID   func() string

	mu     sync.Mutex
	quirks map[string]quirk // what a model's refusals have taught, by model
}

var _ llm.Provider = (*Client)(nil)

// New makes a client. It fails without a base URL.
func New(cfg Config, deps Deps) (*Client, error) {
	if cfg.BaseURL == "" {
		return nil, errors.New("chatcompletions: no base URL")
	}
	if cfg.FirstByte == 0 {
		cfg.FirstByte = 120 * time.Second
	}
	if cfg.Idle == 0 {
		cfg.Idle = 90 * time.Second
	}
	c := &Client{
		cfg: cfg, log: deps.Log, http: deps.HTTP,
		dialect: dialectOf(cfg.Name, cfg.BaseURL),
		newID:   func() string { return "call_" + rand.Text() },
		quirks:  map[string]quirk{},
	}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport()}
	}
	oc := openai.DefaultConfig(cfg.APIKey.Reveal())
	oc.BaseURL = cfg.BaseURL
	oc.HTTPClient = doer{http: c.http, first: cfg.FirstByte, idle: cfg.Idle}
	c.api = openai.NewClientWithConfig(oc)
	return c, nil
}

// transport keeps a connection for each conversation that is answered at the same
// time, and finds dead HTTP/2 connections by pings within seconds (PST-002).
func transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     60 * time.Second,
	}
}

// Close gives up the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		err := c.stream(ctx, req, func(ev llm.Event) bool { return yield(ev, nil) })
		if err == nil {
			return
		}
		if ended := ctx.Err(); ended != nil {
			err = ended
		}
		yield(nil, err)
	}
}

// stream returns nil when the answer is complete or emit refused an event.
func (c *Client) stream(ctx context.Context, req *llm.Request, emit func(llm.Event) bool) error {
	_, model := req.Model.Split()
	b := c.newBody(req, c.learned(model))
	payload, err := b.encode()
	if err != nil {
		return &llm.Error{Kind: llm.KindMalformed, Model: req.Model, Message: "the request cannot be encoded", Err: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{payload: payload, cancel: cancel}
	s, err := c.api.CreateChatCompletionStream(withExchange(ctx, x), b.ChatCompletionRequest)
	if err != nil {
		return c.failure(ctx, req, err)
	}
	defer s.Close()
	f := newFold(req, c.dialect, c.newID)
	for {
		raw, err := s.RecvRaw()
		if err != nil {
			return c.conclude(ctx, req, f, x, err, emit)
		}
		events, err := f.add(raw)
		for _, ev := range events {
			if !emit(ev) {
				return nil
			}
		}
		if err != nil {
			return c.failure(ctx, req, err)
		}
		if f.finish != "" {
			x.watch.shorten(settleTime)
		}
	}
}

// settleTime is how long a server may take between the finish reason and the end
// of its answer: the usage is still to come.
const settleTime = 5 * time.Second

// conclude ends an answer whose stream ended with err, which is io.EOF for a good
// end and for a cut one alike.
func (c *Client) conclude(
	ctx context.Context, req *llm.Request, f *fold, x *exchange, err error, emit func(llm.Event) bool,
) error {
	if f.finish == "" && !x.done {
		if errors.Is(err, io.EOF) {
			err = f.cut()
		}
		return c.failure(ctx, req, err)
	}
	events, err := f.end()
	if err != nil {
		return c.failure(ctx, req, err)
	}
	for _, ev := range events {
		if !emit(ev) {
			return nil
		}
	}
	x.drain()
	return nil
}

// failure makes err a *llm.Error of this request, and learns from it.
func (c *Client) failure(ctx context.Context, req *llm.Request, err error) error {
	var e *llm.Error
	var silent *silence
	switch {
	case errors.As(context.Cause(ctx), &silent):
		e = &llm.Error{Kind: llm.KindTimeout, Message: silent.Error(), Err: silent}
	case errors.As(err, &e):
		own := *e
		e = &own
	case errors.Is(err, openai.ErrReasoningToolsRequireResponses):
		e = &llm.Error{Kind: llm.KindMalformed, Message: "this model takes tools only with api_mode: codex_responses", Err: err}
	case errors.Is(err, openai.ErrChatCompletionInvalidModel):
		e = &llm.Error{Kind: llm.KindNotFound, Message: "this model has no chat completions", Err: err}
	case errors.Is(err, openai.ErrReasoningEffortUnsupported):
		e = &llm.Error{Kind: llm.KindMalformed, Message: err.Error(), Err: err}
	default:
		e = &llm.Error{Kind: llm.KindNetwork, Message: networkMessage(err), Err: err}
	}
	e.Model = req.Model
	e.Message = scrub(e.Message, c.cfg.APIKey)
	_, model := req.Model.Split()
	e.Repaired = c.learn(model, e)
	return e
}

func (c *Client) learned(model string) quirk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quirks[model]
}

// learn says whether the refusal taught something new about the model.
func (c *Client) learn(model string, e *llm.Error) bool {
	q := quirkOf(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	if q == 0 || c.quirks[model]&q == q {
		return false
	}
	c.quirks[model] |= q
	c.log.Info("the model's requests are changed after a refusal",
		zap.String("provider", c.cfg.Name), zap.String("model", model), zap.String("refusal", e.Message))
	return true
}
