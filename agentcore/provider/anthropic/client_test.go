package anthropic

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
	"parley/config/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testModel llm.ModelID = "test/model"

func newClient(tb testing.TB, cfg Config) *Client {
	tb.Helper()
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	cfg.APIKey = secret.New("sk-very-secret-1234")
	c, err := New(cfg, Deps{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Mode{
		Model: testModel,
		New: func(tb testing.TB, baseURL string) llm.Provider {
			return newClient(tb, Config{BaseURL: baseURL, FirstByte: 2 * time.Hour})
		},
		Uncounted: true,
		Serve: func(tb testing.TB) providertest.Backend {
			return providertest.NewServer(tb, providertest.Options{Key: "sk-very-secret-1234"})
		},
	})
}
