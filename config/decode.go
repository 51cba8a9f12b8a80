package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/telegram"
	"parley/config/secret"
)

// decoder fills a Config from a YAML tree. It is used instead of the library's own
// decoding because that stops short of what is promised here: it quotes values,
// secrets included, has no line for a wrong key inside a map, and reads long ids
// through floating point (CFG-001).
type decoder struct {
	*source
	expand *expander
}

var (
	secretType   = reflect.TypeFor[secret.String]()
	durationType = reflect.TypeFor[time.Duration]()

	// elements are what a new entry of a list begins as.
	elements = map[reflect.Type]reflect.Value{
		reflect.TypeFor[telegram.Config](): reflect.ValueOf(telegram.DefaultConfig()),
		reflect.TypeFor[slack.Config]():    reflect.ValueOf(slack.DefaultConfig()),
		reflect.TypeFor[discord.Config]():  reflect.ValueOf(discord.DefaultConfig()),
	}
)

// value decodes n into v; path is the dotted key for messages. A key with nothing
// behind it keeps its default.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if path != "" {
		d.lines[path] = n.Line
	}
	switch {
	case n.Kind == yaml.AliasNode:
		d.add(n.Line, "%s: YAML aliases are not supported; write the value out", path)
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	}
	var want string
	var ok bool
	switch {
	case v.Type() == secretType || v.Kind() == reflect.String:
		want, ok = "text", d.text(n, v, path)
	case v.Kind() == reflect.Struct:
		want, ok = "a section of keys", n.Kind == yaml.MappingNode
		if ok {
			d.section(n, v, path)
		}
	case v.Kind() == reflect.Map:
		want, ok = "a section of names", n.Kind == yaml.MappingNode
		if ok {
			d.names(n, v, path)
		}
	case v.Kind() == reflect.Slice:
		want, ok = "a list", n.Kind == yaml.SequenceNode
		if ok {
			d.list(n, v, path)
		}
	default:
		want, ok = d.scalar(n, v, path)
	}
	if !ok {
		d.add(n.Line, "%s: expected %s, found %s%s", cmp.Or(path, "the file"), want, found(n), hint(n, v))
	}
}

// section decodes a mapping into a struct: each key must be a field.
func (d *decoder) section(n *yaml.Node, v reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	collect(v, fields)
	d.pairs(n, path, func(key, value *yaml.Node) {
		field, ok := fields[key.Value]
		if !ok {
			d.add(key.Line, "%s: there is no such key%s", join(path, key.Value), suggest(key.Value, path, fields))
			return
		}
		d.value(value, field, join(path, key.Value))
	})
}

// names decodes a mapping with free keys.
func (d *decoder) names(n *yaml.Node, v reflect.Value, path string) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	d.pairs(n, path, func(key, value *yaml.Node) {
		entry := reflect.New(v.Type().Elem()).Elem()
		d.value(value, entry, join(path, key.Value))
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), entry)
	})
}

// pairs calls each for the entries of a mapping, and reports keys that are not
// text or come twice.
func (d *decoder) pairs(n *yaml.Node, path string, each func(key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!null" || key.Tag == "!!merge" {
			d.add(key.Line, "%s: a key must be plain text", cmp.Or(path, "the file"))
			continue
		}
		if line, twice := first[key.Value]; twice {
			d.add(key.Line, "%s: the key is given twice, first in line %d", join(path, key.Value), line)
			continue
		}
		first[key.Value] = key.Line
		each(key, value)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	out := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, item := range n.Content {
		elem, name := reflect.New(v.Type().Elem()).Elem(), strconv.Itoa(i)
		if start, ok := elements[elem.Type()]; ok {
			elem.Set(start)
			name = cmp.Or(nameOf(item), start.FieldByName("Name").String())
		}
		before := len(d.problems)
		d.value(item, elem, join(path, name))
		// An entry that could not be read would only be found wrong again.
		if len(d.problems) == before || elem.Kind() == reflect.Struct {
			out = reflect.Append(out, elem)
		}
	}
	v.Set(out)
}

// text decodes strings and secrets from the very characters in the file: a long id
// without quotes keeps its digits, and one that a tool wrote as a float, which has
// lost them, is refused (CFG-001).
func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	if n.Tag == "!!float" && strings.ContainsAny(n.Value, "eE") {
		d.add(n.Line, "%s: the number is in scientific notation and has lost digits; write it in full, in quotes", path)
		return true
	}
	if v.Type() == secretType {
		v.Set(reflect.ValueOf(d.expand.secret(n, path)))
		return true
	}
	if text, set := d.expand.text(n); set {
		v.SetString(text)
	}
	return true
}

// scalar decodes the rest; want says in words what would have been right.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) (want string, ok bool) {
	text := ""
	if n.Kind == yaml.ScalarNode {
		var set bool
		if text, set = d.expand.text(n); !set {
			return "", true
		}
		text = strings.TrimSpace(text)
	}
	if v.Type() == durationType {
		t, err := time.ParseDuration(text)
		if err == nil {
			v.SetInt(int64(t))
		}
		return "a duration such as 30s or 15m", err == nil
	}
	switch v.Kind() {
	case reflect.Bool:
		if text == "true" || text == "false" {
			v.SetBool(text == "true")
			return "", true
		}
		return "true or false", false
	case reflect.Int:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 0)
		if err == nil {
			v.SetInt(i)
		}
		return "a whole number", err == nil
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if finite := err == nil && !math.IsNaN(f) && !math.IsInf(f, 0); finite {
			v.SetFloat(f)
			return "a number", true
		}
		return "a number", false
	default:
		panic(fmt.Sprintf("config: %s has type %s, which the decoder does not know", path, v.Type()))
	}
}

// collect maps the YAML keys of a struct, inlined ones included, to its fields.
func collect(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case options == "inline":
			collect(v.Field(i), into)
		default:
			into[cmp.Or(name, strings.ToLower(f.Name))] = v.Field(i)
		}
	}
}

// nameOf is the name of a list's entry, by which messages call it.
func nameOf(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" && n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// found names what stands in the file, never its value.
func found(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a section"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "a number"
	case n.Tag == "!!bool":
		return n.Value
	}
	return "text"
}

// hint explains the two slips that YAML makes easy.
func hint(n *yaml.Node, v reflect.Value) string {
	switch {
	case v.Kind() == reflect.String && n.Kind == yaml.MappingNode:
		return " (a colon followed by a space makes a section; put the text in quotes)"
	case v.Kind() == reflect.Slice && n.Kind == yaml.MappingNode:
		return " (begin each entry with a dash)"
	}
	return ""
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
