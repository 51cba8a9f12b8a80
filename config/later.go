package config

// Later holds the sections whose shape is checked and which this version cannot
// serve yet; Warnings names those that are in use.
type Later struct {
	Hooks HooksConfig `yaml:"hooks"`
}

// HooksConfig is `hooks:`, the commands that run around each tool call.
type HooksConfig struct {
	PreTool  []string `yaml:"pre_tool"`
	PostTool []string `yaml:"post_tool"`
}

// unserved lists what is in use and cannot be served, by key.
func (c *Config) unserved() []string {
	var keys []string
	use := func(key string, used bool) {
		if used {
			keys = append(keys, key)
		}
	}
	use("hooks", len(c.Hooks.PreTool)+len(c.Hooks.PostTool) > 0)
	return keys
}
