package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
)

type item struct {
	Title string `json:"title" jsonschema:"what to do"`
	Done  bool   `json:"done,omitempty"`
}

type input struct {
	Action string            `json:"action" jsonschema:"what happens" enum:"add,drop"`
	Items  []item            `json:"items,omitempty"`
	Limit  *int              `json:"limit,omitempty" jsonschema:"at most so many"`
	Share  float64           `json:"share,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func spec(name string) tool.Spec {
	return tool.Spec{ToolSpec: llm.ToolSpec{Name: name, Description: "for tests"}}
}

// newEcho makes a tool that answers with what it decoded.
func newEcho(t *testing.T) tool.Tool {
	t.Helper()
	e, err := tool.New(spec("echo"), func(_ context.Context, _ tool.Call, in input) (tool.Result, error) {
		b, err := json.Marshal(in)
		return tool.Result{Text: string(b)}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSchemaIsDerivedAndDeterministic(t *testing.T) {
	want := `{"type":"object","properties":{` +
		`"action":{"type":"string","description":"what happens","enum":["add","drop"]},` +
		`"items":{"type":"array","items":{"type":"object","properties":{"title":{"type":"string","description":"what to do"},` +
		`"done":{"type":"boolean"}},"required":["title"],"additionalProperties":false}},` +
		`"limit":{"type":"integer","description":"at most so many"},` +
		`"share":{"type":"number"},` +
		`"labels":{"type":"object","additionalProperties":{"type":"string"}}},` +
		`"required":["action"],"additionalProperties":false}`
	for range 20 {
		if diff := cmp.Diff(want, string(newEcho(t).Spec().Schema)); diff != "" {
			t.Fatal(diff)
		}
	}
	none, err := tool.New(spec("none"), func(context.Context, tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(none.Spec().Schema); got != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Errorf("schema without fields: %s", got)
	}
}

func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"good":           {`{"action":"add","items":[{"title":"x"}],"limit":3}`, `"limit":3`},
		"null is absent": {`{"action":"add","items":null,"limit":null}`, `{"action":"add"}`},
		"map":            {`{"action":"add","labels":{"any":"value"}}`, `"any":"value"`},
		"missing":        {`{}`, `the field "action" is missing`},
		"empty":          {``, `the field "action" is missing`},
		"null required":  {`{"action":null}`, `the field "action" is missing`},
		"unknown":        {`{"action":"add","itms":[]}`, `there is no field "itms"`},
		"case":           {`{"Action":"add"}`, `there is no field "Action"`},
		"enum":           {`{"action":"destroy"}`, `"action" must be one of "add", "drop"`},
		"type":           {`{"action":"add","limit":"3"}`, `"limit" must be of type integer`},
		"fraction":       {`{"action":"add","limit":3.5}`, `"limit" must be of type integer`},
		"nested":         {`{"action":"add","items":[{"title":"a"},{"done":true}]}`, `"items[1].title" is missing`},
		"nested type":    {`{"action":"add","items":[7]}`, `"items[0]" must be of type object`},
		"not an object":  {`[1]`, `must be a JSON object`},
		"not JSON":       {`{"action":`, `not valid JSON`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newEcho(t).Run(t.Context(), tool.Call{Arguments: []byte(tc.args)})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(r.Text, tc.want) {
				t.Errorf("got %q, want %q in it", r.Text, tc.want)
			}
			good := strings.HasPrefix(r.Text, `{"action"`)
			if r.Failed == good {
				t.Errorf("failed is %v for %q", r.Failed, r.Text)
			}
			if r.Failed && !strings.Contains(r.Text, `action (one of "add", "drop", required); items (array, optional)`) {
				t.Errorf("the fields are not listed: %q", r.Text)
			}
		})
	}
}

func TestNewRefusesWhatCannotBeDescribed(t *testing.T) {
	if _, err := tool.New(spec("x"), func(context.Context, tool.Call, string) (tool.Result, error) {
		return tool.Result{}, nil
	}); err == nil {
		t.Error("a string was taken as input")
	}
	if _, err := tool.New(spec("x"), func(context.Context, tool.Call, struct{ C chan int }) (tool.Result, error) {
		return tool.Result{}, nil
	}); err == nil {
		t.Error("a channel was taken as a field")
	}
	if _, err := tool.New(spec("two words"), func(context.Context, tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{}, nil
	}); err == nil {
		t.Error("an illegal name was taken")
	}
}

type named string

func (n named) Spec() tool.Spec                                     { return spec(string(n)) }
func (n named) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

func TestSetIsSortedAndImmutable(t *testing.T) {
	a, err := tool.NewSet(named("todo"), named("clarify"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Add(named("memory"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"clarify", "todo"}, a.Names()); diff != "" {
		t.Error(diff)
	}
	var specs []string
	for _, s := range b.Specs() {
		specs = append(specs, s.Name)
	}
	if diff := cmp.Diff([]string{"clarify", "memory", "todo"}, specs); diff != "" {
		t.Error(diff)
	}
	if _, ok := a.Get("memory"); ok || a.Len() != 2 || b.Len() != 3 {
		t.Error("Add changed its receiver")
	}
	if _, err := b.Add(named("todo")); err == nil {
		t.Error("a second tool of one name was taken")
	}
	for _, bad := range []named{"", "a b", "ünï", named(strings.Repeat("x", 65))} {
		if _, err := tool.NewSet(bad); err == nil {
			t.Errorf("the name %q was taken", bad)
		}
	}
	var none *tool.Set
	if none.Len() != 0 || none.Specs() != nil {
		t.Error("nil is not an empty set")
	}
}

// TOL-003, TOL-007.
func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.Just(strings.Repeat("日", 5000))).Draw(t, "in")
		limit := rapid.IntRange(60, 400).Draw(t, "limit")
		out := tool.Clip(in, limit)
		if len(out) > limit || !utf8.ValidString(out) || strings.Contains(out, "\x00") {
			t.Fatalf("%d bytes of %d: %q", len(out), limit, out)
		}
	})
	got := tool.Clip(strings.Repeat("日", 5000), 300)
	if strings.ContainsRune(got, utf8.RuneError) || !strings.Contains(got, "bytes left out") {
		t.Errorf("a character was parted: %q", got)
	}
	head, tail, _ := strings.Cut(got, "\n[…")
	if len(head) >= len(tail) || !strings.HasSuffix(got, "日") {
		t.Errorf("the end is not kept: %d before, %d after", len(head), len(tail))
	}
	if got := tool.Clip("a\x00b", 100); got != "ab" {
		t.Errorf("NUL: %q", got)
	}
}
