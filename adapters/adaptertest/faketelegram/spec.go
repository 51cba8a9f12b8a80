package faketelegram

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed spec/bot_api.json
var specJSON []byte

// spec is the published description of the API, as far as parley calls it.
type spec struct {
	Methods   map[string][]field `json:"methods"`
	Types     map[string]object  `json:"types"`
	Reactions []string           `json:"reactions"`
	Actions   []string           `json:"actions"`

	byLowerName map[string]string
}

type field struct {
	Name     string   `json:"name"`
	Types    []string `json:"types"`
	Required bool     `json:"required"`
}

type object struct {
	Fields   []field  `json:"fields"`
	Subtypes []string `json:"subtypes"`
}

func loadSpec() *spec {
	sp := &spec{byLowerName: map[string]string{}}
	if err := json.Unmarshal(specJSON, sp); err != nil {
		panic(fmt.Sprintf("faketelegram: embedded description: %v", err))
	}
	for name := range sp.Methods {
		sp.byLowerName[strings.ToLower(name)] = name
	}
	return sp
}

// Violation is something in a call that the real server tolerates, or answers so
// late or vaguely that nobody notices, and that a correct client does not do.
type Violation struct {
	Method    string
	Parameter string // dotted path
	Problem   string
}

func (v Violation) String() string {
	return strings.TrimSuffix(v.Method+" "+v.Parameter, " ") + ": " + v.Problem
}

// check compares a call with the description. It returns what is merely wrong,
// and a refusal for what the real server refuses.
func (sp *spec) check(r *request) ([]Violation, error) {
	c := checker{spec: sp, method: r.method}
	fields := sp.Methods[r.method]
	for name, value := range r.params {
		switch i := slices.IndexFunc(fields, func(f field) bool { return f.Name == name }); {
		case !utf8.ValidString(value):
			return c.found, badRequest("strings must be encoded in UTF-8")
		case i < 0:
			c.violation(name, "unknown parameter")
		default:
			if err := c.parameter(fields[i], value); err != nil {
				return c.found, err
			}
		}
	}
	for name := range r.files {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.Name == name && slices.Contains(f.Types, "InputFile") }) && !r.attached(name) {
			c.violation(name, "unknown file")
		}
	}
	for _, f := range fields {
		if _, uploaded := r.files[f.Name]; f.Required && r.params[f.Name] == "" && !uploaded {
			return c.found, missing(f.Name)
		}
	}
	return c.found, nil
}

// missing is the refusal of a call that lacks a required parameter. The real
// server words it by parameter.
func missing(name string) error {
	switch name {
	case "chat_id":
		return badRequest("chat_id is empty")
	case "text":
		return badRequest("message text is empty")
	case "message_id":
		return badRequest("message identifier is not specified")
	case "document", "photo":
		return badRequest("there is no %s in the request", name)
	case "file_id":
		return badRequest("file_id not specified")
	case "action":
		return badRequest("wrong parameter action in request")
	case "callback_query_id":
		return badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	return badRequest("parameter %q is required", name)
}

// checker walks one call.
type checker struct {
	spec   *spec
	method string
	found  []Violation
}

func (c *checker) violation(path, problem string) {
	c.found = append(c.found, Violation{c.method, path, problem})
}

// parameter checks a top-level value, which is text: numbers and booleans are
// written out and everything larger is JSON.
func (c *checker) parameter(f field, value string) error {
	if value == "" {
		return nil
	}
	for _, typ := range f.Types {
		switch typ {
		case "String", "InputFile":
			return nil
		case "Integer":
			if _, err := strconv.ParseInt(value, 10, 64); err == nil {
				return nil
			}
		case "Boolean":
			if slices.Contains([]string{"true", "false", "1", "0"}, strings.ToLower(value)) {
				return nil
			}
		}
	}
	if scalar := f.Types[0]; scalar == "Integer" || scalar == "Boolean" {
		return badRequest("parameter %q must be of type %s", f.Name, scalar)
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		if f.Name == "allowed_updates" {
			c.violation(f.Name, "not a JSON array; the real server keeps the former list in silence")
			return nil
		}
		return badRequest("can't parse %s JSON object", noun(f.Name))
	}
	if v == nil {
		if f.Name == "allowed_updates" {
			c.violation(f.Name, "null; the real server keeps the former list in silence")
		}
		return nil
	}
	if err := c.anyOf(f.Name, f.Types, v); err != nil {
		return badRequest("can't parse %s: %s", noun(f.Name), err)
	}
	return nil
}

// noun is how the real server calls a JSON parameter in its errors.
func noun(parameter string) string {
	switch parameter {
	case "reply_markup":
		return "reply keyboard markup"
	case "reaction":
		return "reaction types"
	}
	return strings.ReplaceAll(parameter, "_", " ")
}

// anyOf accepts v when one of the types fits, and prefers one that fits without
// unknown fields.
func (c *checker) anyOf(path string, types []string, v any) error {
	var firstErr error
	var tolerable []Violation
	fits := false
	for _, typ := range types {
		try := checker{spec: c.spec, method: c.method}
		err := try.value(path, typ, v)
		switch {
		case err == nil && len(try.found) == 0:
			return nil
		case err == nil && !fits:
			fits, tolerable = true, try.found
		case firstErr == nil:
			firstErr = err
		}
	}
	if !fits {
		return firstErr
	}
	c.found = append(c.found, tolerable...)
	return nil
}

func (c *checker) value(path, typ string, v any) error {
	if of, ok := strings.CutPrefix(typ, "Array of "); ok {
		list, ok := v.([]any)
		if !ok {
			return wrongType(path, "Array")
		}
		for _, e := range list {
			if err := c.value(path, of, e); err != nil {
				return err
			}
		}
		return nil
	}
	var ok bool
	switch typ {
	case "String":
		_, ok = v.(string)
	case "Boolean":
		_, ok = v.(bool)
	case "Integer", "Float":
		var f float64
		f, ok = v.(float64)
		ok = ok && (typ == "Float" || f == float64(int64(f)))
		typ = "Number"
	default:
		return c.object(path, typ, v)
	}
	if !ok {
		return wrongType(path, typ)
	}
	return nil
}

func (c *checker) object(path, typ string, v any) error {
	t := c.spec.Types[typ]
	if len(t.Subtypes) > 0 {
		return c.anyOf(path, t.Subtypes, v)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return wrongType(path, "Object")
	}
	for _, f := range t.Fields {
		if _, given := m[f.Name]; f.Required && !given {
			return verbatim("Can't find field %q", f.Name)
		}
	}
	for name, sub := range m {
		i := slices.IndexFunc(t.Fields, func(f field) bool { return f.Name == name })
		if i < 0 {
			c.violation(path+"."+name, "unknown field of "+typ)
			continue
		}
		if err := c.anyOf(path+"."+name, t.Fields[i].Types, sub); err != nil {
			return err
		}
	}
	return nil
}

func wrongType(path, typ string) error {
	name := path[strings.LastIndexByte(path, '.')+1:]
	return verbatim("Field %q must be of type %s", name, typ)
}
