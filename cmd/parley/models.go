package main

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/llm"
	"parley/agentcore/provider"
	"parley/agentcore/provider/anthropic"
	"parley/agentcore/provider/chatcompletions"
	"parley/agentcore/provider/demo"
	"parley/agentcore/provider/responses"
	"parley/config"
)

// models are the configured models, as the agent asks them.
type models struct {
	set      *provider.Set
	primary  llm.ModelID
	fallback []llm.ModelID
	facts    map[llm.ModelID]llm.Facts
	routing  agentcore.RoutingConfig
}

// newModels makes the providers. THE list of API modes.
func newModels(c *config.Config, log *zap.Logger) (*models, error) {
	set, err := provider.Build(c.Providers, map[provider.Mode]provider.Factory{
		provider.ChatCompletions: func(name string, p provider.Config) (llm.Provider, error) {
			return chatcompletions.New(chatcompletions.Config{Name: name, BaseURL: p.BaseURL, APIKey: p.APIKey}, chatcompletions.Deps{Log: log})
		},
		provider.CodexResponses: func(name string, p provider.Config) (llm.Provider, error) {
			return responses.New(responses.Config{Name: name, BaseURL: p.BaseURL, APIKey: p.APIKey}, responses.Deps{Log: log})
		},
		provider.AnthropicMessages: func(name string, p provider.Config) (llm.Provider, error) {
			return anthropic.New(anthropic.Config{Name: name, BaseURL: p.BaseURL, APIKey: p.APIKey}, anthropic.Deps{Log: log})
		},
		provider.Demo: func(string, provider.Config) (llm.Provider, error) { return demo.New(demo.Config{}), nil },
	}, provider.Deps{Log: log})
	if err != nil {
		return nil, err
	}
	return &models{set: set, primary: c.Model, fallback: c.FallbackProviders, facts: c.ModelFacts(), routing: c.Agent.Routing}, nil
}

// Stream implements llm.Provider: it asks the model that the conversation uses, and
// falls back as configured.
func (m *models) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return m.set.Chain(m.chain(req.Model)).Stream(ctx, req)
}

// chain begins with the primary model, or with the one that a person or the routing
// chose. Behind the routing's choice stands the primary one.
func (m *models) chain(first llm.ModelID) provider.Chain {
	c := provider.Chain{Model: cmp.Or(first, m.primary), Fallback: m.fallback}
	if first != "" && (first == m.routing.Fast || first == m.routing.Smart) {
		c.Fallback = append([]llm.ModelID{m.primary}, m.fallback...)
	}
	return c
}

// Facts are what is known about a model.
func (m *models) Facts(id llm.ModelID) llm.Facts { return llm.FactsOf(id, m.facts) }

// Check says why a model cannot be asked.
func (m *models) Check(id llm.ModelID) error { return m.set.Check(provider.Chain{Model: id}) }

// Window is the smallest context window of a chain.
func (m *models) Window(c provider.Chain) int {
	window := m.Facts(c.Model).ContextWindow
	for _, id := range c.Fallback {
		window = min(window, m.Facts(id).ContextWindow)
	}
	return window
}

// Ready says why no model can be asked at all, for /readyz.
func (m *models) Ready() error {
	err := m.Check(m.primary)
	for _, id := range m.fallback {
		if err == nil || m.Check(id) == nil {
			return nil
		}
	}
	return err
}

// loadModels makes the models and checks what only this binary knows: which API
// modes and tools it has. The error is a *config.Error.
func loadModels(c *config.Config, log *zap.Logger) (*models, error) {
	m, err := newModels(c, log)
	if err != nil {
		return nil, c.Wrong(err)
	}
	if err := checkTools(c); err != nil {
		return nil, err
	}
	if err := c.CheckModel(m.Check); err != nil {
		return nil, err
	}
	return m, nil
}

// words turns a model's failure into what a person can do about it.
func words(err error) string {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return ""
	}
	switch e.Kind {
	case llm.KindAuth:
		return "the key is refused: check providers.NAME.api_key"
	case llm.KindBilling:
		return "the account has no credit left: top it up at the provider, or name another model"
	case llm.KindNotFound:
		return "the provider has no such model: correct model:, or fallback_providers:"
	case llm.KindNetwork, llm.KindTimeout:
		return "the provider cannot be reached: check providers.NAME.base_url and the network"
	case llm.KindRateLimit, llm.KindOverloaded:
		return "the provider is busy: try again in a minute"
	default:
		return "the provider's answer is above; `log: { level: debug }` shows the whole exchange"
	}
}
