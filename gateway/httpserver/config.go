// Package httpserver is the one listener: health, readiness, metrics and the
// handlers of the adapters.
//
// It guarantees that no answer goes out without the headers that keep foreign
// pages out, that a panic of a handler costs one request and leaves an id in the
// log, that bodies and times are bounded while streams may stay open, and that a
// stop ends streams at once and lets other requests finish.
package httpserver

import (
	"fmt"
	"net"
	"net/url"

	"parley/config/secret"
)

// Config is `http:`.
type Config struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string `yaml:"listen"`
	// PublicURL is how the outside reaches the listener; needed for webhooks.
	PublicURL string `yaml:"public_url"`
	// AdminToken opens /metrics from elsewhere; empty: loopback only.
	AdminToken secret.String `yaml:"admin_token"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config { return Config{Listen: "127.0.0.1:8080"} }

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	_, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("http.listen: %q is not host:port", c.Listen))
	}
	if c.PublicURL != "" {
		if u, err := url.Parse(c.PublicURL); err != nil || u.Scheme == "" || u.Host == "" {
			errs = append(errs, fmt.Errorf("http.public_url: %q is not a URL", c.PublicURL))
		}
	}
	return errs
}
