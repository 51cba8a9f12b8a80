// Package provider stands between the agent and the providers of models: it
// resolves which API mode a provider speaks, and recovers from failed calls
// (retry, fallback), which nothing else does.
package provider

import (
	"fmt"
	"net/url"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// Mode is an API that a provider speaks.
type Mode string

// The API modes.
const (
	ChatCompletions   Mode = "chat_completions"
	CodexResponses    Mode = "codex_responses"
	AnthropicMessages Mode = "anthropic_messages"
)

// Config is one entry of `providers:`.
type Config struct {
	APIKey  secret.String `yaml:"api_key"`
	BaseURL string        `yaml:"base_url"`
	APIMode Mode          `yaml:"api_mode"`
	// Keyless says that no key is meant to be sent: a server of one's own, for which
	// none was written. An empty key without it switches the provider off.
	Keyless bool `yaml:"-"`
}

// Off says that the provider cannot be called, since it wants a key and has none.
func (c Config) Off(name string) bool {
	k, _ := KnownProvider(name)
	return c.APIKey.Empty() && !c.Keyless && !k.Keyless
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate(name string) []error {
	var errs []error
	if c.BaseURL != "" {
		if u, err := url.Parse(c.BaseURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			errs = append(errs, fmt.Errorf("providers.%s.base_url: %q is not an http or https URL", name, c.BaseURL))
		}
	}
	switch c.APIMode {
	case "", ChatCompletions, CodexResponses, AnthropicMessages:
	default:
		errs = append(errs, fmt.Errorf("providers.%s.api_mode: %q is not one of chat_completions, codex_responses, anthropic_messages", name, c.APIMode))
	}
	return errs
}

// Chain is a model and what to fall back to, in order.
type Chain struct {
	Model    llm.ModelID   `yaml:"model"`
	Fallback []llm.ModelID `yaml:"fallback"`
}
