package chatcompletions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// foldAll folds recorded chunks. New ids are new1, new2, …
func foldAll(req *llm.Request, d dialect, chunks ...string) (llm.Response, error) {
	n := 0
	f := newFold(req, d, func() string { n++; return fmt.Sprintf("new%d", n) })
	var c llm.Collector
	for _, raw := range chunks {
		events, err := f.Add([]byte(raw))
		if err != nil {
			return llm.Response{}, err
		}
		for _, ev := range events {
			c.Add(ev)
		}
	}
	events, err := f.End(true)
	for _, ev := range events {
		c.Add(ev)
	}
	r, _ := c.Response()
	return r, err
}

func callChunks(pieces ...string) (out []string) {
	for _, p := range pieces {
		out = append(out, `{"choices":[{"delta":{"tool_calls":[`+p+`]}}]}`)
	}
	return append(out, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
}

// TestToolCallsArePutTogether: each server numbers the pieces in its own way.
func TestToolCallsArePutTogether(t *testing.T) {
	one, two := llm.ToolCall{ID: "a", Name: "read", Arguments: `{"p":1}`}, llm.ToolCall{ID: "b", Name: "read", Arguments: `{"p":2}`}
	renamed := func(c llm.ToolCall, id string) llm.ToolCall { c.ID = id; return c }
	for _, c := range []struct {
		name   string
		chunks []string
		want   []llm.ToolCall
	}{
		{"as OpenAI does", callChunks(
			`{"index":0,"id":"a","function":{"name":"read","arguments":""}}`, `{"index":1,"id":"b","function":{"name":"read","arguments":"{\"p\""}}`,
			`{"index":0,"function":{"arguments":"{\"p\":1}"}}`, `{"index":1,"function":{"arguments":":2}"}}`), []llm.ToolCall{one, two}},
		{"PST-007 no index", callChunks(
			`{"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`, `{"id":"b","function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{one, two}},
		{"PST-007 no index, split", callChunks(
			`{"id":"a","function":{"name":"read","arguments":"{\"p\""}}`, `{"function":{"arguments":":1}"}}`,
			`{"id":"b","function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{one, two}},
		{"PST-014 one index for two calls", callChunks(
			`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"index":0,"id":"b","function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{one, two}},
		{"PST-020 the tail has another index", callChunks(
			`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"index":0,"id":"b","function":{"name":"read"}}`, `{"index":1,"function":{"arguments":"{\"p\":2}"}}`), []llm.ToolCall{one, two}},
		{"PST-021 the id on every chunk", callChunks(
			`{"index":0,"id":"a","function":{"name":"read","arguments":"{"}}`, `{"index":0,"id":"a","function":{"name":"read","arguments":"\"p\""}}`,
			`{"index":0,"id":"a","function":{"arguments":":1}"}}`), []llm.ToolCall{one}},
		{"PST-022 arguments before the name", callChunks(
			`{"index":0,"id":"a","function":{"arguments":"{\"p\""}}`, `{"index":0,"id":"a","function":{"name":"read","arguments":":1}"}}`), []llm.ToolCall{one}},
		{"PRV-030 the same id twice", callChunks(
			`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"index":1,"id":"a","function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{one, renamed(two, "new1")}},
		{"PRV-030 the same id twice, no index", callChunks(
			`{"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"id":"a","function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{one, renamed(two, "new1")}},
		{"PRV-030 empty ids", callChunks(
			`{"index":0,"id":"","function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"index":1,"id":"","function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{renamed(one, "new1"), renamed(two, "new2")}},
		{"neither id nor index", callChunks(
			`{"function":{"name":"read","arguments":"{\"p\":1}"}}`,
			`{"function":{"name":"read","arguments":"{\"p\":2}"}}`), []llm.ToolCall{renamed(one, "new1"), renamed(two, "new2")}},
		{"PRV-007 the id of an earlier turn", callChunks(
			`{"index":0,"id":"old","function":{"name":"read","arguments":"{\"p\":1}"}}`), []llm.ToolCall{renamed(one, "new1")}},
		{"arguments as an object", callChunks(
			`{"index":0,"id":"a","function":{"name":"read","arguments":{"p":1}}}`), []llm.ToolCall{one}},
		{"PST-008 no arguments", callChunks(
			`{"index":0,"id":"a","function":{"name":"wait","arguments":""}}`,
			`{"index":1,"id":"b","function":{"name":"wait","arguments":null}}`), []llm.ToolCall{{ID: "a", Name: "wait", Arguments: "{}"}, {ID: "b", Name: "wait", Arguments: "{}"}}},
		{"PRV-032 no name", callChunks(
			`{"index":0,"id":"a","function":{"name":"","arguments":"{\"p\":1}"}}`), []llm.ToolCall{{ID: "a", Name: wire.UnnamedTool, Arguments: `{"p":1}`}}},
		{"PST-023 nulls and empty lists", append([]string{
			`{"choices":[{"delta":{"content":"","function_call":{"arguments":"","name":""},"tool_calls":null},"finish_reason":""}]}`,
			`{"choices":[{"delta":{"tool_calls":[]}}]}`, `{"choices":[]}`, `{"choices":null}`,
		}, callChunks(`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}`)...), []llm.ToolCall{one}},
		{"not streamed", []string{`{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"a","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}},{"id":"a","type":"function","function":{"name":"read","arguments":"{\"p\":2}"}}` +
			`]},"finish_reason":"tool_calls"}]}`}, []llm.ToolCall{one, renamed(two, "new1")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &llm.Request{Model: testModel, Messages: []llm.Message{{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "old"}}}}}
			r, err := foldAll(req, dialect{}, c.chunks...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Message.ToolCalls); diff != "" || r.Finish != llm.FinishToolCalls {
				t.Errorf("finish %s, calls (-want +got):\n%s", r.Finish, diff)
			}
		})
	}
}

// TestSignaturesKeepTheirIssuer: extra_content is stored as it came, with the model
// that it belongs to (PRV-026).
func TestSignaturesKeepTheirIssuer(t *testing.T) {
	r, err := foldAll(&llm.Request{Model: "gemini/pro"}, dialect{}, callChunks(
		`{"index":0,"id":"a","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"SIG"}}}`)...)
	if err != nil {
		t.Fatal(err)
	}
	call := r.Message.ToolCalls[0]
	if string(call.Extra) != `{"google":{"thought_signature":"SIG"}}` || call.Issuer != "gemini/pro" {
		t.Errorf("call: %+v", call)
	}
}

func TestFinishReasons(t *testing.T) {
	for in, want := range map[string]llm.FinishReason{
		`"stop"`: llm.FinishStop, `"eos"`: llm.FinishStop, `"length"`: llm.FinishLength, `"max_tokens"`: llm.FinishLength,
		`"content_filter"`: llm.FinishFilter, `"SAFETY"`: llm.FinishFilter,
	} {
		r, err := foldAll(&llm.Request{}, dialect{}, `{"choices":[{"delta":{"content":"x"},"finish_reason":`+in+`}]}`)
		if err != nil || r.Finish != want {
			t.Errorf("%s: %s, %v, want %s", in, r.Finish, err, want)
		}
	}
	// PST-016: an empty reason ends nothing, and the text after it counts
	f := newFold(&llm.Request{}, dialect{}, nil)
	if _, err := f.Add([]byte(`{"choices":[{"delta":{"content":"x"},"finish_reason":""}]}`)); err != nil || f.finish != "" {
		t.Errorf("finish %q, %v", f.finish, err)
	}
	// a reason stays although pieces without one follow
	r, _ := foldAll(&llm.Request{}, dialect{}, `{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}`, `{"choices":[{"delta":{},"finish_reason":null}]}`)
	if r.Finish != llm.FinishLength {
		t.Errorf("the reason was forgotten: %s", r.Finish)
	}
	// some servers say stop although there are calls
	r, _ = foldAll(&llm.Request{}, dialect{}, callChunks(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`)[0],
		`{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
	if r.Finish != llm.FinishToolCalls {
		t.Errorf("stop with calls: %s", r.Finish)
	}
	if _, err := foldAll(&llm.Request{}, dialect{}, `{"choices":[{"delta":{},"finish_reason":"error"}]}`); err == nil {
		t.Error("finish reason error is no error")
	}
}

// TestTruncatedCallIsLength is PRV-019.
func TestTruncatedCallIsLength(t *testing.T) {
	for _, args := range []string{`{\"command\":\"rm -rf /tmp/bu`, `{\"command\":`} {
		r, err := foldAll(&llm.Request{}, dialect{}, callChunks(`{"index":0,"id":"a","function":{"name":"x","arguments":"`+args+`"}}`)...)
		if err != nil || r.Finish != llm.FinishLength {
			t.Errorf("%s: finish %s, %v", args, r.Finish, err)
		}
	}
}

// TestRefusalIsAnAnswer is PRV-009.
func TestRefusalIsAnAnswer(t *testing.T) {
	r, err := foldAll(&llm.Request{}, dialect{}, `{"choices":[{"delta":{"content":null,"refusal":"I cannot "}}]}`,
		`{"choices":[{"delta":{"content":"","refusal":"do that."},"finish_reason":"stop"}]}`)
	if err != nil || r.Message.Text() != "I cannot do that." {
		t.Errorf("%q, %v", r.Message.Text(), err)
	}
}

func TestReasoning(t *testing.T) {
	stop := `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for _, c := range []struct {
		name   string
		d      dialect
		chunks []string
		want   *llm.Reasoning
		text   string
	}{
		{"reasoning_content", dialect{}, []string{`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`}, &llm.Reasoning{Text: "hm"}, ""},
		{"kept for servers that want it back (PRV-016)", dialect{reasoningContent: true}, []string{`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`},
			&llm.Reasoning{Text: "hm", Raw: json.RawMessage(`{"reasoning_content":"hm"}`), Issuer: "test/model"}, ""},
		{"the same thing under two names", dialect{}, []string{`{"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`}, &llm.Reasoning{Text: "hm"}, ""},
		{"reasoning_details", dialect{}, []string{
			`{"choices":[{"delta":{"reasoning":"Let ","reasoning_details":[{"type":"reasoning.text","text":"Let ","index":0,"format":"f"}]}}]}`,
			`{"choices":[{"delta":{"reasoning":"me","reasoning_details":[{"type":"reasoning.text","text":"me","index":0}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"SIG","index":0}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"E1","index":1}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"E2","index":1}]}}]}`,
		}, &llm.Reasoning{Text: "Let me", Issuer: "test/model", Raw: json.RawMessage(`{"reasoning_details":[` +
			`{"format":"f","index":0,"signature":"SIG","text":"Let me","type":"reasoning.text"},` +
			`{"data":"E1","index":1,"type":"reasoning.encrypted"},{"data":"E2","index":1,"type":"reasoning.encrypted"}]}`)}, ""},
		{"only in the details", dialect{}, []string{`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"in short"}]}}]}`},
			&llm.Reasoning{Text: "in short", Issuer: "test/model", Raw: json.RawMessage(`{"reasoning_details":[{"summary":"in short","type":"reasoning.summary"}]}`)}, ""},
		{"inside the text", dialect{}, []string{`{"choices":[{"delta":{"content":"\n<thi"}}]}`, `{"choices":[{"delta":{"content":"nk>hm <b"}}]}`,
			`{"choices":[{"delta":{"content":"></thin"}}]}`, `{"choices":[{"delta":{"content":"k>\n\nYes"}}]}`}, &llm.Reasoning{Text: "hm <b>"}, "Yes"},
		{"a tag that is text", dialect{}, []string{`{"choices":[{"delta":{"content":"Use <think> tags"}}]}`}, nil, "Use <think> tags"},
		{"content in parts", dialect{}, []string{`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Yes"}]}}]}`},
			&llm.Reasoning{Text: "hm"}, "Yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := foldAll(&llm.Request{Model: testModel}, c.d, append(c.chunks, stop)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Message.Reasoning); diff != "" || r.Message.Text() != c.text {
				t.Errorf("text %q, reasoning (-want +got):\n%s", r.Message.Text(), diff)
			}
		})
	}
}

// TestThinkFilterLosesNothing: however the text is cut, thinking and answer are
// the same, and text without a block comes out as it is.
func TestThinkFilterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "\n", "<think>a</think>b", " <thinking>x</think>y</thinking>\nz", "<thin", "<thought>open", "plain < text", "<b>"}).Draw(t, "text")
		var f thinkFilter
		wholeThought, wholeSaid := f.add(text)
		moreThought, moreSaid := f.end()
		var g thinkFilter
		var thought, said string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			a, b := g.add(rest[:n])
			thought, said, rest = thought+a, said+b, rest[n:]
		}
		a, b := g.end()
		if thought+a != wholeThought+moreThought || said+b != wholeSaid+moreSaid {
			t.Fatalf("%q: %q %q, in one piece %q %q", text, thought+a, said+b, wholeThought+moreThought, wholeSaid+moreSaid)
		}
	})
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		chunk string
		want  llm.Usage
	}{
		"openai": {
			`{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}`,
			llm.Usage{Input: 11, CachedInput: 4, Output: 7, Reasoning: 3},
		},
		"openrouter": {
			`{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"cost":0.0012,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2}}}`,
			llm.Usage{Input: 11, CachedInput: 4, CacheWrite: 2, Output: 7, Cost: 0.0012},
		},
		"deepseek": {`{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"prompt_cache_hit_tokens":5}}`, llm.Usage{Input: 11, CachedInput: 5, Output: 7}},
		"reasoning counted apart": {
			`{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":38,"completion_tokens_details":{"reasoning_tokens":20}}}`,
			llm.Usage{Input: 11, Output: 27, Reasoning: 20},
		},
		"moonshot": {`{"choices":[{"delta":{},"usage":{"prompt_tokens":1,"completion_tokens":2,"cached_tokens":1}}]}`, llm.Usage{Input: 1, CachedInput: 1, Output: 2}},
		"groq":     {`{"choices":[],"x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":2}}}`, llm.Usage{Input: 1, Output: 2}},
	} {
		r, err := foldAll(&llm.Request{}, dialect{}, `{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":null}`, c.chunk)
		if err != nil || r.Usage != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, r.Usage, err, c.want)
		}
	}
}

// FuzzFold: no bytes make it panic.
func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":{}}}]}}]}`))
	f.Add([]byte(`[{"error":{"message":"x"}}]`))
	f.Add([]byte(`{"choices":[{"delta":{"reasoning_details":[null,{"type":1}],"content":[null]}}]}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = foldAll(&llm.Request{}, dialect{reasoningContent: true}, string(raw), string(raw))
	})
}

// BenchmarkStream folds an answer of 1,000 text chunks, cleaner included.
func BenchmarkStream(b *testing.B) {
	var stream strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&stream, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word%d \"},\"finish_reason\":null}]}\n\n", i)
	}
	stream.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	c := recorded(b, stream.String())
	req := &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "hi")}}
	b.SetBytes(int64(stream.Len()))
	events := 0
	for b.Loop() {
		for _, err := range c.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
			events++
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
