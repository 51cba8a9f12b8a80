package agentcore

import (
	"fmt"

	"parley/agentcore/llm"
	"parley/store/record"
)

// Config is `agent:`.
type Config struct {
	// MaxTurns bounds the model calls of one chat turn.
	MaxTurns   int              `yaml:"max_turns"`
	Iterations IterationsConfig `yaml:"iterations"`
	// Personality begins the system prompt; empty: the built-in one.
	Personality string        `yaml:"personality"`
	Routing     RoutingConfig `yaml:"routing"`
}

// IterationsConfig bounds unattended turns.
type IterationsConfig struct {
	Trigger  record.Budget `yaml:"trigger"`
	Schedule record.Budget `yaml:"schedule"`
}

// RoutingConfig names the models for light and for hard messages; an empty one is
// the primary model, and with both empty nothing is routed.
type RoutingConfig struct {
	Fast  llm.ModelID `yaml:"fast"`
	Smart llm.ModelID `yaml:"smart"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	b := record.Budget{Initial: 10, Step: 10, Cap: 25}
	return Config{MaxTurns: 500, Iterations: IterationsConfig{Trigger: b, Schedule: b}}
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	if c.MaxTurns < 1 {
		errs = append(errs, fmt.Errorf("agent.max_turns: %d must be at least 1", c.MaxTurns))
	}
	for key, b := range map[string]record.Budget{"trigger": c.Iterations.Trigger, "schedule": c.Iterations.Schedule} {
		if b.Initial < 1 || b.Step < 0 || b.Cap < b.Initial {
			errs = append(errs, fmt.Errorf("agent.iterations.%s: needs initial ≥ 1, step ≥ 0 and cap ≥ initial", key))
		}
	}
	return errs
}

// Budget is what a turn of that trust begins with.
func (c Config) Budget(t record.Trust) record.Budget {
	switch t {
	case record.TrustSchedule:
		return c.Iterations.Schedule
	case record.TrustUntrusted:
		return c.Iterations.Trigger
	case record.TrustUser:
	}
	return record.Budget{Initial: c.MaxTurns, Cap: c.MaxTurns}
}
