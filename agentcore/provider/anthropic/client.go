// Package anthropic speaks Anthropic's Messages API and that of every server which
// imitates it. It guarantees what package wire does, and:
//
//   - an answer is complete only if there was a stop reason, whatever the connection
//     does (PST-009);
//   - thinking with its signature, and every block that we do not know, goes back as it
//     came, to the model that it came from, in its place or not at all (PRV-026);
//   - a request has at most four cache markers, and all bytes before the last one are
//     the beginning of the conversation's next request.
//
// The client is our own, not the vendor's SDK (v2.15.0 was tried). That turns an answer
// back into a request by way of its own types: fields that it does not know are lost
// from thinking blocks, and a signature holds for the block as it was. It writes the
// messages before system and tools, so that no prefix of the bytes stays. A stream of a
// compatible server without event lines, a whole JSON answer and an error object in the
// middle all end there as an empty answer without an error. And it brings ten modules
// and 6 MB for one POST.
//
// The path of an answer: wire mends the bytes, stream.go folds the events into ours.
// request.go makes the body, cache.go sets the markers.
package anthropic

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// version is the version of the API that is spoken; compatible servers know no other.
const version = "2023-06-01"

// Config is one server, whose BaseURL ends before /v1/messages; a /v1 at its end does
// no harm.
type Config = wire.Config

// Deps are what a Client works with.
type Deps = wire.Deps

// Client is a llm.Provider; it is safe for concurrent use.
type Client struct {
	*wire.Endpoint
	url string
	// native: the server is Anthropic's own, which takes no unsigned thinking and
	// wants the key in one place only.
	native  bool
	lessons *wire.Lessons[quirk]
	newID   func() string
}

var _ llm.Provider = (*Client)(nil)

// New makes a client. It fails without a base URL.
func New(cfg Config, deps Deps) (*Client, error) {
	e, err := wire.NewEndpoint(cfg, deps)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	u, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("anthropic: the base URL cannot be read")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") + "/v1/messages"
	return &Client{
		Endpoint: e, url: u.String(), native: u.Hostname() == "anthropic.com" || strings.HasSuffix(u.Hostname(), ".anthropic.com"),
		lessons: wire.NewLessons(lessons, e.Log), newID: func() string { return "toolu_" + rand.Text() },
	}, nil
}

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return wire.Stream(ctx, func(emit func(llm.Event) bool) error { return c.stream(ctx, req, emit) })
}

func (c *Client) stream(ctx context.Context, req *llm.Request, emit func(llm.Event) bool) error {
	payload, err := wire.Encode(c.newBody(req, c.lessons.Of(req)))
	if err != nil {
		return &llm.Error{Kind: llm.KindMalformed, Model: req.Model, Message: "the request cannot be encoded", Err: err}
	}
	ctx, x := wire.Begin(ctx, payload)
	defer x.End()
	resp, err := c.post(ctx)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		err = x.Play(wire.Events(resp.Body), newFold(req, c.native, c.newID), emit)
	}
	if err == nil {
		return nil
	}
	e := c.Failure(x, req.Model, err)
	e.Repaired = c.lessons.Learn(req, e)
	return e
}

// post sends the exchange's payload. Servers that imitate the API want the key in the
// one or the other place.
func (c *Client) post(ctx context.Context) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Anthropic-Version", version)
	if !c.APIKey.Empty() {
		r.Header.Set("X-Api-Key", c.APIKey.Reveal())
		if !c.native {
			r.Header.Set("Authorization", "Bearer "+c.APIKey.Reveal())
		}
	}
	return c.Do(r)
}
