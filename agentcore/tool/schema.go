package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf derives the schema of a tool's input. Field order is the struct's, so
// the bytes are always the same. A field is required unless it has omitempty or
// omitzero; `jsonschema:"…"` describes it and `enum:"a,b"` lists its values.
func schemaOf(t reflect.Type) (*jsonschema.Schema, json.RawMessage, error) {
	if t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("the input %s is not a struct", t)
	}
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, nil, err
	}
	refine(s, t)
	if len(s.Properties) == 0 {
		// Some providers refuse an object schema without properties.
		return s, json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), nil
	}
	raw, err := json.Marshal(s)
	return s, raw, err
}

// refine takes out the null alternatives, which models tend to misuse, and puts
// in the enums.
func refine(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.Types = slices.DeleteFunc(s.Types, func(n string) bool { return n == "null" }); len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	if s.Items != nil {
		refine(s.Items, t.Elem())
	}
	if t.Kind() != reflect.Struct || len(s.Properties) == 0 {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		p := s.Properties[name]
		if p == nil || f.Anonymous {
			continue
		}
		refine(p, f.Type)
		if values, ok := f.Tag.Lookup("enum"); ok {
			for v := range strings.SplitSeq(values, ",") {
				p.Enum = append(p.Enum, v)
			}
		}
	}
}

// check returns what is wrong with a value in words for the model, or "".
func check(s *jsonschema.Schema, raw json.RawMessage, path string) string {
	switch s.Type {
	case "object":
		return checkObject(s, raw, path)
	case "array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return wrongType(s, path)
		}
		for i, item := range items {
			if p := check(s.Items, item, fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
		return ""
	}
	return checkScalar(s, raw, path)
}

func checkObject(s *jsonschema.Schema, raw json.RawMessage, path string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return wrongType(s, path)
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		if p == nil {
			if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
				p = s.AdditionalProperties // a map: any name, one type
			} else {
				return fmt.Sprintf("there is no field %q", join(path, name))
			}
		}
		if string(fields[name]) == "null" {
			continue // as if it were absent
		}
		if problem := check(p, fields[name], join(path, name)); problem != "" {
			return problem
		}
	}
	for _, name := range s.Required {
		if v, ok := fields[name]; !ok || string(v) == "null" {
			return fmt.Sprintf("the field %q is missing", join(path, name))
		}
	}
	return ""
}

func checkScalar(s *jsonschema.Schema, raw json.RawMessage, path string) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return wrongType(s, path)
	}
	ok := true
	switch s.Type {
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "number":
		_, ok = v.(float64)
	case "integer":
		var n float64
		n, ok = v.(float64)
		ok = ok && n == math.Trunc(n)
	}
	if !ok {
		return wrongType(s, path)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		return fmt.Sprintf("the field %q must be one of %s", path, alternatives(s.Enum))
	}
	return ""
}

func wrongType(s *jsonschema.Schema, path string) string {
	if path == "" {
		return "the arguments must be a JSON object"
	}
	return fmt.Sprintf("the field %q must be of type %s", path, s.Type)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func alternatives(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprintf("%q", v)
	}
	return strings.Join(out, ", ")
}

// fieldList names the fields for a message to the model.
func fieldList(s *jsonschema.Schema) string {
	if len(s.PropertyOrder) == 0 {
		return "It takes no fields."
	}
	out := make([]string, 0, len(s.PropertyOrder))
	for _, name := range s.PropertyOrder {
		need := "optional"
		if slices.Contains(s.Required, name) {
			need = "required"
		}
		kind := s.Properties[name].Type
		if e := s.Properties[name].Enum; len(e) > 0 {
			kind = "one of " + alternatives(e)
		}
		out = append(out, fmt.Sprintf("%s (%s, %s)", name, kind, need))
	}
	return "Its fields: " + strings.Join(out, "; ") + "."
}
