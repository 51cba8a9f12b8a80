package config

import (
	"bytes"
	"maps"
	"net/url"
	"regexp"

	"go.yaml.in/yaml/v3"

	"parley/agentcore/provider"
	"parley/config/secret"
)

// Show is the effective configuration as YAML, with every default filled in, the
// API mode of each provider resolved, and every secret covered.
func (c *Config) Show() ([]byte, error) {
	shown := *c
	shown.Database.URL = RedactURL(c.Database.URL)
	shown.Providers = maps.Clone(c.Providers)
	for name, p := range c.Providers {
		p.APIMode = provider.Resolve(name, p)
		shown.Providers[name] = p
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&shown); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return []byte(c.source.redact(out.String())), nil
}

var dsnPassword = regexp.MustCompile(`password\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)`)

// RedactURL covers the password of a PostgreSQL URL or DSN.
func RedactURL(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		if _, ok := u.User.Password(); ok {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
		}
		dsn = u.String()
	}
	return dsnPassword.ReplaceAllString(dsn, "password="+secret.Mask)
}

// password is what must be kept out of messages about the database.
func password(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		p, _ := u.User.Password()
		return p
	}
	if m := dsnPassword.FindStringSubmatch(dsn); m != nil {
		return m[1]
	}
	return ""
}
