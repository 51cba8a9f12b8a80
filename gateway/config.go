package gateway

import (
	"fmt"
	"strings"
	"time"

	"parley/gateway/chat"
)

// Config is the gateway's part of the configuration file.
type Config struct {
	Conversations ConversationsConfig
	Access        AccessConfig
	Approvals     ApprovalsConfig
	Clarify       ClarifyConfig
	Shutdown      ShutdownConfig
	// Webhooks begin turns from outside, by name.
	Webhooks map[string]WebhookConfig `yaml:"webhooks"`
	// Streaming says whether answers are shown while they are written.
	Streaming Streaming
}

// Streaming is `streaming:`.
type Streaming string

// The ways of streaming. Auto is the platform's own where it has one, else edits.
const (
	StreamAuto Streaming = "auto"
	StreamEdit Streaming = "edit"
	StreamOff  Streaming = "off"
)

// BusyMode says what a message does while a turn runs.
type BusyMode string

// The busy modes.
const (
	BusyInterrupt BusyMode = "interrupt"
	BusyQueue     BusyMode = "queue"
	BusySteer     BusyMode = "steer"
)

// ConversationsConfig is `conversations:`.
type ConversationsConfig struct {
	Busy        BusyMode      `yaml:"busy"`
	GroupScope  chat.Scope    `yaml:"group_scope"`
	IdleTimeout time.Duration `yaml:"idle_timeout"`
}

// AccessConfig is `access:`.
type AccessConfig struct {
	// Allow and Admins list people as platform:id; "platform:*" in Allow opens a
	// platform to everybody.
	Allow   []string `yaml:"allow"`
	Admins  []string `yaml:"admins"`
	Pairing bool     `yaml:"pairing"`
	// Groups is "mention" (the default), "all" or "off".
	Groups string `yaml:"groups"`
}

// ApprovalsConfig is `approvals:`.
type ApprovalsConfig struct {
	// Mode is "ask", "deny" or "allow".
	Mode    string        `yaml:"mode"`
	Timeout time.Duration `yaml:"timeout"`
}

// ClarifyConfig is `clarify:`.
type ClarifyConfig struct {
	Timeout time.Duration `yaml:"timeout"`
}

// ShutdownConfig is `shutdown:`.
type ShutdownConfig struct {
	// Grace is how long running turns get after the first signal.
	Grace time.Duration `yaml:"grace"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	return Config{
		Conversations: ConversationsConfig{Busy: BusyInterrupt, GroupScope: chat.ScopeThread, IdleTimeout: 15 * time.Minute},
		Access:        AccessConfig{Pairing: true, Groups: "mention"},
		Approvals:     ApprovalsConfig{Mode: "ask", Timeout: 5 * time.Minute},
		Clarify:       ClarifyConfig{Timeout: time.Hour},
		Shutdown:      ShutdownConfig{Grace: 30 * time.Second},
		Streaming:     StreamAuto,
	}
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	oneOf := func(key, v string, allowed ...string) {
		for _, a := range allowed {
			if v == a {
				return
			}
		}
		errs = append(errs, fmt.Errorf("%s: %q is not one of %s", key, v, strings.Join(allowed, ", ")))
	}
	oneOf("conversations.busy", string(c.Conversations.Busy), "interrupt", "queue", "steer")
	oneOf("conversations.group_scope", string(c.Conversations.GroupScope), "thread", "person")
	oneOf("access.groups", c.Access.Groups, "mention", "all", "off")
	oneOf("approvals.mode", c.Approvals.Mode, "ask", "deny", "allow")
	oneOf("streaming", string(c.Streaming), "auto", "edit", "off")
	for _, d := range []struct {
		key string
		v   time.Duration
	}{
		{"conversations.idle_timeout", c.Conversations.IdleTimeout}, {"approvals.timeout", c.Approvals.Timeout},
		{"clarify.timeout", c.Clarify.Timeout}, {"shutdown.grace", c.Shutdown.Grace},
	} {
		if d.v <= 0 {
			errs = append(errs, fmt.Errorf("%s: %s must be more than 0", d.key, d.v))
		}
	}
	errs = append(errs, validWebhooks(c.Webhooks)...)
	errs = append(errs, validPeople("access.allow", c.Access.Allow, true)...)
	return append(errs, validPeople("access.admins", c.Access.Admins, false)...)
}

// validPeople refuses names: only ids that stay with a person authorise (ACC-004).
func validPeople(key string, list []string, star bool) []error {
	var errs []error
	for _, p := range list {
		platform, id, ok := strings.Cut(p, ":")
		switch {
		case !ok || platform == "" || id == "":
			errs = append(errs, fmt.Errorf("%s: %q is not platform:id (for example telegram:12345)", key, p))
		case strings.HasPrefix(id, "@"):
			errs = append(errs, fmt.Errorf("%s: %q is a name, which can change hands; use the numeric id (the bot tells it by /whoami)", key, p))
		case id == "*" && !star:
			errs = append(errs, fmt.Errorf("%s: %q would make everybody an admin; list people", key, p))
		}
	}
	return errs
}
