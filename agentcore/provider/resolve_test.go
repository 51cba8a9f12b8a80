package provider

import (
	"errors"
	"testing"

	"parley/agentcore/llm"
	"parley/config/secret"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want Mode
	}{
		{"openai", Config{}, ChatCompletions},
		{"openai", Config{APIMode: CodexResponses}, CodexResponses},
		{"anthropic", Config{}, AnthropicMessages},
		{"anthropic", Config{BaseURL: "https://proxy.example/v1"}, AnthropicMessages},
		{"anthropic", Config{APIMode: ChatCompletions}, ChatCompletions},
		{"openai-codex", Config{}, CodexResponses},
		{"mine", Config{BaseURL: "https://api.anthropic.com"}, AnthropicMessages},
		{"mine", Config{BaseURL: "https://api.minimax.io/anthropic/"}, AnthropicMessages},
		{"mine", Config{BaseURL: "https://chatgpt.com/backend-api/codex"}, CodexResponses},
		{"mine", Config{BaseURL: "https://example.com/v1"}, ChatCompletions},
		{"mine", Config{}, ChatCompletions},
	} {
		if got := Resolve(c.name, c.cfg); got != c.want {
			t.Errorf("Resolve(%s, %+v) = %s, want %s", c.name, c.cfg, got, c.want)
		}
	}
}

func TestKnownProvidersNameTheirModels(t *testing.T) {
	for _, k := range KnownProviders() {
		if name, model := k.Model.Split(); k.Model != "" && (name != k.Name || model == "") {
			t.Errorf("the default model of %s is %q", k.Name, k.Model)
		}
		if err := (Config{BaseURL: k.BaseURL}).Validate(k.Name); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
}

func TestBuild(t *testing.T) {
	got := map[string]Config{}
	factories := map[Mode]Factory{ChatCompletions: func(name string, c Config) (llm.Provider, error) {
		got[name] = c
		return &scripted{}, nil
	}}
	key := secret.New("k")
	s, err := Build(map[string]Config{
		"openai": {APIKey: key}, "groq": {}, "ollama": {}, "anthropic": {APIKey: key},
		"mine": {BaseURL: "http://127.0.0.1:9/v1", Keyless: true}, "empty": {BaseURL: "http://127.0.0.1:9/v1"},
	}, factories, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if got["openai"].BaseURL != "https://api.openai.com/v1" || got["ollama"].BaseURL == "" || got["mine"].BaseURL == "" {
		t.Errorf("made: %+v", got)
	}
	if err := s.Check(Chain{Model: "openai/x", Fallback: []llm.ModelID{"ollama/y", "mine/z"}}); err != nil {
		t.Errorf("Check: %v", err)
	}
	var mode *ModeError
	if err := s.Check(Chain{Model: "anthropic/x"}); !errors.As(err, &mode) || mode.Mode != AnthropicMessages {
		t.Errorf("a mode that is not built: %v", err)
	}
	var off *OffError
	for _, m := range []llm.ModelID{"groq/x", "empty/x", "nobody/x", "justaname", "openai/"} {
		if err := s.Check(Chain{Model: m}); !errors.As(err, &off) {
			t.Errorf("Check(%s) = %v, want an OffError", m, err)
		}
	}
	_, err = llm.Collect(t.Context(), s.Chain(Chain{Model: "groq/x"}).Stream(t.Context(), &llm.Request{}))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindUnavailable || !errors.As(err, &off) {
		t.Errorf("asking a provider that is off: %v", err)
	}
	if _, err := Build(map[string]Config{"mine": {APIKey: key}}, factories, Deps{}); err == nil {
		t.Error("an unknown provider without a base URL was built")
	}
}
