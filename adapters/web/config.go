package web

// Config is `platforms.web:`.
type Config struct {
	Enabled bool `yaml:"enabled"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config { return Config{Enabled: true} }
