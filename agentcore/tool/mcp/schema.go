package mcp

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

const (
	schemaLimit      = 16 << 10 // bytes of a tool's schema
	schemaDepth      = 8
	propertyLimit    = 100
	enumLimit        = 100
	descriptionLimit = 500 // bytes of a property's
)

// shape is the part of JSON Schema that every API mode takes. Whatever a server says
// beyond it is left out: the server checks its arguments itself.
type shape struct {
	Type        string           `json:"type,omitempty"`
	Description string           `json:"description,omitempty"`
	Enum        []any            `json:"enum,omitempty"`
	Properties  map[string]shape `json:"properties,omitempty"` // sorted when it is written
	Required    []string         `json:"required,omitempty"`
	Items       *shape           `json:"items,omitempty"`
	AnyOf       []shape          `json:"anyOf,omitempty"`
	Minimum     *float64         `json:"minimum,omitempty"`
	Maximum     *float64         `json:"maximum,omitempty"`
}

// normalise makes a schema that every API mode takes of a server's: an object at the
// top, no references, nothing beside types, descriptions, enums, properties, items and
// alternatives, and bounded in depth and size. The same schema gives the same bytes.
func normalise(schema any) json.RawMessage {
	raw, err := json.Marshal(schema)
	var root map[string]any
	if err != nil || json.Unmarshal(raw, &root) != nil {
		root = nil
	}
	n := normaliser{root: root}
	s := n.object(root, 0)
	s.Description = ""
	b, err := json.Marshal(topObject{Type: "object", Properties: s.Properties, Required: s.Required})
	if err != nil || len(b) > schemaLimit {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return b
}

// topObject has its properties even if there are none, which some APIs want.
type topObject struct {
	Type       string           `json:"type"`
	Properties map[string]shape `json:"properties"`
	Required   []string         `json:"required,omitempty"`
}

// normaliser follows references into root, no deeper than schemaDepth.
type normaliser struct{ root map[string]any }

// schema normalises one place.
func (n normaliser) schema(v any, depth int) (shape, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return shape{}, v == true // false allows no value
	}
	if m = n.resolve(m); depth > schemaDepth {
		return shape{Description: description(m)}, true
	}
	s := shape{Type: n.typeOf(m), Description: description(m), Enum: enum(m)}
	switch s.Type {
	case "object":
		o := n.object(m, depth)
		o.Description = s.Description
		return o, true
	case "array":
		item, ok := n.schema(m["items"], depth+1)
		if !ok {
			item = shape{}
		}
		s.Items = &item
	case "number", "integer":
		s.Minimum, s.Maximum = number(m["minimum"]), number(m["maximum"])
	case "":
		s.AnyOf = n.alternatives(m, depth)
	}
	if len(s.AnyOf) == 1 {
		only := s.AnyOf[0]
		if only.Description == "" {
			only.Description = s.Description
		}
		return only, true
	}
	return s, true
}

// object collects the properties of an object and of all its alternatives and parts:
// a union at the top is refused by most APIs. Required is what the object itself and
// its parts require.
func (n normaliser) object(m map[string]any, depth int) shape {
	s := shape{Type: "object", Properties: map[string]shape{}}
	required := map[string]bool{}
	n.collect(m, depth, &s, required)
	for _, name := range slices.Sorted(maps.Keys(required)) {
		if _, ok := s.Properties[name]; ok {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

var legalProperty = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// collect adds the properties of m to s; a nil required adds none there.
func (n normaliser) collect(m map[string]any, depth int, s *shape, required map[string]bool) {
	m = n.resolve(m)
	if depth > schemaDepth {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !legalProperty.MatchString(name) || len(s.Properties) >= propertyLimit {
			continue
		}
		if p, ok := n.schema(properties[name], depth+1); ok {
			if _, there := s.Properties[name]; !there {
				s.Properties[name] = p
			}
		}
	}
	names, _ := m["required"].([]any)
	for _, v := range names {
		if name, ok := v.(string); ok && required != nil {
			required[name] = true
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := m[key].([]any)
		for _, part := range parts {
			if sub, ok := part.(map[string]any); ok {
				if key == "allOf" {
					n.collect(sub, depth+1, s, required)
				} else {
					n.collect(sub, depth+1, s, nil)
				}
			}
		}
	}
}

// alternatives are those of anyOf, oneOf, allOf and of a list of types, but null.
func (n normaliser) alternatives(m map[string]any, depth int) []shape {
	var out []shape
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		parts, _ := m[key].([]any)
		for _, part := range parts {
			if sub, ok := part.(map[string]any); ok && sub["type"] == "null" {
				continue
			}
			if s, ok := n.schema(part, depth+1); ok && len(out) < enumLimit {
				out = append(out, s)
			}
		}
	}
	types, _ := m["type"].([]any)
	for _, t := range types {
		if name, ok := t.(string); ok && name != "null" {
			one := maps.Clone(m)
			one["type"] = name
			delete(one, "description")
			if s, ok := n.schema(one, depth+1); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// resolve follows references within the schema; one that leads nowhere, or in a
// circle, is anything.
func (n normaliser) resolve(m map[string]any) map[string]any {
	for range schemaDepth {
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		target := n.pointer(ref)
		if target == nil {
			break
		}
		if text, ok := m["description"]; ok {
			target = maps.Clone(target)
			target["description"] = text
		}
		m = target
	}
	if _, ok := m["$ref"]; ok {
		return map[string]any{"description": m["description"]}
	}
	return m
}

func (n normaliser) pointer(ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = n.root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	m, _ := at.(map[string]any)
	return m
}

// typeOf is the one type of a place, told by what it says where it names none.
func (n normaliser) typeOf(m map[string]any) string {
	known := []string{"string", "number", "integer", "boolean", "object", "array"}
	if t, ok := m["type"].(string); ok {
		if slices.Contains(known, t) {
			return t
		}
		return ""
	}
	if list, ok := m["type"].([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		if t, ok := first(list).(string); ok && len(list) == 1 && slices.Contains(known, t) {
			return t
		}
		return ""
	}
	if _, ok := m["properties"]; ok {
		return "object"
	}
	if _, ok := m["items"]; ok {
		return "array"
	}
	if values := enum(m); len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool { _, ok := v.(string); return !ok }) {
		return "string"
	}
	return ""
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// enum are the scalars of enum and const.
func enum(m map[string]any) []any {
	values, _ := m["enum"].([]any)
	if c, ok := m["const"]; ok {
		values = []any{c}
	}
	var out []any
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if len(v) <= descriptionLimit && clean(v, descriptionLimit) == v {
				out = append(out, v)
			}
		case float64, bool:
			out = append(out, v)
		}
	}
	if len(out) > enumLimit {
		return nil
	}
	return out
}

func number(v any) *float64 {
	f, ok := v.(float64)
	if !ok || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func description(m map[string]any) string {
	s, _ := m["description"].(string)
	return clean(s, descriptionLimit)
}
