package mcp

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"parley/config/secret"
)

// Config is `mcp_servers:`, by the servers' names.
type Config map[string]ServerConfig

// ServerConfig is one server: a command to run, or a URL to call.
type ServerConfig struct {
	// Command is run as it is, without a shell; it speaks MCP on its standard input
	// and output. Env is added to the few variables that it gets otherwise.
	Command string                   `yaml:"command"`
	Args    []string                 `yaml:"args"`
	Env     map[string]secret.String `yaml:"env"`
	// URL is a server's endpoint for streamable HTTP; Headers go with each request.
	URL     string                   `yaml:"url"`
	Headers map[string]secret.String `yaml:"headers"`
	// Tools are the server's tools that may be used, by its own names; empty: all.
	Tools []string `yaml:"tools"`
	// Timeout bounds a call; 0: a minute.
	Timeout time.Duration `yaml:"timeout"`
	// Ask has each call of the server approved.
	Ask bool `yaml:"ask"`
}

const defaultTimeout = time.Minute

func (c ServerConfig) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultTimeout
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Validate reports every wrong value with its key.
func (c Config) Validate() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c)) {
		s, key := c[name], "mcp_servers."+name
		if !serverName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s: the name must be letters, digits, - or _, at most 32", key))
		}
		if (s.Command == "") == (s.URL == "") {
			errs = append(errs, fmt.Errorf("%s: needs either command or url", key))
		}
		if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
			errs = append(errs, fmt.Errorf("%s.url: this is not an http or https URL", key))
		}
		if s.URL != "" && len(s.Args)+len(s.Env) > 0 {
			errs = append(errs, fmt.Errorf("%s: args and env are for a command", key))
		}
		if s.Command != "" && len(s.Headers) > 0 {
			errs = append(errs, fmt.Errorf("%s: headers are for a url", key))
		}
		if s.Timeout < 0 {
			errs = append(errs, fmt.Errorf("%s.timeout: must not be negative", key))
		}
	}
	return errs
}
