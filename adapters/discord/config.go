package discord

import (
	"fmt"
	"net/url"

	"parley/config/secret"
)

// Config is one entry of `platforms.discord:`.
type Config struct {
	Name    string        `yaml:"name"`
	Token   secret.String `yaml:"token"`
	APIBase string        `yaml:"api_base"`
	// Threads begins a thread on each message of a channel that mentions the bot; else
	// it answers in the channel.
	Threads bool `yaml:"threads"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	return Config{Name: "main", APIBase: "https://discord.com/api/v9", Threads: true}
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, fmt.Errorf("platforms.discord: an entry has no name"))
	}
	if u, err := url.Parse(c.APIBase); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		errs = append(errs, fmt.Errorf("platforms.discord.%s.api_base: %q is not an http or https URL", c.Name, c.APIBase))
	}
	return errs
}
