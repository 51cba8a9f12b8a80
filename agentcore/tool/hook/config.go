package hook

import (
	"fmt"
	"strings"
	"time"
)

// Config is `hooks:`: commands that are asked before and after each tool call, in
// order.
type Config struct {
	PreTool  []string `yaml:"pre_tool"`
	PostTool []string `yaml:"post_tool"`
	// Timeout bounds each command; one that takes longer counts as failed.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config { return Config{Timeout: 10 * time.Second} }

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	for key, commands := range map[string][]string{"pre_tool": c.PreTool, "post_tool": c.PostTool} {
		for _, command := range commands {
			if strings.TrimSpace(command) == "" {
				errs = append(errs, fmt.Errorf("hooks.%s: a command is empty", key))
			}
		}
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("hooks.timeout: %s must be more than 0", c.Timeout))
	}
	return errs
}
