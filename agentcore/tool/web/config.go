package web

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/config/secret"
)

// Config is `tools.web:`.
type Config struct {
	// AllowPrivate lists what web_fetch may reach although it is not public: a host
	// name, an address or a network (10.1.0.0/16), each but the last with an optional
	// port. Cloud metadata and other link-local addresses are reached only if an
	// address or network here names them.
	AllowPrivate []string `yaml:"allow_private"`
}

// Validate reports every entry that is none.
func (c Config) Validate() []error {
	var errs []error
	for _, entry := range c.AllowPrivate {
		if _, err := parsePermit(entry); err != nil {
			errs = append(errs, fmt.Errorf("tools.web.allow_private: %w", err))
		}
	}
	return errs
}

// permit is one entry of AllowPrivate.
type permit struct {
	host    string // lower case; empty for addresses
	network netip.Prefix
	port    uint16 // 0: any
}

func parsePermit(entry string) (permit, error) {
	wrong := fmt.Errorf("%q is no host, address or network, such as wiki.lan, 10.0.0.5:8080 or 10.1.0.0/16", entry)
	if n, err := netip.ParsePrefix(entry); err == nil {
		return permit{network: n.Masked()}, nil
	}
	host, port := entry, ""
	if h, p, err := net.SplitHostPort(entry); err == nil {
		host, port = h, p
	}
	var out permit
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return permit{}, wrong
		}
		out.port = uint16(n)
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		out.network = netip.PrefixFrom(a.Unmap().WithZone(""), a.Unmap().BitLen())
		return out, nil
	}
	if host == "" || strings.ContainsAny(host, "/:@?#* ") {
		return permit{}, wrong
	}
	out.host = canonicalHost(host)
	return out, nil
}

func canonicalHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// SearchConfig is `tools.web_search:`.
type SearchConfig struct {
	// Provider is "brave", "tavily", "searxng", or empty: no web_search.
	Provider string        `yaml:"provider"`
	APIKey   secret.String `yaml:"api_key"`
	// BaseURL is where the API is; only searxng has no default.
	BaseURL string `yaml:"base_url"`
}

// Validate reports what is missing for the provider.
func (c SearchConfig) Validate() []error {
	var errs []error
	names := make([]string, 0, len(engines))
	for _, e := range engines {
		names = append(names, e.name)
	}
	i := slices.Index(names, c.Provider)
	if c.Provider != "" && i < 0 {
		return []error{fmt.Errorf("tools.web_search.provider: %q is not one of %s", c.Provider, strings.Join(names, ", "))}
	}
	if c.BaseURL != "" {
		if u, err := url.Parse(c.BaseURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			errs = append(errs, fmt.Errorf("tools.web_search.base_url: %q is not an http or https URL", c.BaseURL))
		}
	} else if i >= 0 && engines[i].base == "" {
		errs = append(errs, fmt.Errorf("tools.web_search.base_url: %s needs the address of its server", c.Provider))
	}
	return errs
}

// Off says why there is no web_search; empty if there is. A provider whose key is
// empty is off, like every account.
func (c SearchConfig) Off() string {
	switch i := slices.IndexFunc(engines, func(e engine) bool { return e.name == c.Provider }); {
	case i < 0:
		return "no provider is named"
	case engines[i].needsKey && c.APIKey.Empty():
		return "its api_key is empty"
	}
	return ""
}
