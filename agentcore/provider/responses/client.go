// Package responses speaks OpenAI's Responses API, on sashabaranov/go-openai. It
// guarantees what package wire does, and:
//
//   - an answer is complete only if the server said so (response.completed or
//     response.incomplete), whatever the connection does;
//   - nothing is kept by the server (store: false) and nothing is looked up there: no
//     item has an id (PRV-001);
//   - encrypted reasoning goes back to the model that it came from, with the items that
//     followed it, in their order, or not at all (PRV-010, PRV-026).
//
// The path of an answer: wire mends the bytes, stream.go folds the events into ours.
// request.go makes the body, which is ours: it has an order in which the longest part
// stays the same from request to request.
package responses

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// Config is one server, whose BaseURL ends before /responses.
type Config = wire.Config

// Deps are what a Client works with.
type Deps = wire.Deps

// Client is a llm.Provider; it is safe for concurrent use.
type Client struct {
	*wire.Endpoint
	api     *openai.Client
	lessons *wire.Lessons[quirk]
	newID   func() string
}

var _ llm.Provider = (*Client)(nil)

// New makes a client. It fails without a base URL.
func New(cfg Config, deps Deps) (*Client, error) {
	e, err := wire.NewEndpoint(cfg, deps)
	if err != nil {
		return nil, fmt.Errorf("responses: %w", err)
	}
	oc := openai.DefaultConfig(cfg.APIKey.Reveal())
	oc.BaseURL = cfg.BaseURL
	oc.HTTPClient = e
	return &Client{
		Endpoint: e, api: openai.NewClientWithConfig(oc),
		lessons: wire.NewLessons(lessons, e.Log), newID: func() string { return "call_" + rand.Text() },
	}, nil
}

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return wire.Stream(ctx, func(emit func(llm.Event) bool) error { return c.stream(ctx, req, emit) })
}

func (c *Client) stream(ctx context.Context, req *llm.Request, emit func(llm.Event) bool) error {
	payload, err := wire.Encode(newBody(req, c.lessons.Of(req)))
	if err != nil {
		return &llm.Error{Kind: llm.KindMalformed, Model: req.Model, Message: "the request cannot be encoded", Err: err}
	}
	ctx, x := wire.Begin(ctx, payload)
	defer x.End()
	s, err := c.api.CreateResponseStream(ctx, openai.CreateResponseRequest{})
	if err == nil {
		defer s.Close()
		err = x.Play(s.RecvRaw, newFold(req, c.newID), emit)
	}
	if err == nil {
		return nil
	}
	e := c.Failure(x, req.Model, err)
	e.Repaired = c.lessons.Learn(req, e)
	return e
}
