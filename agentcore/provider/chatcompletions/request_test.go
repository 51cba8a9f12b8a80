package chatcompletions

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
	"parley/agentcore/provider/wire"
)

func countDials(n *int, dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		*n++
		return dial(ctx, network, addr)
	}
}

// bodyOf returns the request as it is sent.
func bodyOf(t *testing.T, c *Client, req *llm.Request) map[string]any {
	t.Helper()
	raw, err := wire.Encode(c.newBody(req, c.lessons.Of(req)))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRequestParameters(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   Config
		model llm.ModelID
		want  map[string]any
	}{
		{"openai", Config{Name: "openai", BaseURL: "https://api.openai.com/v1"}, "openai/gpt-4o", map[string]any{"max_completion_tokens": 99.0, "prompt_cache_key": "s1"}},
		{"openai by host", Config{Name: "mine", BaseURL: "https://eu.api.openai.com/v1"}, "mine/gpt-4o", map[string]any{"max_completion_tokens": 99.0, "prompt_cache_key": "s1"}},
		{"a router's reasoning model", Config{Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1"}, "openrouter/openai/gpt-5-mini", map[string]any{"max_completion_tokens": 99.0}},
		{"a local model", Config{Name: "ollama", BaseURL: "http://127.0.0.1:1/v1"}, "ollama/llama3", map[string]any{"max_tokens": 99.0}},
	} {
		client := newClient(t, c.cfg)
		got := bodyOf(t, client, &llm.Request{
			Model: c.model, MaxOutput: 99, CacheKey: "s1", Reasoning: "low", Messages: []llm.Message{llm.Text(llm.User, "hi")},
		})
		_, model := c.model.Split()
		c.want["model"], c.want["stream"], c.want["reasoning_effort"] = model, true, "low"
		c.want["stream_options"] = map[string]any{"include_usage": true}
		c.want["messages"] = []any{map[string]any{"role": "user", "content": "hi"}}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestReplay: reasoning and signatures go back to their issuer and to nobody else
// (PRV-026); some servers want the field on every assistant message (PRV-016).
func TestReplay(t *testing.T) {
	history := []llm.Message{
		llm.Text(llm.User, "q"),
		{Role: llm.Assistant, Reasoning: &llm.Reasoning{Text: "hm", Raw: json.RawMessage(`{"reasoning_details":[{"data":"E"}],"reasoning_content":"hm"}`), Issuer: "x/one"},
			ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}", Extra: json.RawMessage(`{"s":1}`), Issuer: "x/one"}}},
		{Role: llm.ToolRole, ToolCallID: "a", Parts: []llm.Part{{Text: "r"}}},
		llm.Text(llm.Assistant, "done"), llm.Text(llm.User, "more"),
	}
	assistant := func(cfg Config, model llm.ModelID, i int) map[string]any {
		body := bodyOf(t, newClient(t, cfg), &llm.Request{Model: model, Messages: history})
		return body["messages"].([]any)[i].(map[string]any)
	}
	generic := Config{Name: "x", BaseURL: "http://127.0.0.1:1"}
	same := assistant(generic, "x/one", 1)
	if same["reasoning_content"] != "hm" || same["reasoning_details"] == nil || same["tool_calls"].([]any)[0].(map[string]any)["extra_content"] == nil {
		t.Errorf("to the issuer: %v", same)
	}
	other := assistant(generic, "x/two", 1)
	if other["reasoning_content"] != nil || other["reasoning_details"] != nil || other["tool_calls"].([]any)[0].(map[string]any)["extra_content"] != nil {
		t.Errorf("to another model: %v", other)
	}
	for _, i := range []int{1, 3} {
		if m := assistant(Config{Name: "deepseek", BaseURL: "http://127.0.0.1:1"}, "deepseek/r", i); m["reasoning_content"] != "" {
			t.Errorf("message %d to a server that wants it: %v", i, m)
		}
	}
}

// TestRefusalsTeach: a parameter that a model does not take is left out after the
// first refusal, and the error says that a second try is different.
func TestRefusalsTeach(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		gone   string // what the second request does not have
		has    string // and what it has
	}{
		"max_tokens":       {400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`, `"max_tokens"`, `"max_completion_tokens"`},
		"reasoning_effort": {400, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`, "reasoning_effort", `"model"`},
		"stream_options":   {422, `{"detail":[{"msg":"Extra inputs are not permitted: stream_options"}]}`, "stream_options", `"stream":true`},
		"tool_choice":      {400, `{"error":"tool_choice is not supported"}`, "tool_choice", `"model"`},
		"tools (PRV-041)":  {500, `{"error":{"message":"Cannot use tools with stream"}}`, `"stream":true`, `"tools"`},
		"image":            {400, `{"error":{"message":"This model does not support image input"}}`, "image_url", wire.BlindNotice},
		"thinking":         {400, `{"error":{"message":"messages.1.content.0: Invalid signature in thinking block"}}`, "reasoning_details", `"assistant"`},
	} {
		t.Run(name, func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{Lenient: true})
			client := newClient(t, Config{BaseURL: srv.BaseURL()})
			req := &llm.Request{
				Model: testModel, MaxOutput: 10, Reasoning: "low", NoTools: true, Tools: []llm.ToolSpec{{Name: "f"}},
				Messages: []llm.Message{
					llm.Text(llm.User, "q"),
					{Role: llm.Assistant, Parts: []llm.Part{{Text: "a"}}, Reasoning: &llm.Reasoning{Raw: json.RawMessage(`{"reasoning_details":[{}]}`), Issuer: string(testModel)}},
					{Role: llm.User, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MIME: "image/png", Data: []byte("x")}}}},
				},
			}
			srv.Enqueue(providertest.Answer{Status: c.status, Body: c.body}, providertest.Answer{Text: "ok"}, providertest.Answer{Status: c.status, Body: c.body})
			call := func() (llm.Response, *llm.Error) {
				r, err := llm.Collect(t.Context(), client.Stream(t.Context(), req))
				if err == nil {
					return r, nil
				}
				return r, err.(*llm.Error)
			}
			if _, e := call(); e == nil || e.Kind != llm.KindMalformed || !e.Repaired {
				t.Fatalf("first: %+v", e)
			}
			first := string(srv.Last(t).Body)
			if !strings.Contains(first, c.gone) {
				t.Fatalf("the first request has no %s", c.gone)
			}
			r, e := call()
			if e != nil || r.Message.Text() != "ok" {
				t.Fatalf("second: %q, %v", r.Message.Text(), e)
			}
			if second := string(srv.Last(t).Body); strings.Contains(second, c.gone) || !strings.Contains(second, c.has) {
				t.Errorf("second request: %s", second)
			}
			if _, e := call(); e == nil || e.Repaired {
				t.Errorf("the same refusal again is repaired again: %+v", e)
			}
			if r := srv.Refusals(); len(r) > 0 {
				t.Errorf("refused: %q", r)
			}
		})
	}
}

// TestImagesOfResults is PRV-031: they go into the next user message, or into one
// of their own.
func TestImagesOfResults(t *testing.T) {
	image := llm.Part{Image: &llm.Image{MIME: "image/png", Data: []byte("x")}}
	call := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}}
	result := llm.Message{Role: llm.ToolRole, ToolCallID: "a", Parts: []llm.Part{{Text: "seen"}, image}}
	for name, c := range map[string]struct {
		after []llm.Message
		want  []string // roles
		parts int      // of the user message with the image
	}{
		"nothing follows":   {nil, []string{"user", "assistant", "tool", "user"}, 2},
		"a user message":    {[]llm.Message{llm.Text(llm.User, "and?")}, []string{"user", "assistant", "tool", "user"}, 2},
		"an answer follows": {[]llm.Message{llm.Text(llm.Assistant, "so")}, []string{"user", "assistant", "tool", "user", "assistant"}, 2},
	} {
		req := &llm.Request{Model: testModel, Messages: append([]llm.Message{llm.Text(llm.User, "q"), call, result}, c.after...)}
		var roles []string
		body := bodyOf(t, newClient(t, Config{BaseURL: "http://127.0.0.1:1"}), req)["messages"].([]any)
		for _, m := range body {
			roles = append(roles, m.(map[string]any)["role"].(string))
		}
		parts, _ := body[3].(map[string]any)["content"].([]any)
		if diff := cmp.Diff(c.want, roles); diff != "" || len(parts) != c.parts || !strings.Contains(fmt.Sprint(parts), "image_url") {
			t.Errorf("%s: parts %v, roles (-want +got):\n%s", name, parts, diff)
		}
	}
}

// TestNoGPT6ToolsHere: the library knows that these models want another API.
func TestNoGPT6ToolsHere(t *testing.T) {
	c := newClient(t, Config{Name: "openai", BaseURL: "http://127.0.0.1:1"})
	req := &llm.Request{Model: "openai/gpt-6-sol", Tools: []llm.ToolSpec{{Name: "f"}}, Messages: []llm.Message{llm.Text(llm.User, "hi")}}
	_, err := llm.Collect(t.Context(), c.Stream(t.Context(), req))
	if e, ok := err.(*llm.Error); !ok || e.Kind != llm.KindMalformed || !strings.Contains(e.Message, "codex_responses") {
		t.Errorf("error: %v", err)
	}
}
