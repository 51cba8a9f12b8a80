package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
)

const (
	completed  = `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`
	cutByLimit = `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`
)

func text(delta string) string {
	return `{"type":"response.output_text.delta","item_id":"m","output_index":0,"delta":"` + delta + `"}`
}

// foldAll folds recorded events. New ids are new1, new2, …
func foldAll(req *llm.Request, events ...string) (llm.Response, error) {
	n := 0
	f := newFold(req, func() string { n++; return fmt.Sprintf("new%d", n) })
	var c llm.Collector
	add := func(events []llm.Event, err error) error {
		for _, ev := range events {
			c.Add(ev)
		}
		return err
	}
	for _, raw := range events {
		if err := add(f.Add([]byte(raw))); err != nil {
			return llm.Response{}, err
		}
	}
	err := add(f.End(true))
	r, _ := c.Response()
	return r, err
}

// TestAnswers: what servers make of an answer.
func TestAnswers(t *testing.T) {
	call := llm.ToolCall{ID: "c", Name: "look", Arguments: `{"at":1}`}
	added := `{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"look","arguments":""}}`
	done := `{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"look","arguments":"{\"at\":1}"}}`
	message := `{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"one"},{"type":"refusal","refusal":"two"}]}`
	args := func(s string) string {
		return `{"type":"response.function_call_arguments.delta","item_id":"f","output_index":0,"delta":` + s + `}`
	}
	for _, c := range []struct {
		name   string
		events []string
		text   string
		calls  []llm.ToolCall
		finish llm.FinishReason
	}{
		{"text", []string{text("a"), text("b"), completed}, "ab", nil, llm.FinishStop},
		{"PST-025 cut by the limit", []string{text("a"), cutByLimit}, "a", nil, llm.FinishLength},
		{"PRV-009 filtered", []string{text("a"), strings.Replace(cutByLimit, "max_output_tokens", "content_filter", 1)}, "a", nil, llm.FinishFilter},
		{"PRV-009 a refusal", []string{`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, completed}, "no", nil, llm.FinishStop},
		{"an item that did not come in pieces", []string{`{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, completed}, "one\n\ntwo", nil, llm.FinishStop},
		{"an item of which a piece came", []string{text("on"), `{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, completed}, "one\n\ntwo", nil, llm.FinishStop},
		{"a message that says nothing", []string{strings.Replace(completed, "[]", `[{"id":"m","type":"message","role":"assistant","status":"completed","content":[]}]`, 1)}, "", nil, llm.FinishSilent},
		{"thinking alone", []string{strings.Replace(completed, "[]", `[{"id":"r","type":"reasoning","encrypted_content":"x","summary":[]}]`, 1)}, "", nil, llm.FinishStop},
		{"only the end", []string{strings.Replace(completed, "[]", "["+message+"]", 1)}, "one\n\ntwo", nil, llm.FinishStop},
		{"the end repeats what came", []string{text("one"), `{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, strings.Replace(completed, "[]", "["+message+"]", 1)}, "one\n\ntwo", nil, llm.FinishStop},
		{"the end numbers its items otherwise", []string{`{"type":"response.output_item.done","output_index":0,"item":{"id":"r","type":"reasoning","summary":[]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":` + strings.Replace(message, `"m"`, `"n"`, 1) + `}`, strings.Replace(completed, "[]", "["+message+"]", 1)}, "one\n\ntwo", nil, llm.FinishStop},
		{"PST-028 not streamed", []string{`{"object":"response","status":"completed","output":[` + message + `]}`}, "one\n\ntwo", nil, llm.FinishStop},
		{"unknown events and items", []string{`{"type":"response.brand_new"}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"crystal"}}`, text("a"), completed}, "a", nil, llm.FinishStop},
		{"a call", []string{added, args(`"{\"at\""`), args(`":1}"`), done, completed}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"a call without a beginning", []string{args(`"{\"at\":1}"`), done, completed}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"a call without pieces", []string{done, completed}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"ids that change", []string{added, strings.Replace(args(`"{\"at\":1}"`), `"f"`, `"other"`, 1), done, completed}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"neither ids nor numbers", []string{`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"look"}}`,
			`{"type":"response.function_call_arguments.delta","delta":"{\"at\":1}"}`, completed}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"PST-008 no arguments", []string{added, completed}, "", []llm.ToolCall{{ID: "c", Name: "look", Arguments: "{}"}}, llm.FinishToolCalls},
		{"PRV-019 cut arguments", []string{added, args(`"{\"at\":\"rm -rf /b"`), cutByLimit}, "", []llm.ToolCall{{ID: "c", Name: "look", Arguments: `{"at":"rm -rf /b`}}, llm.FinishLength},
		{"PRV-032 no name", []string{args(`"{}"`), completed}, "", []llm.ToolCall{{ID: "new1", Name: "unnamed_tool", Arguments: "{}"}}, llm.FinishToolCalls},
		{"PRV-007 the id of an earlier turn", []string{strings.ReplaceAll(done, `"c"`, `"old"`), completed}, "", []llm.ToolCall{{ID: "new1", Name: "look", Arguments: `{"at":1}`}}, llm.FinishToolCalls},
		{"PRV-030 one id twice", []string{done, strings.Replace(done, `"output_index":0,"item":{"id":"f"`, `"output_index":1,"item":{"id":"g"`, 1), completed}, "",
			[]llm.ToolCall{call, {ID: "new1", Name: "look", Arguments: `{"at":1}`}}, llm.FinishToolCalls},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &llm.Request{Model: testModel, Messages: []llm.Message{{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "old"}}}}}
			r, err := foldAll(req, c.events...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.calls, r.Message.ToolCalls); diff != "" || r.Message.Text() != c.text || r.Finish != c.finish {
				t.Errorf("text %q, finish %s, calls (-want +got):\n%s", r.Message.Text(), r.Finish, diff)
			}
		})
	}
}

// TestFailures: errors inside a stream, and answers without an end.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		kind   llm.ErrorKind
	}{
		{"an error event", []string{text("a"), `{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`}, llm.KindRateLimit},
		{"an error object", []string{text("a"), `{"error":{"message":"boom","code":"server_error"}}`}, llm.KindOverloaded},
		{"a failed response", []string{text("a"), `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}`}, llm.KindOverloaded},
		{"PST-011 an overflow", []string{`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"too long"}}}`}, llm.KindOverflow},
		{"failed without a word", []string{`{"type":"response.failed","response":{"status":"failed","error":null}}`}, llm.KindOverloaded},
		{"no end, although [DONE] came", []string{text("a")}, llm.KindNetwork},
		{"no JSON", []string{`{"type":`}, llm.KindNetwork},
	} {
		_, err := foldAll(&llm.Request{Model: testModel}, c.events...)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.kind {
			t.Errorf("%s: %v, want kind %s", c.name, err, c.kind)
		}
	}
}

// TestReasoningKeepsItsPlace is PRV-010 and PRV-001: sealed reasoning, commentary and
// calls come back in their order and without ids.
func TestReasoningKeepsItsPlace(t *testing.T) {
	item := func(i int, s string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, s)
	}
	r, err := foldAll(&llm.Request{Model: testModel},
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"first"}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"second"}`,
		item(0, `{"id":"rs_1","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"first"},{"type":"summary_text","text":"second"}],"encrypted_content":"E1"}`),
		item(1, `{"id":"m1","type":"message","phase":"commentary","content":[{"type":"output_text","text":"I look"}]}`),
		item(2, `{"id":"f1","type":"function_call","call_id":"c1","name":"look","arguments":"{}"}`),
		item(3, `{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"E2"}`),
		item(4, `{"id":"rs_3","type":"reasoning","summary":[],"encrypted_content":null}`),
		item(5, `{"id":"m2","type":"message","phase":"final_answer","content":[{"type":"output_text","text":"done"}]}`), completed)
	if err != nil {
		t.Fatal(err)
	}
	if r.Message.Text() != "I look\n\ndone" || r.Message.Reasoning.Text != "first\n\nsecond" {
		t.Errorf("message: %+v, %+v", r.Message, r.Message.Reasoning)
	}
	req := &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "q"), r.Message, {Role: llm.ToolRole, ToolCallID: "c1"}}}
	want := []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}`,
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"first"},{"type":"summary_text","text":"second"}],"encrypted_content":"E1"}`,
		`{"type":"message","role":"assistant","content":"I look","phase":"commentary"}`,
		`{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"}`,
		`{"type":"reasoning","summary":[],"encrypted_content":"E2"}`,
		`{"type":"message","role":"assistant","content":"done","phase":"final_answer"}`,
		`{"type":"function_call_output","call_id":"c1","output":"(no output)"}`,
	}
	if diff := cmp.Diff(want, inputOf(t, req, 0)); diff != "" {
		t.Errorf("to the issuer (-want +got):\n%s", diff)
	}
	plain := []string{want[0], `{"type":"message","role":"assistant","content":"I look\n\ndone"}`, want[3], want[6]}
	req.Model = "test/other"
	if diff := cmp.Diff(plain, inputOf(t, req, 0)); diff != "" {
		t.Errorf("to another model (-want +got):\n%s", diff)
	}
	// a thought that nothing follows is followed by a placeholder
	r, err = foldAll(&llm.Request{Model: testModel}, item(0, `{"type":"reasoning","summary":[],"encrypted_content":"E"}`), cutByLimit)
	if err != nil || r.Finish != llm.FinishLength {
		t.Fatalf("%+v, %v", r, err)
	}
	got := inputOf(t, &llm.Request{Model: testModel, Messages: []llm.Message{r.Message, llm.Text(llm.User, "go on")}}, 0)
	if len(got) != 3 || !strings.Contains(got[0], `"E"`) || !strings.Contains(got[1], "(empty message)") {
		t.Errorf("after a thought alone: %q", got)
	}
}

// FuzzFold: no bytes make it panic.
func FuzzFold(f *testing.F) {
	for _, s := range []string{text("x"), completed, cutByLimit, `{"type":"response.output_item.done","item":{"type":"reasoning","summary":null,"encrypted_content":"x"}}`,
		`{"type":"response.function_call_arguments.done","output_index":-1,"arguments":"{"}`, `{"object":"response","output":[null,{}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := foldAll(&llm.Request{}, string(raw), string(raw), completed)
		if err == nil && r.Message.Reasoning != nil && !json.Valid(append(r.Message.Reasoning.Raw, ' ')) && len(r.Message.Reasoning.Raw) > 0 {
			t.Errorf("what is to be stored is no JSON: %s", r.Message.Reasoning.Raw)
		}
	})
}

type replayed string

func (r replayed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(r)))}, nil
}

// BenchmarkStream folds an answer of 1,000 text events, cleaner included.
func BenchmarkStream(b *testing.B) {
	var stream strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&stream, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"word%d \",\"logprobs\":[],\"obfuscation\":\"abcdef\"}\n\n", i, i)
	}
	stream.WriteString("data: " + completed + "\n\n")
	c, err := New(Config{BaseURL: "http://recorded/v1"}, Deps{HTTP: &http.Client{Transport: replayed(stream.String())}})
	if err != nil {
		b.Fatal(err)
	}
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

// TestStreamFaults: what servers do to a stream, over a real connection.
func TestStreamFaults(t *testing.T) {
	sse := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	for _, c := range []struct {
		name, raw, text string
		kind            llm.ErrorKind // empty: answered with text
	}{
		{"PST-006 comments", ": ping\n\n" + sse(text("a")) + ": x\n\n" + sse(completed), "a", ""},
		{"no blank lines, no newline at the end", "event: x\ndata: " + text("a") + "\nevent: y\ndata: " + completed, "a", ""},
		{"PST-028 plain JSON", `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`, "hi", ""},
		{"PST-017 nothing at all", " ", "", llm.KindNetwork},
		{"cut between events", sse(text("a")), "", llm.KindNetwork},
		{"[DONE] without an end", sse(text("a")) + "data: [DONE]\n\n", "", llm.KindNetwork},
		{"PST-026 a web page", "<html><title>Blocked</title></html>", "", llm.KindUnknown},
		{"PST-009 an error event", sse(text("a")) + "event: error\ndata: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n", "", llm.KindOverloaded},
		{"an error without a type", sse(text("a"), `{"error":{"message":"quota","code":"insufficient_quota"}}`), "", llm.KindBilling},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{})
			srv.Enqueue(providertest.Answer{Raw: c.raw})
			client := newClient(t, Config{BaseURL: srv.BaseURL()})
			req := &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "hi")}}
			r, err := llm.Collect(t.Context(), client.Stream(t.Context(), req))
			var e *llm.Error
			errors.As(err, &e)
			switch {
			case c.kind == "" && (err != nil || r.Message.Text() != c.text):
				t.Errorf("text %q, error %v", r.Message.Text(), err)
			case c.kind != "" && (e == nil || e.Kind != c.kind || e.Model != testModel):
				t.Errorf("error %v, want kind %s", err, c.kind)
			}
		})
	}
}
