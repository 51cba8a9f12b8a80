package mcp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNormalise(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"none":        {`null`, `{"type":"object","properties":{}}`},
		"no object":   {`{"type":"string"}`, `{"type":"object","properties":{}}`},
		"plain":       {`{"type":"object","properties":{"b":{"type":"string","format":"date","title":"B","default":"x"},"a":{"type":"integer","minimum":1,"maximum":9}},"required":["b","c"],"$schema":"x","additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":9},"b":{"type":"string"}},"required":["b"]}`},
		"references":  {`{"$defs":{"P":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}},"properties":{"p":{"$ref":"#/$defs/P","description":"here"},"q":{"type":"array","items":{"$ref":"#/$defs/P"}}}}`, `{"type":"object","properties":{"p":{"type":"object","description":"here","properties":{"x":{"type":"number"}},"required":["x"]},"q":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}}}`},
		"outside":     {`{"properties":{"p":{"$ref":"https://evil.example/schema"},"q":{"$ref":"#/nowhere"}}}`, `{"type":"object","properties":{"p":{},"q":{}}}`},
		"null":        {`{"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}],"description":"n"}}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","description":"n"}}}`},
		"oneOf":       {`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"array"}]},"b":{"type":["string","number"]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{}}]},"b":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`},
		"top union":   {`{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}],"allOf":[{"properties":{"c":{"type":"boolean"}},"required":["c"]}]}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"boolean"}},"required":["c"]}`},
		"booleans":    {`{"properties":{"a":true,"b":false}}`, `{"type":"object","properties":{"a":{}}}`},
		"const":       {`{"properties":{"a":{"const":"x"},"b":{"enum":["x",null,{"y":1}]}}}`, `{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string","enum":["x"]}}}`},
		"names":       {`{"properties":{"a b":{"type":"string"},"ok-1.x":{"type":"string"}},"required":["a b"]}`, `{"type":"object","properties":{"ok-1.x":{"type":"string"}}}`},
		"description": {`{"properties":{"a":{"type":"string","description":"one\n\n two\u202e\u0000"}}}`, `{"type":"object","properties":{"a":{"type":"string","description":"one two"}}}`},
	} {
		var in any
		if err := json.Unmarshal([]byte(tc.in), &in); err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(tc.want, string(normalise(in))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	circle := map[string]any{"$defs": map[string]any{
		"N": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/N"}, "b": map[string]any{"$ref": "#/$defs/N"}, "c": map[string]any{"$ref": "#"}}},
		"L": map[string]any{"$ref": "#/$defs/L"},
	}, "properties": map[string]any{"n": map[string]any{"$ref": "#/$defs/N"}, "l": map[string]any{"$ref": "#/$defs/L"}}}
	if got := normalise(circle); len(got) > schemaLimit {
		t.Errorf("%d bytes", len(got))
	}
}

// Whatever a server's schema is, the result is an object with nothing that an API mode
// refuses, bounded, and the same each time.
func TestNormaliseIsLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawSchema(t, 4)
		got := normalise(in)
		if string(normalise(in)) != string(got) {
			t.Fatal("it differs from time to time")
		}
		var out map[string]any
		if err := json.Unmarshal(got, &out); err != nil || out["type"] != "object" || out["properties"] == nil || len(got) > schemaLimit {
			t.Fatalf("%s", got)
		}
		legal(t, out, true)
	})
}

func legal(t *rapid.T, m map[string]any, top bool) {
	for key, v := range m {
		switch key {
		case "type", "description", "enum", "required", "minimum", "maximum":
		case "items":
			legal(t, v.(map[string]any), false)
		case "properties":
			for name, p := range v.(map[string]any) {
				if !legalProperty.MatchString(name) {
					t.Fatalf("the name %q", name)
				}
				legal(t, p.(map[string]any), false)
			}
		case "anyOf":
			if top {
				t.Fatal("a union at the top")
			}
			for _, p := range v.([]any) {
				legal(t, p.(map[string]any), false)
			}
		default:
			t.Fatalf("the keyword %s", key)
		}
	}
}

func drawSchema(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]any{true, false, nil, "x", map[string]any{}, map[string]any{"type": "string", "format": "uri"}}).Draw(t, "value")
	}
	m := map[string]any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "required", "enum", "const", "description", "not", "patternProperties"}), 0, 6, rapid.ID[string]).Draw(t, "keys") {
		switch key {
		case "type":
			m[key] = rapid.SampledFrom([]any{"object", "array", "string", "null", "odd", 5.0, []any{"string", "null"}, []any{"object", "array"}, []any{}}).Draw(t, "type")
		case "properties", "patternProperties":
			m[key] = map[string]any{rapid.String().Draw(t, "name"): drawSchema(t, depth-1), "a": drawSchema(t, depth-1)}
		case "anyOf", "oneOf", "allOf":
			m[key] = []any{drawSchema(t, depth-1), drawSchema(t, depth-1)}
		case "required", "enum":
			m[key] = []any{"a", 1.0, nil, rapid.String().Draw(t, "string")}
		case "$ref":
			m[key] = rapid.SampledFrom([]any{"#", "#/properties/a", "x", 5.0}).Draw(t, "ref")
		case "description":
			m[key] = rapid.String().Draw(t, "text")
		default:
			m[key] = drawSchema(t, depth-1)
		}
	}
	return m
}

// Names fit every API mode, and two tools never share one.
func TestToolNames(t *testing.T) {
	ok := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	if got := toolName("files", "read_file"); got != "mcp_files_read_file" {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("x", 60)
	seen := map[string][2]string{}
	for _, n := range [][2]string{
		{"a", "b_c"}, {"a_b", "c"}, {"a", "b.c"}, {"a", "b/c"}, {"a", "b c"}, {"a", long}, {"a", long + "y"}, {"a", ""}, {"a", "日本"}, {"a", "日本語"},
		{"a", "b_c_" + toolName("a_b", "c")[len(toolName("a_b", "c"))-8:]}, {"a-b", "c"},
	} {
		got := toolName(n[0], n[1])
		if other, there := seen[got]; there || !ok.MatchString(got) {
			t.Errorf("%q is %q, like %q", n, got, other)
		}
		seen[got] = n
	}
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-z_.]{0,3}`)
		a := [2]string{rapid.StringMatching(`[a-z_]{1,3}`).Draw(t, "server"), part.Draw(t, "tool")}
		b := [2]string{rapid.StringMatching(`[a-z_]{1,3}`).Draw(t, "server"), part.Draw(t, "tool")}
		if x, y := toolName(a[0], a[1]), toolName(b[0], b[1]); (x == y) != (a == b) || !ok.MatchString(x) {
			t.Fatalf("%q is %q, %q is %q", a, x, b, y)
		}
	})
}
