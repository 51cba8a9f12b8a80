// Package embeddings asks an OpenAI-compatible /embeddings endpoint where texts
// stand in the space of its model, on sashabaranov/go-openai. It guarantees one
// vector for each text, in the order of the texts, or an error: a *llm.Error whose
// kind comes from the status alone. It never retries.
package embeddings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
	"parley/config/secret"
)

// Config is one server and its model.
type Config struct {
	// BaseURL ends before /embeddings.
	BaseURL string
	// APIKey may be empty for servers that need none.
	APIKey secret.String
	Model  llm.ModelID
	// Timeout bounds one request; 0: 60 s.
	Timeout time.Duration
}

// Client asks one model; it is safe for concurrent use.
type Client struct {
	cfg  Config
	name string // as the server calls the model
	http *http.Client
	api  *openai.Client
}

// New makes a client. It fails without a base URL or a model.
func New(cfg Config) (*Client, error) {
	provider, name := cfg.Model.Split()
	if cfg.BaseURL == "" || provider == "" || name == "" {
		return nil, errors.New("embeddings: needs a base URL and a provider/model")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 60 * time.Second
	}
	c := &Client{cfg: cfg, name: name, http: &http.Client{Transport: wire.Transport()}}
	oc := openai.DefaultConfig(cfg.APIKey.Reveal())
	oc.BaseURL, oc.HTTPClient = cfg.BaseURL, c.http
	c.api = openai.NewClientWithConfig(oc)
	return c, nil
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Embed returns a vector for each text, in their order, and what the server says that
// it used. Texts must not be empty.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, llm.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	res, err := c.api.CreateEmbeddings(ctx, openai.EmbeddingRequestStrings{Input: texts, Model: openai.EmbeddingModel(c.name)})
	if err != nil {
		return nil, llm.Usage{}, c.failure(err)
	}
	used := llm.Usage{Input: res.Usage.PromptTokens}
	vectors := make([][]float32, len(texts))
	for _, d := range res.Data {
		if d.Index < 0 || d.Index >= len(texts) || vectors[d.Index] != nil || len(d.Embedding) == 0 {
			return nil, used, c.wrong("vectors that do not belong to the texts")
		}
		vectors[d.Index] = d.Embedding
	}
	if len(res.Data) != len(texts) {
		return nil, used, c.wrong(fmt.Sprintf("%d vectors for %d texts", len(res.Data), len(texts)))
	}
	return vectors, used, nil
}

func (c *Client) wrong(what string) error {
	return &llm.Error{Kind: llm.KindUnknown, Message: "the answer has " + what, Model: c.cfg.Model}
}

// failure classifies by the status. Wordings stay out of it: some servers repeat
// the key, or the text, in theirs.
func (c *Client) failure(err error) error {
	e := &llm.Error{Kind: llm.KindNetwork, Message: "no answer from the server", Model: c.cfg.Model}
	var api *openai.APIError
	var request *openai.RequestError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Kind, e.Err = llm.KindTimeout, err
		return e
	case errors.As(err, &api):
		e.Status = api.HTTPStatusCode
	case errors.As(err, &request):
		e.Status = request.HTTPStatusCode
	}
	switch {
	case e.Status == 0:
		return e
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		e.Kind = llm.KindAuth
	case e.Status == http.StatusPaymentRequired:
		e.Kind = llm.KindBilling
	case e.Status == http.StatusNotFound:
		e.Kind = llm.KindNotFound
	case e.Status == http.StatusTooManyRequests:
		e.Kind = llm.KindRateLimit
	case e.Status >= 500:
		e.Kind = llm.KindOverloaded
	default:
		e.Kind = llm.KindMalformed
	}
	e.Message = http.StatusText(e.Status)
	return e
}
