package engine

import "fmt"

// Config is `compression:`.
type Config struct {
	Enabled bool `yaml:"enabled"`
	// Threshold and GatewayThreshold are fractions of the model's window.
	Threshold        float64 `yaml:"threshold"`
	GatewayThreshold float64 `yaml:"gateway_threshold"`
	// ProtectFirstN and ProtectLastN are messages that stay as they are.
	ProtectFirstN int `yaml:"protect_first_n"`
	ProtectLastN  int `yaml:"protect_last_n"`
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	return Config{Enabled: true, Threshold: 0.50, GatewayThreshold: 0.85, ProtectFirstN: 3, ProtectLastN: 20}
}

// Validate reports every wrong value with its key and what is allowed.
func (c Config) Validate() []error {
	var errs []error
	for _, f := range []struct {
		key string
		v   float64
	}{{"threshold", c.Threshold}, {"gateway_threshold", c.GatewayThreshold}} {
		if f.v <= 0 || f.v >= 1 {
			errs = append(errs, fmt.Errorf("compression.%s: %g must be between 0 and 1", f.key, f.v))
		}
	}
	if c.ProtectFirstN < 0 || c.ProtectLastN < 1 {
		errs = append(errs, fmt.Errorf("compression: protect_first_n must be at least 0 and protect_last_n at least 1"))
	}
	return errs
}
