package embeddings_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"parley/agentcore/llm"
	"parley/agentcore/provider/embeddings"
	"parley/config/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret"

// serve makes a client of a server that answers in one way.
func serve(t *testing.T, answer http.HandlerFunc) *embeddings.Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	c, err := embeddings.New(embeddings.Config{BaseURL: s.URL + "/v1", APIKey: secret.New(key), Model: "local/vendor/small"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestVectorsInTheOrderOfTheTexts(t *testing.T) {
	var asked struct {
		Input []string `json:"input"`
		Model string   `json:"model"`
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "wrong request", http.StatusTeapot)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(`{"data":[{"index":1,"embedding":[0.5,1]},{"index":0,"embedding":[1,0]}],"usage":{"prompt_tokens":5,"total_tokens":5}}`))
	})
	got, used, err := c.Embed(t.Context(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]float32{{1, 0}, {0.5, 1}}, got); d != "" {
		t.Error(d)
	}
	if used != (llm.Usage{Input: 5}) {
		t.Errorf("used %+v", used)
	}
	if asked.Model != "vendor/small" || !cmp.Equal(asked.Input, []string{"a", "b"}) {
		t.Errorf("asked %+v", asked)
	}
}

// An answer that does not fit is an error, never a vector of another text.
func TestAnswersThatDoNotFit(t *testing.T) {
	for _, body := range []string{
		`{"data":[{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`,
		`{}`, `<html>`, ``,
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		var e *llm.Error
		if v, _, err := c.Embed(t.Context(), []string{"a", "b"}); !errors.As(err, &e) || v != nil {
			t.Errorf("%s: %v, %v", body, v, err)
		}
	}
}

// The status decides, and nothing of what the server says is repeated.
func TestFailures(t *testing.T) {
	for status, kind := range map[int]llm.ErrorKind{
		400: llm.KindMalformed, 413: llm.KindMalformed, 401: llm.KindAuth, 402: llm.KindBilling, 404: llm.KindNotFound,
		429: llm.KindRateLimit, 500: llm.KindOverloaded, 529: llm.KindOverloaded,
	} {
		for _, body := range []string{`{"error":{"message":"bad key ` + key + `"}}`, "plain " + key} {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = w.Write([]byte(body)) })
			_, _, err := c.Embed(t.Context(), []string{"a"})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != kind || e.Status != status || strings.Contains(err.Error(), key) {
				t.Errorf("%d %s: %v", status, body, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(_ http.ResponseWriter, _ *http.Request) { cancel() })
	if _, _, err := c.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := embeddings.New(embeddings.Config{BaseURL: "http://x", Model: "no-provider"}); err == nil {
		t.Error("a model without provider is taken")
	}
}
