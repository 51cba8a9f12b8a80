package telegram

import (
	"fmt"
	"net/url"
	"slices"

	"parley/config/secret"
)

// Config is one entry of `platforms.telegram:`.
type Config struct {
	Name    string        `yaml:"name"`
	Token   secret.String `yaml:"token"`
	APIBase string        `yaml:"api_base"`
	// Mode is "poll" or "webhook": Telegram pushes to /webhook/telegram/NAME below
	// http.public_url.
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

// Reachable says why Telegram cannot push to a public URL: its own servers want https
// on one of four ports.
func (c Config) Reachable(publicURL string) error {
	key := fmt.Sprintf("platforms.telegram.%s.mode", c.Name)
	u, err := url.Parse(publicURL)
	switch {
	case publicURL == "":
		return fmt.Errorf("%s: webhook needs http.public_url", key)
	case err != nil || u.Host == "":
		return fmt.Errorf("%s: webhook needs a URL in http.public_url, not %q", key, publicURL)
	case c.APIBase != DefaultConfig().APIBase:
		return nil
	case u.Scheme != "https":
		return fmt.Errorf("%s: webhook needs https in http.public_url, not %q; without it use poll", key, publicURL)
	case !slices.Contains([]string{"", "443", "80", "88", "8443"}, u.Port()):
		return fmt.Errorf("%s: webhook needs one of the ports 443, 80, 88, 8443 in http.public_url, not %s", key, u.Port())
	}
	return nil
}
