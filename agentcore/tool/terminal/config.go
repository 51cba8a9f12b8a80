package terminal

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Config is `tools.terminal:`.
type Config struct {
	// Sandbox is "auto" (what the machine has), "bwrap" or "landlock" (that one or no
	// terminal), or "off".
	Sandbox string `yaml:"sandbox"`
	// Read and Write are further folders that sandboxed commands may see and change,
	// absolute.
	Read  []string `yaml:"read"`
	Write []string `yaml:"write"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config { return Config{Sandbox: auto} }

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	if modes := []string{auto, onlyBwrap, onlyLandlock, off}; !slices.Contains(modes, c.Sandbox) {
		errs = append(errs, fmt.Errorf("tools.terminal.sandbox: %q is not one of %q", c.Sandbox, modes))
	}
	for key, paths := range map[string][]string{"read": c.Read, "write": c.Write} {
		for _, p := range paths {
			if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
				errs = append(errs, fmt.Errorf("tools.terminal.%s: %q must be an absolute path below /", key, p))
			}
		}
	}
	return errs
}
