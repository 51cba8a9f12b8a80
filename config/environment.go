package config

import (
	"strings"

	"parley/adapters/discord"
	"parley/adapters/slack"
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
	for _, v := range keyVariables {
		p := c.Providers[v.provider]
		// A key goes to the provider's own address only, never to one from the file.
		keyless := !c.source.said("providers."+v.provider+".api_key") && p.BaseURL == ""
		if key := get(v.name); key != "" && keyless {
			p.APIKey = secret.New(key)
			c.Providers[v.provider] = p
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
	c.complete()
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
		s := slack.DefaultConfig()
		s.BotToken, s.AppToken = secret.New(token), secret.New(get("SLACK_APP_TOKEN"))
		c.Platforms.Slack = []slack.Config{s}
	}
	if token := get("DISCORD_BOT_TOKEN"); token != "" {
		d := discord.DefaultConfig()
		d.Token = secret.New(token)
		c.Platforms.Discord = []discord.Config{d}
	}
}
