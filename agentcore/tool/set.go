package tool

import (
	"fmt"
	"regexp"
	"slices"

	"parley/agentcore/llm"
)

// legalName is what every provider accepts as a function's name.
var legalName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Set is an immutable collection of tools, sorted by name: what it declares to a
// model is the same bytes in every call, which keeps the cached prefix. The zero
// value and nil are empty sets.
type Set struct {
	names []string
	tools map[string]Tool
	specs []llm.ToolSpec
}

// NewSet collects tools. Two of one name, or a name that a provider would refuse,
// is an error.
func NewSet(tools ...Tool) (*Set, error) { return (*Set)(nil).Add(tools...) }

// Add returns a set with more tools; s does not change.
func (s *Set) Add(tools ...Tool) (*Set, error) {
	n := &Set{tools: map[string]Tool{}}
	for _, name := range s.Names() {
		n.tools[name] = s.tools[name]
		n.names = append(n.names, name)
	}
	for _, t := range tools {
		name := t.Spec().Name
		if !legalName.MatchString(name) {
			return nil, fmt.Errorf("tool: the name %q does not match %s", name, legalName)
		}
		if _, ok := n.tools[name]; ok {
			return nil, fmt.Errorf("tool: %q is there twice", name)
		}
		n.tools[name] = t
		n.names = append(n.names, name)
	}
	slices.Sort(n.names)
	for _, name := range n.names {
		n.specs = append(n.specs, n.tools[name].Spec().ToolSpec)
	}
	return n, nil
}

// Only returns the set of those tools that keep wants; s does not change.
func (s *Set) Only(keep func(Spec) bool) *Set {
	n := &Set{tools: map[string]Tool{}}
	for _, name := range s.Names() {
		if spec := s.tools[name].Spec(); keep(spec) {
			n.tools[name] = s.tools[name]
			n.names = append(n.names, name)
			n.specs = append(n.specs, spec.ToolSpec)
		}
	}
	return n
}

// Get returns the tool of that name.
func (s *Set) Get(name string) (Tool, bool) {
	if s == nil {
		return nil, false
	}
	t, ok := s.tools[name]
	return t, ok
}

// Specs declares the tools to a model, sorted by name.
func (s *Set) Specs() []llm.ToolSpec {
	if s == nil {
		return nil
	}
	return slices.Clone(s.specs)
}

// Names lists the tools' names, sorted.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.names)
}

// Len is the number of tools.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.names)
}
