package terminal

import "fmt"

// Config is `tools.terminal:`.
type Config struct {
	// Sandbox is "auto" or "off".
	Sandbox string `yaml:"sandbox"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config { return Config{Sandbox: "auto"} }

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	if c.Sandbox != "auto" && c.Sandbox != "off" {
		return []error{fmt.Errorf(`tools.terminal.sandbox: %q must be "auto" or "off"`, c.Sandbox)}
	}
	return nil
}
