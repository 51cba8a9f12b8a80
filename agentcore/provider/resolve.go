package provider

import (
	"fmt"
	"net/url"
	"strings"

	"parley/agentcore/llm"
)

// Demo is the mode of the built-in demo model, which needs neither key nor
// network. Configuration files cannot name it.
const Demo Mode = "demo"

// Known is what parley knows about a provider by its name.
type Known struct {
	Name string
	Mode Mode
	// BaseURL is used where the configuration names none.
	BaseURL string
	// Model is used when this is the only provider with a key and no model is named;
	// empty: there is no sensible one.
	Model llm.ModelID
	// Keyless providers work without an API key.
	Keyless bool
}

// known is the table behind KnownProvider.
var known = []Known{
	{Name: "openai", Mode: ChatCompletions, BaseURL: "https://api.openai.com/v1", Model: "openai/gpt-5-mini"},
	{Name: "openai-codex", Mode: CodexResponses, BaseURL: "https://api.openai.com/v1", Model: "openai-codex/gpt-5-mini"},
	{Name: "anthropic", Mode: AnthropicMessages, BaseURL: "https://api.anthropic.com", Model: "anthropic/claude-sonnet-4-5"},
	{Name: "openrouter", Mode: ChatCompletions, BaseURL: "https://openrouter.ai/api/v1", Model: "openrouter/openai/gpt-5-mini"},
	{Name: "gemini", Mode: ChatCompletions, BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", Model: "gemini/gemini-2.5-flash"},
	{Name: "groq", Mode: ChatCompletions, BaseURL: "https://api.groq.com/openai/v1", Model: "groq/openai/gpt-oss-120b"},
	{Name: "mistral", Mode: ChatCompletions, BaseURL: "https://api.mistral.ai/v1", Model: "mistral/mistral-medium-latest"},
	{Name: "deepseek", Mode: ChatCompletions, BaseURL: "https://api.deepseek.com/v1", Model: "deepseek/deepseek-chat"},
	{Name: "xai", Mode: ChatCompletions, BaseURL: "https://api.x.ai/v1", Model: "xai/grok-4"},
	{Name: "moonshot", Mode: ChatCompletions, BaseURL: "https://api.moonshot.ai/v1", Model: "moonshot/kimi-k2-0905-preview"},
	{Name: "together", Mode: ChatCompletions, BaseURL: "https://api.together.xyz/v1"},
	{Name: "ollama", Mode: ChatCompletions, BaseURL: "http://127.0.0.1:11434/v1", Keyless: true},
	{Name: "lmstudio", Mode: ChatCompletions, BaseURL: "http://127.0.0.1:1234/v1", Keyless: true},
	{Name: "llamacpp", Mode: ChatCompletions, BaseURL: "http://127.0.0.1:8080/v1", Keyless: true},
	{Name: "demo", Mode: Demo, Model: "demo/demo", Keyless: true},
}

// KnownProvider looks a provider up by its name.
func KnownProvider(name string) (Known, bool) {
	for _, k := range known {
		if k.Name == name {
			return k, true
		}
	}
	return Known{}, false
}

// KnownProviders lists all of them.
func KnownProviders() []Known { return append([]Known(nil), known...) }

// Resolve says which API a provider speaks: its explicit api_mode, else by its
// name, else by its base URL, else chat completions.
func Resolve(name string, c Config) Mode {
	if c.APIMode != "" {
		return c.APIMode
	}
	if k, ok := KnownProvider(name); ok {
		return k.Mode
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return ChatCompletions
	}
	path := strings.TrimRight(u.Path, "/")
	switch {
	case u.Hostname() == "api.anthropic.com", strings.HasSuffix(path, "/anthropic"), strings.HasSuffix(path, "/anthropic/v1"):
		return AnthropicMessages
	case strings.HasSuffix(path, "/codex"), strings.HasSuffix(path, "/codex/v1"):
		return CodexResponses
	}
	return ChatCompletions
}

// ModeError says that a provider needs an API mode that is not built in.
type ModeError struct {
	Provider string
	Mode     Mode
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("provider %s speaks %s, which this build of parley does not", e.Provider, e.Mode)
}

// OffError says why a model cannot be asked: nothing of the kind is configured, or
// the provider has no key.
type OffError struct {
	Provider string
	// Reason is for people and names the setting.
	Reason string
}

func (e *OffError) Error() string { return fmt.Sprintf("provider %s is off: %s", e.Provider, e.Reason) }
