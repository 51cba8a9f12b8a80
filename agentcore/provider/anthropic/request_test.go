package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
	"parley/agentcore/provider/wire"
	"parley/config/secret"
)

func bodyOf(t *testing.T, req *llm.Request) []byte {
	t.Helper()
	c := newClient(t, Config{BaseURL: "http://127.0.0.1:1"})
	raw, err := wire.Encode(c.newBody(req, 0))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// contentOf returns the content of one turn as it is sent.
func contentOf(t *testing.T, req *llm.Request, i int) string {
	t.Helper()
	var body struct {
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(bodyOf(t, req), &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Messages[i].Content)
}

// TestBody is a whole request: results and what is said after them are one turn, images
// of results stay with them (PRV-031), the notice stands behind the last marker.
func TestBody(t *testing.T) {
	image := llm.Part{Image: &llm.Image{MIME: "image/jpg", Data: []byte("p")}}
	id := strings.Repeat("x", 94)
	req := &llm.Request{
		Model: "openrouter/anthropic/claude-sonnet-4.5", System: "be <brief>", Reasoning: "low", MaxOutput: 9000, NoTools: true, Ephemeral: "[notice]",
		Tools: []llm.ToolSpec{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)}, {Name: "g"}, {Name: "g"}},
		Messages: []llm.Message{
			llm.Text(llm.User, "q"),
			{Role: llm.Assistant, Parts: []llm.Part{{Text: " \n"}}, ToolCalls: []llm.ToolCall{{ID: id, Name: "f g", Arguments: "["}, {ID: id, Name: "g"}}},
			{Role: llm.ToolRole, ToolCallID: id, Parts: []llm.Part{{Text: "seen"}, image}}, {Role: llm.ToolRole, ToolCallID: id},
			llm.Text(llm.User, "stop"),
		},
	}
	raw := bodyOf(t, req)
	marker := `,"cache_control":{"type":"ephemeral"}`
	want := `{"model":"claude-sonnet-4-5",` +
		`"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"g","input_schema":{"type":"object","properties":{}}` + marker + `}],` +
		`"system":[{"type":"text","text":"be <brief>"` + marker + `}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"q"` + marker + `}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"ID1","name":"f_g","input":{}},{"type":"tool_use","id":"ID2","name":"g","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID1","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"cA=="}}]},` +
		`{"type":"tool_result","tool_use_id":"ID2","content":[{"type":"text","text":"(no output)"}]},{"type":"text","text":"stop"` + marker + `},{"type":"text","text":"[notice]"}]}],` +
		`"tool_choice":{"type":"none"},"max_tokens":9000,"stream":true}`
	for i, part := range bytes.Split(raw, []byte(`"tool_use","id":"`))[1:] {
		id, _, _ := strings.Cut(string(part), `"`)
		want = strings.ReplaceAll(want, fmt.Sprintf("ID%d", i+1), id)
	}
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if err := providertest.CheckMessages(raw); err != nil {
		t.Error(err)
	}
}

// TestThinking is PRV-011: a budget leaves room for the answer, or there is none; newer
// models decide for themselves, others do not think. A turn in the middle of its calls
// whose thought is another model's goes on without thinking.
func TestThinking(t *testing.T) {
	call := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f"}}}
	result := llm.Message{Role: llm.ToolRole, ToolCallID: "a"}
	mine := call
	mine.Reasoning = &llm.Reasoning{Raw: json.RawMessage(`[{"item":{"type":"redacted_thinking","data":"D"}},{"call":true}]`), Issuer: "x/claude-sonnet-4-5"}
	for _, c := range []struct {
		name, model, effort string
		limit               int
		turn                *llm.Message // that the request goes on with
		want                string
	}{
		{"a budget", "claude-sonnet-4-5", "high", 64_000, nil, `"thinking":{"type":"enabled","budget_tokens":16384}`},
		{"a small limit", "claude-opus-4-1-20250805", "high", 4096, nil, `"thinking":{"type":"enabled","budget_tokens":2048}`},
		{"no room", "claude-haiku-4-5", "low", 3000, nil, ""},
		{"no wish", "claude-sonnet-4-5", "", 64_000, nil, ""},
		{"none", "claude-sonnet-4-5", "none", 64_000, nil, ""},
		{"a newer model", "claude-opus-4-7", "high", 3000, nil, `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`},
		{"minimal", "claude-opus-5", "minimal", 3000, nil, `"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}`},
		{"a model that does not think", "claude-3-5-haiku-latest", "high", 8000, nil, ""},
		{"another family", "MiniMax-M3", "low", 64_000, nil, `"thinking":{"type":"enabled","budget_tokens":2048}`},
		{"its own turn", "claude-sonnet-4-5", "low", 64_000, &mine, `"thinking":{"type":"enabled","budget_tokens":2048}`},
		{"another model's turn", "claude-sonnet-4-5", "low", 64_000, &call, ""},
		{"another model's turn, newer model", "claude-opus-4-7", "low", 64_000, &call, `"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}`},
	} {
		req := &llm.Request{Model: llm.ModelID("x/" + c.model), Reasoning: c.effort, MaxOutput: c.limit, Messages: []llm.Message{llm.Text(llm.User, "q")}}
		if c.turn != nil {
			req.Messages = append(req.Messages, *c.turn, result)
		}
		raw := string(bodyOf(t, req))
		_, got, _ := strings.Cut(raw, `"thinking":`)
		got, _, _ = strings.Cut(got, `,"max_tokens"`)
		if got = strings.TrimSuffix(`"thinking":`+got, `"thinking":`); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if raw := string(bodyOf(t, &llm.Request{Model: "x/claude-opus-4-1"})); !strings.Contains(raw, `"max_tokens":32000`) {
		t.Errorf("no limit is named, which the API wants: %s", raw)
	}
}

func TestInputSchema(t *testing.T) {
	for in, want := range map[string]string{
		``:     `{"type":"object","properties":{}}`,
		`null`: `{"type":"object","properties":{}}`,
		`[1]`:  `{"type":"object","properties":{}}`,
		`{"type":"object", "properties":{"b":{},"a":{}}}`: `{"type":"object", "properties":{"b":{},"a":{}}}`,
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`{"type":["object","null"],"properties":{"a":{}}}`:       `{"properties":{"a":{}},"type":"object"}`,
		`{"anyOf":[{"required":["a"]}],"properties":{"a":{}}}`:   `{"properties":{"a":{}},"type":"object"}`,
		`{"type":"object","properties":{"a":{"anyOf":[{},{}]}}}`: `{"type":"object","properties":{"a":{"anyOf":[{},{}]}}}`,
	} {
		if got := string(inputSchema(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestCompatibleServers: where the request goes, and where the key stands.
func TestCompatibleServers(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{Key: "sk-very-secret-1234"})
	root := strings.TrimSuffix(srv.BaseURL(), "/v1")
	for _, base := range []string{root, root + "/", root + "/v1", root + "/v1/"} {
		srv.Enqueue(providertest.Answer{Text: "ok"})
		if r, err := ask(t, newClient(t, Config{BaseURL: base})); err != nil || r.Message.Text() != "ok" {
			t.Errorf("%s: %v", base, err)
		}
		h := srv.Last(t).Header
		if h.Get("X-Api-Key") == "" || h.Get("Authorization") != "Bearer sk-very-secret-1234" || h.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("headers: %v", h)
		}
	}
	for base, want := range map[string]string{
		"https://api.anthropic.com":                "https://api.anthropic.com/v1/messages",
		"https://api.minimax.io/anthropic/":        "https://api.minimax.io/anthropic/v1/messages",
		"https://proxy.example/anthropic/v1?key=1": "https://proxy.example/anthropic/v1/messages?key=1",
	} {
		c := newClient(t, Config{BaseURL: base})
		if c.url != want || c.native != strings.Contains(base, "anthropic.com") {
			t.Errorf("%s goes to %s, native %v", base, c.url, c.native)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("no base URL, no error")
	}
}

// TestErrors: what the API says when it refuses.
func TestErrors(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{Models: []string{"model"}, Window: 1000})
	c := newClient(t, Config{BaseURL: srv.BaseURL()})
	for _, x := range []struct {
		a    providertest.Answer
		kind llm.ErrorKind
	}{
		{providertest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`}, llm.KindBilling},
		{providertest.Answer{Status: 401, Body: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key sk-very-secret-1234"}}`}, llm.KindAuth},
		{providertest.Answer{Status: 404, Body: `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`}, llm.KindNotFound},
		{providertest.Answer{Status: 404, Body: `{"type":"error","error":{"type":"not_found_error","message":"Not found"}}`}, llm.KindUnknown},
		{providertest.Answer{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}`}, llm.KindOverflow},
		{providertest.Answer{Status: 529, Body: overload}, llm.KindOverloaded},
	} {
		srv.Enqueue(x.a)
		_, err := ask(t, c)
		e, ok := err.(*llm.Error)
		if !ok || e.Kind != x.kind || strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%d %s: %v, want kind %s", x.a.Status, x.a.Body, err, x.kind)
		}
	}
	long := &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, strings.Repeat("long ", 2000))}}
	_, err := llm.Collect(t.Context(), c.Stream(t.Context(), long))
	if e, ok := err.(*llm.Error); !ok || e.Kind != llm.KindOverflow || e.Window != 1000 {
		t.Errorf("overflow: %v", err)
	}
	long.Model, long.Messages = "test/nobody", []llm.Message{llm.Text(llm.User, "hi")}
	_, err = llm.Collect(t.Context(), c.Stream(t.Context(), long))
	if e, ok := err.(*llm.Error); !ok || e.Kind != llm.KindNotFound {
		t.Errorf("unknown model: %v", err)
	}
	keyless, _ := New(Config{BaseURL: srv.BaseURL(), APIKey: secret.New("")}, Deps{})
	defer keyless.Close()
	srv.Enqueue(providertest.Answer{Text: "ok"})
	if _, err := ask(t, keyless); err != nil || srv.Last(t).Header.Get("X-Api-Key") != "" || srv.Last(t).Header.Get("Authorization") != "" {
		t.Errorf("without a key: %v, %v", err, srv.Last(t).Header)
	}
}

// TestRefusalsTeach: what a model does not take is left out after the first refusal,
// and the error says that a second try is different.
func TestRefusalsTeach(t *testing.T) {
	for name, c := range map[string]struct{ model, message, gone, has string }{
		"signature (PRV-026)": {"m", "messages.1.content.0: Invalid `signature` in `thinking` block", `"signature"`, `"budget_tokens"`},
		"order of thinking":   {"m", "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", "budget_tokens", `"signature"`},
		"budget":              {"m", "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\".", "budget_tokens", `"adaptive"`},
		"adaptive":            {"claude-opus-9", "adaptive thinking is not supported on this model", `"adaptive"`, "budget_tokens"},
		"effort":              {"claude-opus-9", "output_config.effort: Extra inputs are not permitted", "output_config", `"adaptive"`},
		"thinking":            {"m", "thinking: Extra inputs are not permitted", "budget_tokens", `"messages"`},
		"cache":               {"m", "system.0.cache_control: Extra inputs are not permitted", "cache_control", `"messages"`},
		"tool choice":         {"m", "tool_choice: Input tag 'none' found", "tool_choice", `"messages"`},
		"image":               {"m", "this model does not support image input", `"image"`, wire.BlindNotice},
	} {
		t.Run(name, func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{})
			client := newClient(t, Config{BaseURL: srv.BaseURL()})
			req := &llm.Request{
				Model: llm.ModelID("test/" + c.model), System: "s", MaxOutput: 20_000, Reasoning: "low", NoTools: true, CacheKey: "s",
				Tools:    []llm.ToolSpec{{Name: "f"}},
				Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MIME: "image/png", Data: []byte("x")}}}}},
			}
			call := func(a providertest.Answer) (llm.Response, *llm.Error) {
				srv.Enqueue(a)
				r, err := llm.Collect(t.Context(), client.Stream(t.Context(), req))
				e, _ := err.(*llm.Error)
				return r, e
			}
			r, _ := call(providertest.Answer{Reasoning: "hm", Text: "a"})
			req.Messages = append(req.Messages, r.Message, llm.Text(llm.User, "and?"))
			body, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": "invalid_request_error", "message": c.message}})
			if _, e := call(providertest.Answer{Status: 400, Body: string(body)}); e == nil || !e.Repaired {
				t.Fatalf("first: %+v", e)
			}
			if first := string(srv.Last(t).Body); !strings.Contains(first, c.gone) {
				t.Fatalf("the first request has no %s: %s", c.gone, first)
			}
			if r, e := call(providertest.Answer{Text: "ok"}); e != nil || r.Message.Text() != "ok" {
				t.Fatalf("second: %+v, %v", r, e)
			}
			if second := string(srv.Last(t).Body); strings.Contains(second, c.gone) || !strings.Contains(second, c.has) {
				t.Errorf("second request: %s", second)
			}
			if _, e := call(providertest.Answer{Status: 400, Body: string(body)}); e == nil || e.Repaired {
				t.Errorf("the same refusal again is repaired again: %+v", e)
			}
		})
	}
}
