package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/provider"
)

// validate reports every wrong value, those that the components find included.
func (c *Config) validate() {
	var errs []error
	errs = append(errs, c.HTTP.Validate()...)
	errs = append(errs, c.Agent.Validate()...)
	errs = append(errs, c.Budgets.Validate()...)
	errs = append(errs, c.Delegation.Validate()...)
	errs = append(errs, c.Compression.Validate()...)
	errs = append(errs, c.Gateway.Validate()...)
	errs = append(errs, c.Tools.Terminal.Validate()...)
	errs = append(errs, c.Hooks.Validate()...)
	errs = append(errs, c.Tools.Web.Validate()...)
	errs = append(errs, c.Tools.WebSearch.Validate()...)
	errs = append(errs, c.MCPServers.Validate()...)
	errs = append(errs, c.validateWords()...)
	errs = append(errs, c.validateModels()...)
	errs = append(errs, c.validateAccounts()...)
	errs = append(errs, c.validatePeople("access.allow", c.Gateway.Access.Allow)...)
	errs = append(errs, c.validatePeople("access.admins", c.Gateway.Access.Admins)...)
	for _, err := range errs {
		c.source.addFor(err)
	}
}

func (c *Config) validateWords() []error {
	var errs []error
	for _, w := range []struct {
		key, value string
		allowed    []string
	}{
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"console", "json"}},
	} {
		if !slices.Contains(w.allowed, w.value) {
			errs = append(errs, fmt.Errorf("%s: %q is not one of %s", w.key, w.value, strings.Join(w.allowed, ", ")))
		}
	}
	return errs
}

func (c *Config) validateModels() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		errs = append(errs, c.Providers[name].Validate(name)...)
		if k, _ := provider.KnownProvider(name); c.Providers[name].BaseURL == "" && k.Mode != provider.Demo {
			errs = append(errs, fmt.Errorf("providers.%s: needs a base_url", name))
		}
	}
	models := c.named()
	for _, key := range slices.Sorted(maps.Keys(models)) {
		for _, m := range models[key] {
			if err := c.validateModel(key, m); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for id, f := range c.Facts {
		if f.ContextWindow < 0 || f.MaxOutputTokens < 0 || f.Price.Input < 0 || f.Price.CachedInput < 0 || f.Price.Output < 0 {
			errs = append(errs, fmt.Errorf("models.%s: numbers must not be negative", id))
		}
		if name, model := id.Split(); name == "" || model == "" {
			errs = append(errs, fmt.Errorf("models.%s: not provider/model", id))
		}
	}
	return errs
}

// validateModel wants provider/model with a provider that is known. The empty
// model is fine: it means the default.
func (c *Config) validateModel(key string, m llm.ModelID) error {
	name, model := m.Split()
	if m == "" {
		return nil
	}
	if name == "" || model == "" {
		return fmt.Errorf("%s: %q is not provider/model (for example openai/gpt-5-mini)", key, m)
	}
	_, configured := c.Providers[name]
	if _, known := provider.KnownProvider(name); known || configured {
		return nil
	}
	names := slices.Sorted(maps.Keys(c.Providers))
	for _, k := range provider.KnownProviders() {
		names = append(names, k.Name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("%s: there is no provider %q; did you mean %s/%s?", key, name, near, model)
	}
	return fmt.Errorf("%s: there is no provider %q; add it under providers", key, name)
}

var accountName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (c *Config) validateAccounts() []error {
	var errs []error
	taken := map[string]bool{}
	account := func(platform, name string) {
		key := "platforms." + platform
		switch {
		case !accountName.MatchString(name):
			errs = append(errs, fmt.Errorf("%s.%s: the name must be letters, digits, - or _, at most 64", key, name))
		case taken[platform+"/"+name]:
			errs = append(errs, fmt.Errorf("%s.%s: two accounts have this name", key, name))
		}
		taken[platform+"/"+name] = true
	}
	for _, t := range c.Platforms.Telegram {
		account("telegram", t.Name)
		errs = append(errs, t.Validate()...)
		if t.Mode == "webhook" {
			if err := t.Reachable(c.HTTP.PublicURL); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, s := range c.Platforms.Slack {
		account("slack", s.Name)
		errs = append(errs, s.Validate()...)
		if s.Mode == "events" && !s.BotToken.Empty() && c.HTTP.PublicURL == "" {
			errs = append(errs, fmt.Errorf("platforms.slack.%s.mode: events needs http.public_url", s.Name))
		}
	}
	for _, d := range c.Platforms.Discord {
		account("discord", d.Name)
		errs = append(errs, d.Validate()...)
	}
	return errs
}

// people says what an id looks like on each platform. Only ids that stay with a
// person may be listed: a name never matches, or is taken over (ACC-004).
var people = map[string]struct {
	id   *regexp.Regexp
	hint string
}{
	"telegram": {regexp.MustCompile(`^[0-9]{1,19}$`), "the number that the bot tells by /whoami"},
	"slack":    {regexp.MustCompile(`^[UW][A-Z0-9]+$`), "the member id that begins with U or W"},
	"discord":  {regexp.MustCompile(`^[0-9]{15,20}$`), "the number that Discord copies as user id"},
	"web":      {regexp.MustCompile(`.`), ""},
	"terminal": {regexp.MustCompile(`.`), ""},
}

// validatePeople adds to the gateway's own check what only the platform knows.
func (c *Config) validatePeople(key string, list []string) []error {
	var errs []error
	for _, p := range list {
		platform, id, ok := strings.Cut(p, ":")
		if !ok || platform == "" || id == "" || id == "*" || strings.HasPrefix(id, "@") {
			continue
		}
		shape, known := people[platform]
		switch {
		case !known:
			names := slices.Sorted(maps.Keys(people))
			errs = append(errs, fmt.Errorf("%s: %q: there is no platform %q; there are %s", key, p, platform, strings.Join(names, ", ")))
		case !shape.id.MatchString(id):
			errs = append(errs, fmt.Errorf("%s: %q: this is no %s id; use %s", key, p, platform, shape.hint))
		}
	}
	return errs
}

// CheckModel says why no model of the chain can be called; check is what the
// providers themselves say about one. Commands that answer messages need a model,
// the others do not. The error is an *Error.
func (c *Config) CheckModel(check func(llm.ModelID) error) error {
	if c.Model == "" {
		return c.Wrong(errors.New("model: none is named; write model: provider/model, or set exactly one of " + variables()))
	}
	why := check(c.Model)
	for _, m := range c.FallbackProviders {
		if why == nil || check(m) == nil {
			return nil
		}
	}
	if why == nil {
		return nil
	}
	name, _ := c.Model.Split()
	if variable := c.source.unset["providers."+name+".api_key"]; variable != "" {
		why = errors.New(variable + " is not set")
	}
	return c.Wrong(fmt.Errorf("model: %s cannot be called: %w", c.Model, why))
}

func variables() string {
	var names []string
	for _, v := range keyVariables {
		names = append(names, v.name)
	}
	return strings.Join(names, ", ")
}
