package responses

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
	"parley/agentcore/provider/wire"
)

// inputOf returns the input items of a request as they are sent.
func inputOf(t *testing.T, req *llm.Request, q quirk) (out []string) {
	t.Helper()
	raw, err := wire.Encode(newBody(req, q))
	if err != nil {
		t.Fatal(err)
	}
	var body struct{ Input []json.RawMessage }
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	for _, item := range body.Input {
		out = append(out, string(item))
	}
	return out
}

// TestBody is a whole request. Nothing is stored at the server, and sealed reasoning
// is always asked for (PRV-001); images of results stay with them (PRV-031).
func TestBody(t *testing.T) {
	image := llm.Part{Image: &llm.Image{MIME: "image/png", Data: []byte("p")}}
	req := &llm.Request{
		Model: "openai-codex/gpt-5-mini", System: "be <brief>", Reasoning: "low", MaxOutput: 5, NoTools: true, CacheKey: "s1", Ephemeral: "[notice]",
		Tools: []llm.ToolSpec{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{
			{Role: llm.User, Parts: []llm.Part{{Text: "q"}, image}},
			{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: strings.Repeat("x", 70), Name: "f g", Arguments: "["}}},
			{Role: llm.ToolRole, ToolCallID: strings.Repeat("x", 70), Parts: []llm.Part{{Text: "seen"}, image}},
		},
	}
	raw, err := wire.Encode(newBody(req, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"gpt-5-mini","instructions":"be <brief>","tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false}],` +
		`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"q"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cA=="}]},` +
		`{"type":"function_call","call_id":"ID","name":"f_g","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"ID","output":[{"type":"input_text","text":"seen"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cA=="},{"type":"input_text","text":"[notice]"}]}],` +
		`"tool_choice":"none","include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":16,"prompt_cache_key":"s1","store":false,"stream":true}`
	_, id, _ := strings.Cut(string(raw), `"call_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if diff := cmp.Diff(strings.ReplaceAll(want, "ID", id), string(raw)); diff != "" || len(id) > maxID {
		t.Errorf("id %s, body (-want +got):\n%s", id, diff)
	}
	if err := providertest.CheckResponses(raw); err != nil {
		t.Error(err)
	}
}

// TestRefusalsTeach: what a model does not take is left out after the first refusal,
// and the error says that a second try is different.
func TestRefusalsTeach(t *testing.T) {
	for name, c := range map[string]struct{ message, gone, has string }{
		"sealed reasoning": {"Encrypted content is not supported with this model.", `"include"`, `"input"`},
		"replay (PRV-026)": {"The encrypted content for item rs_1 could not be verified. (invalid_encrypted_content)", `"encrypted_content"`, `"include"`},
		"following item":   {"Item 'rs_1' of type 'reasoning' was provided without its required following item.", `"encrypted_content"`, `"include"`},
		"effort":           {"Unsupported parameter: 'reasoning.effort' is not supported with this model.", `"effort"`, `"input"`},
		"summary":          {"Your organization must be verified to generate reasoning summaries.", `"summary":"auto"`, `"effort"`},
		"cache key":        {"Unsupported parameter: prompt_cache_key", "prompt_cache_key", `"input"`},
		"limit":            {"Unsupported parameter: max_output_tokens", "max_output_tokens", `"input"`},
		"tool choice":      {"tool_choice is not supported", "tool_choice", `"input"`},
		"phase":            {"Unknown parameter: 'input[1].phase'.", `"phase"`, `"input"`},
		"image":            {"This model does not support image inputs.", "input_image", wire.BlindNotice},
	} {
		t.Run(name, func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{})
			client := newClient(t, Config{BaseURL: srv.BaseURL()})
			req := &llm.Request{Model: testModel, MaxOutput: 100, Reasoning: "low", NoTools: true, CacheKey: "s", Tools: []llm.ToolSpec{{Name: "f"}}}
			call := func(a providertest.Answer) (llm.Response, *llm.Error) {
				srv.Enqueue(a)
				r, err := llm.Collect(t.Context(), client.Stream(t.Context(), req))
				e, _ := err.(*llm.Error)
				return r, e
			}
			req.Messages = []llm.Message{{Role: llm.User, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MIME: "image/png", Data: []byte("x")}}}}}
			r, _ := call(providertest.Answer{Reasoning: "hm", Commentary: "so", Text: "a"})
			req.Messages = append(req.Messages, r.Message, llm.Text(llm.User, "and?"))
			body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": c.message}})
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
