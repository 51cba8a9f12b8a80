package slack

import (
	"fmt"
	"net/url"
	"strings"

	"parley/config/secret"
)

// Config is one entry of `platforms.slack:`.
type Config struct {
	Name string `yaml:"name"`
	// BotToken begins with xoxb-, AppToken, which Socket Mode needs, with xapp-.
	BotToken secret.String `yaml:"bot_token"`
	AppToken secret.String `yaml:"app_token"`
	// SigningSecret is needed in mode events.
	SigningSecret secret.String `yaml:"signing_secret"`
	APIBase       string        `yaml:"api_base"`
	// Mode is "socket" or "events".
	Mode string `yaml:"mode"`
}

// The modes.
const (
	modeSocket = "socket"
	modeEvents = "events"
)

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	return Config{Name: "main", APIBase: "https://slack.com/api/", Mode: modeSocket}
}

// Validate reports every wrong value with its key and what is allowed. An account
// without a bot token is off, and lacks nothing; one without an app-level token says
// so when it is run or probed, and the others go on.
func (c Config) Validate() []error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("platforms.slack.%s.%s: %s", c.Name, key, fmt.Sprintf(format, args...)))
	}
	if c.Name == "" {
		errs = append(errs, fmt.Errorf("platforms.slack: an entry has no name"))
	}
	if u, err := url.Parse(c.APIBase); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		wrong("api_base", "%q is not an http or https URL", c.APIBase)
	}
	if c.Mode != modeSocket && c.Mode != modeEvents {
		wrong("mode", "%q is not one of socket, events", c.Mode)
	}
	if c.BotToken.Empty() {
		return errs
	}
	switch {
	case strings.HasPrefix(c.BotToken.Reveal(), "xapp-"):
		wrong("bot_token", "this is an app-level token; the bot token begins with xoxb- and stands on the page OAuth & Permissions")
	case c.Mode == modeSocket && strings.HasPrefix(c.AppToken.Reveal(), "xoxb-"):
		wrong("app_token", "this is a bot token; the app-level token begins with xapp-")
	case c.Mode == modeEvents && c.SigningSecret.Empty():
		wrong("signing_secret", "events mode needs the signing secret (Basic Information, App Credentials)")
	}
	return errs
}
