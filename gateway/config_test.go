package gateway

import (
	"strings"
	"testing"
	"time"
)

// SHD-006: no time limit is zero by mistake: the defaults have one each, and a zero is
// refused with its key.
func TestTimeLimitsAreNeverZero(t *testing.T) {
	if errs := DefaultConfig().Validate(); len(errs) > 0 {
		t.Errorf("the defaults: %v", errs)
	}
	for key, limit := range map[string]func(*Config) *time.Duration{
		"conversations.idle_timeout": func(c *Config) *time.Duration { return &c.Conversations.IdleTimeout },
		"approvals.timeout":          func(c *Config) *time.Duration { return &c.Approvals.Timeout },
		"clarify.timeout":            func(c *Config) *time.Duration { return &c.Clarify.Timeout },
		"shutdown.grace":             func(c *Config) *time.Duration { return &c.Shutdown.Grace },
	} {
		for _, d := range []time.Duration{0, -time.Second} {
			c := DefaultConfig()
			*limit(&c) = d
			if errs := c.Validate(); len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), key+": ") {
				t.Errorf("%s %s: %v", key, d, errs)
			}
		}
	}
}
