package config

import (
	"cmp"

	"parley/agentcore/llm"
	"parley/agentcore/provider"
)

// keyVariables are the environment variables that hold a provider's key.
var keyVariables = []struct{ provider, name string }{
	{"openai", "OPENAI_API_KEY"},
	{"anthropic", "ANTHROPIC_API_KEY"},
	{"openrouter", "OPENROUTER_API_KEY"},
}

// complete fills in what is known about the providers, and adds those that are
// named by a model and need nothing but their name.
func (c *Config) complete() {
	for _, models := range c.named() {
		for _, m := range models {
			name, _ := m.Split()
			k, ok := provider.KnownProvider(name)
			if _, configured := c.Providers[name]; ok && k.Keyless && !configured {
				c.Providers[name] = provider.Config{}
			}
		}
	}
	for name, p := range c.Providers {
		k, _ := provider.KnownProvider(name)
		own := p.BaseURL != "" && p.BaseURL != k.BaseURL
		p.Keyless = own && !c.source.said("providers."+name+".api_key")
		p.BaseURL = cmp.Or(p.BaseURL, k.BaseURL)
		c.Providers[name] = p
	}
}

// onlyModel is the default model of the only provider that can be called, or empty.
func (c *Config) onlyModel() llm.ModelID {
	var model llm.ModelID
	for name, p := range c.Providers {
		k, _ := provider.KnownProvider(name)
		if p.Off(name) || k.Model == "" {
			continue
		}
		if model != "" {
			return ""
		}
		model = k.Model
	}
	return model
}

// named are all models that the configuration names, by key.
func (c *Config) named() map[string][]llm.ModelID {
	return map[string][]llm.ModelID{
		"model":                          {c.Model},
		"fallback_providers":             c.FallbackProviders,
		"auxiliary.compression.model":    {c.Auxiliary.Compression.Model},
		"auxiliary.compression.fallback": c.Auxiliary.Compression.Fallback,
		"auxiliary.vision.model":         {c.Auxiliary.Vision.Model},
		"auxiliary.vision.fallback":      c.Auxiliary.Vision.Fallback,
		"auxiliary.web_extract.model":    {c.Auxiliary.WebExtract.Model},
		"auxiliary.web_extract.fallback": c.Auxiliary.WebExtract.Fallback,
		"auxiliary.title.model":          {c.Auxiliary.Title.Model},
		"auxiliary.title.fallback":       c.Auxiliary.Title.Fallback,
		"agent.routing.fast":             {c.Agent.Routing.Fast},
		"agent.routing.smart":            {c.Agent.Routing.Smart},
		"embeddings.model":               {c.Embeddings.Model},
		"transcription.model":            {c.Transcription.Model},
	}
}
