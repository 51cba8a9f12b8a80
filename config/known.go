package config

import (
	"parley/agentcore/llm"
)

// knownProvider is one that needs nothing but a key.
type knownProvider struct {
	name     string
	variable string
	baseURL  string
	// model is used when this is the only provider with a key and none is named.
	model llm.ModelID
}

var knownProviders = []knownProvider{
	{"openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "openai/gpt-5-mini"},
	{"anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "anthropic/claude-sonnet-4-5"},
	{"openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/openai/gpt-5-mini"},
}

func wellKnown(name string) bool {
	for _, known := range knownProviders {
		if known.name == name {
			return true
		}
	}
	return false
}

// onlyModel is the default model of the only provider that has a key, or empty.
func (c *Config) onlyModel() llm.ModelID {
	var model llm.ModelID
	for _, known := range knownProviders {
		if c.Providers[known.name].APIKey.Empty() {
			continue
		}
		if model != "" {
			return ""
		}
		model = known.model
	}
	return model
}
