package providertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	rUser   = `{"type":"message","role":"user","content":"hi"}`
	rSaid   = `{"type":"message","role":"assistant","content":"a","phase":"commentary"}`
	rCall   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	rResult = `{"type":"function_call_output","call_id":"a","output":"1"}`
)

func items(extra string, list ...string) string {
	return `{"model":"m","store":false,` + extra + `"input":[` + strings.Join(list, ",") + `]}`
}

func sealed(model string) string {
	return fmt.Sprintf(`{"type":"reasoning","summary":[],"encrypted_content":%q}`, encrypted(model, "hm"))
}

// TestCheckResponses is what the fake of Responses takes and what it refuses.
func TestCheckResponses(t *testing.T) {
	for _, ok := range []string{
		items("", rUser),
		items(`"instructions":"s","stream":true,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":16,"prompt_cache_key":"k",`, rUser),
		items("", rUser, sealed("m"), rSaid, rCall, rResult),
		items("", rUser, rCall, sealed("m"), rSaid, rResult, rSaid, rUser),
		items("", `{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AAAA"}]}`),
		items(`"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false}],"tool_choice":"none",`, rUser),
		strings.Replace(items("", rUser, strings.Replace(rSaid, `{`, `{"id":"m1",`, 1), rUser), `"store":false,`, "", 1),
	} {
		if err := CheckResponses([]byte(ok)); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, c := range []struct{ name, body, want string }{
		{"unknown field", items(`"messages":[],`, rUser), "messages"},
		{"no items", items(""), "at least one"},
		{"a small limit", items(`"max_output_tokens":5,`, rUser), ">= 16"},
		{"an unknown effort", items(`"reasoning":{"effort":"huge"},`, rUser), "huge"},
		{"an unknown include", items(`"include":["all"],`, rUser), "all"},
		{"blank instructions", items(`"instructions":" ",`, rUser), "blank"},
		{"a tool without strict", items(`"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],`, rUser), "strict"},
		{"a tool in the shape of chat completions", items(`"tools":[{"type":"function","function":{"name":"f"}}],`, rUser), "function"},
		{"PRV-001 an id", items("", rUser, strings.Replace(rCall, `{`, `{"id":"fc_1",`, 1), rResult), "not found"},
		{"PRV-001 a reference", items("", rUser, `{"type":"item_reference","id":"rs_1"}`, rSaid, rUser), "not found"},
		{"PRV-010 reasoning alone", items("", rUser, sealed("m"), rUser), "required following item"},
		{"PRV-010 reasoning at the end", items("", rUser, sealed("m")), "required following item"},
		{"PRV-026 reasoning of another model", items("", rUser, sealed("other"), rSaid, rUser), "encrypted content"},
		{"PRV-001 reasoning that is not sealed", items("", rUser, `{"type":"reasoning","summary":[]}`, rSaid, rUser), "encrypted content"},
		{"text of the wrong kind", items("", `{"role":"user","content":[{"type":"text","text":"x"}]}`), "text"},
		{"PRV-040 a blank text", items("", `{"role":"user","content":" "}`), "non-empty"},
		{"a blank output", items("", rUser, rCall, strings.Replace(rResult, `"1"`, `""`, 1)), "non-empty"},
		{"an image in the words of chat completions", items("", `{"role":"user","content":[{"type":"input_image","image_url":{"url":"x"}}]}`), "Invalid content"},
		{"an image type", items("", `{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/bmp;base64,AAAA"}]}`), "image"},
		{"a phase of a user", items("", `{"role":"user","content":"x","phase":"commentary"}`), "commentary"},
		{"PRV-018 two users", items("", rUser, rUser), "alternate"},
		{"PRV-029 first is an assistant", items("", rSaid, rUser), "first message"},
		{"PRV-003 last is an assistant", items("", rUser, rSaid), "end with a user message"},
		{"a call without an output", items("", rUser, rCall, rUser), "No tool output"},
		{"a call without an output at the end", items("", rUser, rCall), "No tool output"},
		{"an output without a call", items("", rUser, rResult), "No tool call found"},
		{"PRV-007 an id twice", items("", rUser, rCall, rResult, rCall, rResult), "Duplicate"},
		{"PRV-005 a long id", items("", rUser, strings.Replace(rCall, `"a"`, `"`+strings.Repeat("x", 65)+`"`, 1), rResult), "64"},
		{"PRV-020 arguments", items("", rUser, strings.Replace(rCall, `"{}"`, `"{"`, 1), rResult), "JSON object"},
		{"PRV-032 no name", items("", rUser, strings.Replace(rCall, `"f"`, `""`, 1), rResult), "name"},
	} {
		if err := CheckResponses([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %q in it", c.name, err, c.want)
		}
	}
}

const (
	mUser   = `{"role":"user","content":"hi"}`
	mSaid   = `{"role":"assistant","content":[{"type":"text","text":"a"}]}`
	mCall   = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	mResult = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]}]}`
)

func turns(extra string, list ...string) string {
	return `{"model":"m","max_tokens":5000,` + extra + `"messages":[` + strings.Join(list, ",") + `]}`
}

func thinks(model, rest string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":%q}%s]}`, signature(model, "hm"), rest)
}

// TestCheckMessages is what the fake of Messages takes and what it refuses.
func TestCheckMessages(t *testing.T) {
	said, call := `,{"type":"text","text":"a"}`, `,{"type":"tool_use","id":"a","name":"f","input":{}}`
	marked := func(n int) string {
		return `{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, n) + `{"type":"text","text":"y"}]}`
	}
	image := func(mime, data string) string {
		return `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}}]}`
	}
	enabled := `"thinking":{"type":"enabled","budget_tokens":1024},`
	for _, ok := range []string{
		turns("", mUser),
		turns(`"system":[{"type":"text","text":"s"}],"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"},`, mUser, mSaid, mUser),
		turns("", mUser, mCall, mResult),
		turns(enabled, mUser, thinks("m", call), mResult), turns(enabled, mUser, mSaid, mUser), turns("", mUser, thinks("m", said), mUser),
		turns("", marked(4)), turns("", image("image/png", "AAAA")),
		turns("", mUser, mCall, strings.Replace(mResult, `]}]}`, `]},{"type":"text","text":"and"}]}`, 1)),
	} {
		if err := CheckMessages([]byte(ok)); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, c := range []struct{ name, body, want string }{
		{"unknown field", turns(`"max_completion_tokens":5,`, mUser), "max_completion_tokens"},
		{"no limit", `{"model":"m","messages":[` + mUser + `]}`, "max_tokens"},
		{"no messages", turns(""), "at least one"},
		{"a system message", turns("", `{"role":"system","content":"s"}`, mUser), "role"},
		{"PRV-018 two users", turns("", mUser, mUser), "alternate"},
		{"PRV-029 first is an assistant", turns("", mSaid, mUser), "first message"},
		{"PRV-003 last is an assistant", turns("", mUser, mSaid), "prefill"},
		{"PRV-040 a blank text", turns("", `{"role":"user","content":"\n"}`), "non-whitespace"},
		{"nothing at all", turns("", `{"role":"user","content":[]}`), "non-empty content"},
		{"five markers", turns("", marked(5)), "maximum of 4"},
		{"a marker of another kind", turns("", strings.ReplaceAll(marked(1), "ephemeral", "eternal")), "cache_control"},
		{"a marked thought", turns("", mUser, strings.Replace(thinks("m", said), `"thinking",`, `"thinking","cache_control":{"type":"ephemeral"},`, 1), mUser), "cache_control"},
		{"PRV-011 a small budget", turns(`"thinking":{"type":"enabled","budget_tokens":1000},`, mUser), "1024"},
		{"PRV-011 a budget of the whole limit", turns(`"thinking":{"type":"enabled","budget_tokens":5000},`, mUser), "max_tokens"},
		{"PRV-026 another model's signature", turns("", mUser, thinks("other", said), mUser), "signature"},
		{"no signature", turns("", mUser, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"}]}`, mUser), "signature"},
		{"a thought at the end", turns("", mUser, thinks("m", ""), mUser), "final block"},
		{"a turn without its thought", turns(enabled, mUser, mCall, mResult), "Expected `thinking`"},
		{"an unknown block", turns("", `{"role":"user","content":[{"type":"crystal"}]}`), "crystal"},
		{"a field that is only given", turns("", mUser, `{"role":"assistant","content":[{"type":"text","text":"a","citations":null,"parsed_output":1}]}`, mUser), "citations"},
		{"PRV-015 a result without a call", turns("", mResult), "tool_use_id"},
		{"a call without a result", turns("", mUser, mCall, mUser), "without `tool_result`"},
		{"a late result", turns("", mUser, mCall, strings.Replace(mResult, `[{"type":"tool_result"`, `[{"type":"text","text":"x"},{"type":"tool_result"`, 1)), "without `tool_result`"},
		{"PRV-007 an id twice", turns("", mUser, mCall, mResult, mCall, mResult), "Duplicate"},
		{"PRV-005 an id of odd characters", turns("", mUser, strings.Replace(mCall, `"a"`, `"a|b"`, 1), mResult), "a|b"},
		{"PST-008 input that is no object", turns("", mUser, strings.Replace(mCall, `{}`, `""`, 1), mResult), "JSON object"},
		{"an empty result", turns("", mUser, mCall, strings.Replace(mResult, `"1"`, `""`, 1)), "non-whitespace"},
		{"an image type", turns("", image("image/svg+xml", "AAAA")), "media_type"},
		{"no base64", turns("", image("image/png", "!")), "base64"},
		{"a large image", turns("", image("image/png", strings.Repeat("AAAA", 5<<18+1))), "5 MB"},
		{"a tool twice", turns(`"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}],`, mUser), "unique"},
		{"a schema with a choice at the top", turns(`"tools":[{"name":"f","input_schema":{"type":"object","anyOf":[]}}],`, mUser), "anyOf"},
	} {
		if err := CheckMessages([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %q in it", c.name, err, c.want)
		}
	}
	if _, r := (messagesAPI{}).parse([]byte(turns("", mUser)), http.Header{}, Options{}); r == nil || !strings.Contains(r.message, "anthropic-version") {
		t.Errorf("without a version: %+v", r)
	}
}

func TestMarks(t *testing.T) {
	body := turns(`"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],`,
		`{"role":"user","content":[{"type":"text","text":"say \"cache_control\":{}","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"notice"}]}`)
	req, r := messagesAPI{}.parse([]byte(body), http.Header{"Anthropic-Version": {"2023-06-01"}}, Options{})
	if r != nil || len(req.Marks) != 2 {
		t.Fatalf("%+v, marks %v", r, req.Marks)
	}
	req.Body = []byte(body)
	want := `{"model":"m","max_tokens":5000,"system":[{"type":"text","text":"s"`
	if got := string(req.Unmarked()[:req.Marks[0]]); got != want {
		t.Errorf("up to the first: %s", got)
	}
	want += `}],"messages":[{"role":"user","content":[{"type":"text","text":"say \"cache_control\":{}"`
	if got := string(req.Unmarked()[:req.Marks[1]]); got != want {
		t.Errorf("up to the second: %s", got)
	}
}
