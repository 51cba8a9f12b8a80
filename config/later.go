package config

import "parley/config/secret"

// Later holds the sections whose shape is checked and which this version cannot
// serve yet; Warnings names those that are in use.
type Later struct {
	Hooks    HooksConfig              `yaml:"hooks"`
	Webhooks map[string]WebhookConfig `yaml:"webhooks"`
}

// HooksConfig is `hooks:`, the commands that run around each tool call.
type HooksConfig struct {
	PreTool  []string `yaml:"pre_tool"`
	PostTool []string `yaml:"post_tool"`
}

// WebhookConfig is one entry of `webhooks:`.
type WebhookConfig struct {
	Secret  secret.String `yaml:"secret"`
	Prompt  string        `yaml:"prompt"`
	Deliver string        `yaml:"deliver"`
}

// unserved lists what is in use and cannot be served, by key.
func (c *Config) unserved() []string {
	var keys []string
	use := func(key string, used bool) {
		if used {
			keys = append(keys, key)
		}
	}
	use("hooks", len(c.Hooks.PreTool)+len(c.Hooks.PostTool) > 0)
	use("webhooks", len(c.Webhooks) > 0)
	return keys
}
