// Package chatcompletions speaks the chat completions API of OpenAI and of every
// server that imitates it, on sashabaranov/go-openai. It guarantees what package
// wire does, and:
//
//   - an answer is complete if there was a finish reason or [DONE];
//   - ending the context or breaking out of the loop abandons the request at once;
//   - reasoning and signatures go back to the model that they came from, and to no
//     other.
//
// The path of an answer: wire mends the bytes, stream.go folds the chunks into
// events. request.go makes the body, which is ours, since the library drops fields
// that other servers need. errors.go knows the library's errors.
package chatcompletions

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// Config is one server, whose BaseURL ends before /chat/completions.
type Config = wire.Config

// Deps are what a Client works with.
type Deps = wire.Deps

// Client is a llm.Provider; it is safe for concurrent use.
type Client struct {
	*wire.Endpoint
	api     *openai.Client
	dialect dialect
	lessons *wire.Lessons[quirk]
	newID   func() string
}

var _ llm.Provider = (*Client)(nil)

// New makes a client. It fails without a base URL.
func New(cfg Config, deps Deps) (*Client, error) {
	e, err := wire.NewEndpoint(cfg, deps)
	if err != nil {
		return nil, fmt.Errorf("chatcompletions: %w", err)
	}
	oc := openai.DefaultConfig(cfg.APIKey.Reveal())
	oc.BaseURL = cfg.BaseURL
	oc.HTTPClient = e
	return &Client{
		Endpoint: e, api: openai.NewClientWithConfig(oc), dialect: dialectOf(cfg.Name, cfg.BaseURL),
		lessons: wire.NewLessons(lessons, e.Log), newID: func() string { return "call_" + rand.Text() },
	}, nil
}

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return wire.Stream(ctx, func(emit func(llm.Event) bool) error { return c.stream(ctx, req, emit) })
}

func (c *Client) stream(ctx context.Context, req *llm.Request, emit func(llm.Event) bool) error {
	b := c.newBody(req, c.lessons.Of(req))
	payload, err := wire.Encode(b)
	if err != nil {
		return &llm.Error{Kind: llm.KindMalformed, Model: req.Model, Message: "the request cannot be encoded", Err: err}
	}
	ctx, x := wire.Begin(ctx, payload)
	defer x.End()
	s, err := c.api.CreateChatCompletionStream(ctx, b.outline())
	if err == nil {
		defer s.Close()
		err = x.Play(s.RecvRaw, newFold(req, c.dialect, c.newID), emit)
	}
	if err == nil {
		return nil
	}
	e := c.Failure(x, req.Model, translate(err))
	e.Repaired = c.lessons.Learn(req, e)
	return e
}
