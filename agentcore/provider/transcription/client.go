// Package transcription asks an OpenAI-compatible /audio/transcriptions endpoint what a
// recording says, on sashabaranov/go-openai. It guarantees the words as the server gave
// them, trimmed, or an error: a *llm.Error, classified as those
// of chats are. It never retries.
package transcription

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
	"parley/config/secret"
)

// Config is one server and its model.
type Config struct {
	// BaseURL ends before /audio/transcriptions.
	BaseURL string
	// APIKey may be empty for servers that need none.
	APIKey secret.String
	Model  llm.ModelID
	// Timeout bounds one request; 0: 90 s.
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
		return nil, errors.New("transcription: needs a base URL and a provider/model")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 90 * time.Second
	}
	c := &Client{cfg: cfg, name: name, http: &http.Client{Transport: wire.Transport()}}
	oc := openai.DefaultConfig(cfg.APIKey.Reveal())
	oc.BaseURL, oc.HTTPClient = cfg.BaseURL, c.http
	c.api = openai.NewClientWithConfig(oc)
	return c, nil
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Transcribe returns what a recording says, which is nothing for silence. The server
// tells the format by the ending of the name.
func (c *Client) Transcribe(ctx context.Context, name string, audio io.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	// Telegram's ending, which is Ogg too, is not known everywhere.
	if stem, ok := strings.CutSuffix(name, ".oga"); ok {
		name = stem + ".ogg"
	}
	res, err := c.api.CreateTranscription(ctx, openai.AudioRequest{Model: c.name, FilePath: name, Reader: audio, Format: openai.AudioResponseFormatJSON})
	if err != nil {
		return "", c.failure(err)
	}
	return strings.TrimSpace(res.Text), nil
}

// failure classifies by status and wording. The wording itself stays out of the error:
// some servers repeat the key in theirs.
func (c *Client) failure(err error) error {
	e := &llm.Error{Kind: llm.KindNetwork, Message: "no answer from the server", Model: c.cfg.Model}
	var api *openai.APIError
	var request *openai.RequestError
	status, said := 0, ""
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Kind, e.Err = llm.KindTimeout, err
	case errors.As(err, &api):
		status, said = api.HTTPStatusCode, api.Message
	case errors.As(err, &request):
		status = request.HTTPStatusCode
	}
	if status != 0 {
		e = wire.Classify(status, http.Header{}, []byte(said))
		e.Message, e.Model = http.StatusText(status), c.cfg.Model
	}
	return e
}
