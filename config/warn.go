package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Warnings are what is allowed but probably not meant, a line each, in a fixed
// order: accounts and providers that are
// off, people who can never be answered, doors that stand open.
func (c *Config) Warnings() []string {
	var lines []string
	lines = append(lines, c.off()...)
	lines = append(lines, c.access()...)
	if c.Gateway.Approvals.Mode == "allow" {
		lines = append(lines, "approvals.mode is allow: dangerous tools run without a question")
	}
	host, _, _ := net.SplitHostPort(c.HTTP.Listen)
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && c.HTTP.AdminToken.Empty() {
		lines = append(lines, "http.listen is open to the network and http.admin_token is empty: /metrics answers on loopback only")
	}
	return lines
}

// off names accounts and providers without a token or key.
func (c *Config) off() []string {
	var lines []string
	note := func(key, field string) {
		line := fmt.Sprintf("%s is off: its %s is empty", key, field)
		if v := c.source.unset[key+"."+field]; v != "" {
			line = fmt.Sprintf("%s is off: %s is not set", key, v)
		}
		lines = append(lines, line)
	}
	for name, p := range c.Providers {
		if p.Off(name) {
			note("providers."+name, "api_key")
		}
	}
	slices.Sort(lines)
	if s := c.Tools.WebSearch; s.Provider != "" && s.Off() != "" {
		note("tools.web_search", "api_key")
	}
	for _, t := range c.Platforms.Telegram {
		if t.Token.Empty() {
			note("platforms.telegram."+t.Name, "token")
		}
	}
	for _, s := range c.Platforms.Slack {
		if s.BotToken.Empty() {
			note("platforms.slack."+s.Name, "bot_token")
		}
	}
	for _, d := range c.Platforms.Discord {
		if d.Token.Empty() {
			note("platforms.discord."+d.Name, "token")
		}
	}
	return lines
}

// access warns where everybody is answered, and where nobody ever can be
// (ACC-007, ACC-009).
func (c *Config) access() []string {
	var lines []string
	platforms := map[string]bool{}
	for _, p := range slices.Concat(c.Gateway.Access.Allow, c.Gateway.Access.Admins) {
		platform, id, _ := strings.Cut(p, ":")
		platforms[platform] = true
		if id == "*" {
			lines = append(lines, fmt.Sprintf("access.allow has %q: everybody on %s may use the bot, and spend your money", p, platform))
		}
	}
	for _, p := range []struct {
		name   string
		active int
		// claimed says that parley prints a link by which its owner claims the bot.
		claimed bool
	}{{"telegram", len(c.ActiveTelegram()), true}, {"slack", len(c.ActiveSlack()), false}, {"discord", len(c.ActiveDiscord()), false}} {
		switch {
		case p.active == 0 || platforms[p.name]:
		case !c.Gateway.Access.Pairing:
			lines = append(lines, fmt.Sprintf("nobody can reach the bot on %s: put %[1]s:ID into access.allow, or set access.pairing to true", p.name))
		case !p.claimed:
			lines = append(lines, fmt.Sprintf("access.admins and access.allow have nobody of %s: write to the bot there, and it says how it comes to know you", p.name))
		}
	}
	return lines
}
