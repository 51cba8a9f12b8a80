package provider

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
)

// Factory makes the provider of one API mode. The name is the provider's in the
// configuration; BaseURL is filled in.
type Factory func(name string, c Config) (llm.Provider, error)

// Deps are what a Set works with.
type Deps struct {
	Log *zap.Logger
	// Jitter is the factor of a wait, 0.8 to 1.2; nil: random.
	Jitter func() float64
	// Parallel bounds the requests that run at one provider at the same time; 0:
	// 1024.
	Parallel int
}

// Set is all configured providers, with what is known about their health. It is
// safe for concurrent use.
type Set struct {
	log       *zap.Logger
	jitter    func() float64
	providers map[string]*endpoint

	mu      sync.Mutex
	cooling map[llm.ModelID]time.Time // until then a failed model is passed over
}

// Build makes the providers. A provider without a key, and one whose mode has no
// factory, is off: asking it is an error that says so, and Check finds it
// beforehand. An error of Build is a configuration that cannot work.
func Build(configs map[string]Config, factories map[Mode]Factory, deps Deps) (*Set, error) {
	s := &Set{log: deps.Log, jitter: deps.Jitter, providers: map[string]*endpoint{}, cooling: map[llm.ModelID]time.Time{}}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.jitter == nil {
		s.jitter = func() float64 { return 0.8 + 0.4*rand.Float64() }
	}
	if deps.Parallel == 0 {
		deps.Parallel = 1024
	}
	var errs []error
	for name, c := range configs {
		e, err := build(name, c, factories)
		if err != nil {
			errs = append(errs, fmt.Errorf("providers.%s: %w", name, err))
			continue
		}
		e.gate = newGate(deps.Parallel)
		s.providers[name] = e
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func build(name string, c Config, factories map[Mode]Factory) (*endpoint, error) {
	k, _ := KnownProvider(name)
	if c.Off(name) {
		return &endpoint{off: &OffError{Provider: name, Reason: "its api_key is empty"}}, nil
	}
	mode := Resolve(name, c)
	factory := factories[mode]
	if factory == nil {
		return &endpoint{off: &ModeError{Provider: name, Mode: mode}}, nil
	}
	if c.BaseURL == "" {
		c.BaseURL = k.BaseURL
	}
	if c.BaseURL == "" && mode != Demo {
		return nil, errors.New("base_url is needed, since this provider is not a known one")
	}
	return newEndpoint(func(c Config) (llm.Provider, error) { return factory(name, c) }, c)
}

// Close gives up the providers' idle connections.
func (s *Set) Close() {
	for _, e := range s.providers {
		e.close()
	}
}

// Check says whether every model of a chain can be asked: nil, or a *ModeError or
// *OffError for each one that cannot.
func (s *Set) Check(c Chain) error {
	var errs []error
	for _, m := range c.models() {
		if _, err := s.endpoint(m); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Set) endpoint(m llm.ModelID) (*endpoint, error) {
	name, model := m.Split()
	e := s.providers[name]
	switch {
	case name == "" || model == "":
		return nil, &OffError{Provider: string(m), Reason: "a model is written provider/model"}
	case e == nil:
		return nil, &OffError{Provider: name, Reason: "it is not in the configuration"}
	case e.off != nil:
		return nil, e.off
	}
	return e, nil
}

// models returns the chain in order, each model once.
func (c Chain) models() []llm.ModelID {
	var out []llm.ModelID
	seen := map[llm.ModelID]bool{}
	for _, m := range append([]llm.ModelID{c.Model}, c.Fallback...) {
		if m != "" && !seen[m] {
			seen[m] = true
			out = append(out, m)
		}
	}
	return out
}

// Chain returns the chain as one provider: it asks the model, recovers, and falls
// back as Recovery does. A request that names another model asks that one first.
// It is cheap to make.
func (s *Set) Chain(c Chain) llm.Provider { return &Recovery{set: s, models: c.models()} }

// order returns the chain without the models that are cooling down, unless all
// are.
func (s *Set) order(models []llm.ModelID) []llm.ModelID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fit []llm.ModelID
	for _, m := range models {
		if !time.Now().Before(s.cooling[m]) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return models
	}
	return fit
}

func (s *Set) cool(m llm.ModelID, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cooling[m] = time.Now().Add(d)
}

func (s *Set) warm(m llm.ModelID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cooling, m)
}
