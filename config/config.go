// Package config reads parley's configuration: one strict YAML file, or the
// environment alone.
//
// It guarantees that every mistake is reported at once, with its line and, for a
// misspelt key, with what was meant; that no message shows the value of a secret;
// and that a configuration which was loaded is valid. What a section means belongs
// to the component it configures: Config is a struct of the components' own Config
// types, and no component imports this package.
package config

import (
	"slices"

	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/telegram"
	"parley/adapters/web"
	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/provider"
	"parley/agentcore/spending"
	"parley/agentcore/tool/hook"
	"parley/agentcore/tool/mcp"
	"parley/agentcore/tool/terminal"
	fetch "parley/agentcore/tool/web"
	"parley/config/secret"
	"parley/gateway"
	"parley/gateway/httpserver"
	"parley/store"
)

// Config is the whole configuration file.
type Config struct {
	Database store.Config `yaml:"database"`
	// DataDir holds the private database and whatever else parley keeps on disk;
	// absolute once loaded.
	DataDir string            `yaml:"data_dir"`
	HTTP    httpserver.Config `yaml:"http"`
	Log     LogConfig         `yaml:"log"`

	Models `yaml:",inline"`

	Agent       agentcore.Config `yaml:"agent"`
	Budgets     spending.Config  `yaml:"budgets"`
	Compression engine.Config    `yaml:"compression"`
	Gateway     gateway.Config   `yaml:",inline"`
	// Embeddings is the model for recall by meaning; empty: by words alone.
	Embeddings ModelConfig `yaml:"embeddings"`
	// Transcription is the model that writes voice notes down; empty: nobody does.
	Transcription ModelConfig     `yaml:"transcription"`
	Skills        SkillsConfig    `yaml:"skills"`
	Tools         ToolsConfig     `yaml:"tools"`
	MCPServers    mcp.Config      `yaml:"mcp_servers"`
	Platforms     PlatformsConfig `yaml:"platforms"`

	// Delegation bounds subagents.
	Delegation agentcore.DelegationConfig `yaml:"delegation"`

	// Hooks are asked about each tool call.
	Hooks hook.Config `yaml:"hooks"`

	source *source
}

// LogConfig is `log:`.
type LogConfig struct {
	// Level is "debug", "info", "warn" or "error".
	Level string `yaml:"level"`
	// Format is "console" or "json".
	Format string `yaml:"format"`
}

// Models is which models are used and who serves them.
type Models struct {
	// Model is the primary one, as provider/model; empty if none could be told.
	Model             llm.ModelID                 `yaml:"model"`
	Providers         map[string]provider.Config  `yaml:"providers"`
	FallbackProviders []llm.ModelID               `yaml:"fallback_providers"`
	Auxiliary         AuxiliaryConfig             `yaml:"auxiliary"`
	Facts             map[llm.ModelID]FactsConfig `yaml:"models"`
}

// AuxiliaryConfig is `auxiliary:`, the models for side work; each has a chain of
// its own. An empty one means the primary model for compression and web pages, and
// that pictures are not described and sessions not named.
type AuxiliaryConfig struct {
	Compression provider.Chain `yaml:"compression"`
	Vision      provider.Chain `yaml:"vision"`
	WebExtract  provider.Chain `yaml:"web_extract"`
	Title       provider.Chain `yaml:"title"`
}

// FactsConfig is one entry of `models:`; zero fields leave the built-in facts.
type FactsConfig struct {
	ContextWindow   int         `yaml:"context_window"`
	MaxOutputTokens int         `yaml:"max_output_tokens"`
	Vision          bool        `yaml:"vision"`
	Price           PriceConfig `yaml:"price"`
}

// PriceConfig is per million tokens, in the budget's currency.
type PriceConfig struct {
	Input       float64 `yaml:"input"`
	CachedInput float64 `yaml:"cached_input"`
	Output      float64 `yaml:"output"`
}

// ModelConfig names one model, as provider/model; empty: off.
type ModelConfig struct {
	Model llm.ModelID `yaml:"model"`
}

// SkillsConfig is `skills:`.
type SkillsConfig struct {
	// Dir holds a folder with a SKILL.md for each skill; it need not be there.
	Dir string `yaml:"dir"`
}

// ToolsConfig is `tools:`.
type ToolsConfig struct {
	// Enabled names the tools; empty: the default set.
	Enabled []string `yaml:"enabled"`
	// Workspace is the folder that commands run in; empty: one under DataDir.
	Workspace string             `yaml:"workspace"`
	Terminal  terminal.Config    `yaml:"terminal"`
	Web       fetch.Config       `yaml:"web"`
	WebSearch fetch.SearchConfig `yaml:"web_search"`
}

// PlatformsConfig is `platforms:`; an account whose token is empty is off.
type PlatformsConfig struct {
	Telegram []telegram.Config `yaml:"telegram"`
	Slack    []slack.Config    `yaml:"slack"`
	Discord  []discord.Config  `yaml:"discord"`
	Web      web.Config        `yaml:"web"`
}

// Default is what holds where nothing is said: no model, no account, the web chat
// on, everybody refused until they are allowed or paired.
func Default() *Config {
	return &Config{
		DataDir:     "~/.parley",
		HTTP:        httpserver.DefaultConfig(),
		Log:         LogConfig{Level: "info", Format: "console"},
		Models:      Models{Providers: map[string]provider.Config{}},
		Agent:       agentcore.DefaultConfig(),
		Budgets:     spending.Config{Currency: "USD"},
		Compression: engine.DefaultConfig(),
		Gateway:     gateway.DefaultConfig(),
		Tools:       ToolsConfig{Terminal: terminal.DefaultConfig()},
		Platforms:   PlatformsConfig{Web: web.DefaultConfig()},
		Skills:      SkillsConfig{Dir: "./skills"},
		Delegation:  agentcore.DefaultDelegation(),
		Hooks:       hook.DefaultConfig(),
		source:      &source{lines: map[string]int{}, unset: map[string]string{}},
	}
}

// File is the path it was loaded from; empty: from the environment alone.
func (c *Config) File() string { return c.source.file }

// ModelFacts are the overrides of `models:`.
func (c *Config) ModelFacts() map[llm.ModelID]llm.Facts {
	facts := make(map[llm.ModelID]llm.Facts, len(c.Facts))
	for id, f := range c.Facts {
		facts[id] = llm.Facts{
			ContextWindow: f.ContextWindow, MaxOutput: f.MaxOutputTokens, Vision: f.Vision,
			Price: llm.Price(f.Price),
		}
	}
	return facts
}

// ActiveTelegram are the accounts that have a token.
func (c *Config) ActiveTelegram() []telegram.Config {
	return active(c.Platforms.Telegram, func(t telegram.Config) secret.String { return t.Token })
}

// ActiveSlack are the accounts that have a bot token.
func (c *Config) ActiveSlack() []slack.Config {
	return active(c.Platforms.Slack, func(s slack.Config) secret.String { return s.BotToken })
}

// ActiveDiscord are the accounts that have a token.
func (c *Config) ActiveDiscord() []discord.Config {
	return active(c.Platforms.Discord, func(d discord.Config) secret.String { return d.Token })
}

// active are the accounts that have a token.
func active[C any](accounts []C, token func(C) secret.String) []C {
	return slices.DeleteFunc(slices.Clone(accounts), func(c C) bool { return token(c).Empty() })
}

// Chain is the primary model and its fallbacks.
func (c *Config) Chain() provider.Chain {
	return provider.Chain{Model: c.Model, Fallback: c.FallbackProviders}
}

// Redact covers every secret of the configuration in a text.
func (c *Config) Redact(text string) string { return c.source.redact(text) }
