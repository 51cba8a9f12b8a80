// Package terminal is the tool that runs commands: each in a process group of its
// own, whose whole tree is killed when the call ends.
package terminal

// Config is `tools.terminal:`.
type Config struct {
	// Sandbox is "auto" or "off".
	Sandbox string `yaml:"sandbox"`
}
