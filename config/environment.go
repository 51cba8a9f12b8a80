package config

import (
	"cmp"
	"strings"

	"parley/adapters/telegram"
	"parley/config/secret"
)

// fromEnvironment fills in what the file does not mention, and the model if there
// is only one that could be meant.
func (c *Config) fromEnvironment(e *expander) {
	get := func(name string) string {
		v, _ := e.env(name)
		if confidential.MatchString(name) {
			e.hide(v)
		}
		return strings.TrimSpace(v)
	}
	for _, known := range knownProviders {
		p, exists := c.Providers[known.name]
		key := get(known.variable)
		// A key goes to the provider's own address only, never to one from the file.
		keyless := !c.source.said("providers."+known.name+".api_key") && p.BaseURL == ""
		if key != "" && keyless {
			p.APIKey, exists = secret.New(key), true
		}
		if exists {
			p.BaseURL = cmp.Or(p.BaseURL, known.baseURL)
			c.Providers[known.name] = p
		}
	}
	if !c.source.said("database.url") {
		c.Database.URL = get("PARLEY_DATABASE_URL")
	}
	if allow := get("PARLEY_ALLOW"); allow != "" && !c.source.said("access.allow") {
		for _, person := range strings.Split(allow, ",") {
			c.Gateway.Access.Allow = append(c.Gateway.Access.Allow, strings.TrimSpace(person))
		}
	}
	if c.source.file == "" {
		c.platformsFromEnvironment(get)
	}
	if c.Model == "" {
		c.Model = c.onlyModel()
	}
}

func (c *Config) platformsFromEnvironment(get func(string) string) {
	if token := get("TELEGRAM_BOT_TOKEN"); token != "" {
		t := telegram.DefaultConfig()
		t.Token = secret.New(token)
		c.Platforms.Telegram = []telegram.Config{t}
	}
	if token := get("SLACK_BOT_TOKEN"); token != "" {
		s := defaultSlack()
		s.BotToken, s.AppToken = secret.New(token), secret.New(get("SLACK_APP_TOKEN"))
		c.Platforms.Slack = []SlackConfig{s}
	}
	if token := get("DISCORD_BOT_TOKEN"); token != "" {
		d := defaultDiscord()
		d.Token = secret.New(token)
		c.Platforms.Discord = []DiscordConfig{d}
	}
}
