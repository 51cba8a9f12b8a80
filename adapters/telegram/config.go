package telegram

import (
	"fmt"
	"net/url"

	"parley/config/secret"
)

// Config is one entry of `platforms.telegram:`.
type Config struct {
	Name    string        `yaml:"name"`
	Token   secret.String `yaml:"token"`
	APIBase string        `yaml:"api_base"`
	// Mode is "poll" or "webhook".
	Mode string `yaml:"mode"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	return Config{Name: "main", APIBase: "https://api.telegram.org", Mode: "poll"}
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, fmt.Errorf("platforms.telegram: an entry has no name"))
	}
	if u, err := url.Parse(c.APIBase); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		errs = append(errs, fmt.Errorf("platforms.telegram.%s.api_base: %q is not an http or https URL", c.Name, c.APIBase))
	}
	if c.Mode != "poll" && c.Mode != "webhook" {
		errs = append(errs, fmt.Errorf("platforms.telegram.%s.mode: %q is not one of poll, webhook", c.Name, c.Mode))
	}
	return errs
}
