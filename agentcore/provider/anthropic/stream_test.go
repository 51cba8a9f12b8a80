package anthropic

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
	begun    = `{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":6,"cache_creation_input_tokens":4,"output_tokens":1}}}`
	overload = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	over     = `{"type":"message_stop"}`
)

func start(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func piece(i int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
}

func textPiece(i int, s string) string { return piece(i, `{"type":"text_delta","text":"`+s+`"}`) }

func argsPiece(i int, s string) string {
	b, _ := json.Marshal(s)
	return piece(i, `{"type":"input_json_delta","partial_json":`+string(b)+`}`)
}

func stop(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":7}}`
}

// foldAll folds recorded events. New ids are new1, new2, …
func foldAll(native bool, events ...string) (llm.Response, error) {
	n := 0
	req := &llm.Request{Model: testModel, Messages: []llm.Message{{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "old"}}}}}
	f := newFold(req, native, func() string { n++; return fmt.Sprintf("new%d", n) })
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
	err := add(f.End(false))
	r, _ := c.Response()
	return r, err
}

// TestAnswers: what servers make of an answer.
func TestAnswers(t *testing.T) {
	tool := `{"type":"tool_use","id":"c","name":"look","input":{}}`
	call := llm.ToolCall{ID: "c", Name: "look", Arguments: `{"at":1}`}
	renamed := call
	renamed.ID = "new1"
	for _, c := range []struct {
		name   string
		events []string
		text   string
		calls  []llm.ToolCall
		finish llm.FinishReason
	}{
		{"text", []string{begun, `{"type":"ping"}`, start(0, `{"type":"text","text":""}`), textPiece(0, "a"), textPiece(0, "b"), stop("end_turn"), over}, "ab", nil, llm.FinishStop},
		{"text in its beginning", []string{start(0, `{"type":"text","text":"a"}`), textPiece(0, "b"), stop("end_turn"), over}, "ab", nil, llm.FinishStop},
		{"two texts", []string{start(0, `{"type":"text","text":"a"}`), start(1, `{"type":"text","text":"b"}`), stop("stop_sequence"), over}, "a\n\nb", nil, llm.FinishStop},
		{"no message_stop, but a reason", []string{start(0, `{"type":"text","text":"a"}`), stop("max_tokens")}, "a", nil, llm.FinishLength},
		{"no reason, but message_stop", []string{start(0, `{"type":"text","text":"a"}`), over}, "a", nil, llm.FinishStop},
		{"PRV-009 a refusal", []string{start(0, `{"type":"text","text":"no"}`), stop("refusal"), over}, "no", nil, llm.FinishFilter},
		{"the window is full", []string{start(0, `{"type":"text","text":"a"}`), stop("model_context_window_exceeded"), over}, "a", nil, llm.FinishLength},
		{"PST-028 not streamed", []string{`{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"look","input":{"at":1}}],"stop_reason":"tool_use"}`}, "a", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"a call", []string{start(0, tool), argsPiece(0, `{"at"`), argsPiece(0, `:1}`), stop("tool_use"), over}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"no index", []string{strings.Replace(start(0, tool), `"index":0,`, "", 1), strings.Replace(argsPiece(0, `{"at":1}`), `"index":0,`, "", 1), stop("end_turn"), over}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"PST-008 no arguments", []string{start(0, tool), argsPiece(0, ""), stop("tool_use"), over}, "", []llm.ToolCall{{ID: "c", Name: "look", Arguments: "{}"}}, llm.FinishToolCalls},
		{"PST-027 arguments in the beginning", []string{start(0, strings.Replace(tool, "{}", `{"at":1}`, 1)), stop("tool_use"), over}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"PST-027 and in pieces too", []string{start(0, strings.Replace(tool, "{}", `{"at":1}`, 1)), argsPiece(0, `{"at":1}`), stop("tool_use"), over}, "", []llm.ToolCall{call}, llm.FinishToolCalls},
		{"PRV-019 cut arguments", []string{start(0, tool), argsPiece(0, `{"at":"rm -rf /b`), stop("tool_use"), over}, "", []llm.ToolCall{{ID: "c", Name: "look", Arguments: `{"at":"rm -rf /b`}}, llm.FinishLength},
		{"PRV-032 no name", []string{start(0, strings.Replace(tool, "look", "", 1)), stop("tool_use"), over}, "", []llm.ToolCall{{ID: "c", Name: "unnamed_tool", Arguments: "{}"}}, llm.FinishToolCalls},
		{"PRV-007 the id of an earlier turn", []string{start(0, strings.Replace(tool, `"c"`, `"old"`, 1)), argsPiece(0, `{"at":1}`), stop("tool_use"), over}, "", []llm.ToolCall{renamed}, llm.FinishToolCalls},
		{"PRV-030 one id twice", []string{start(0, tool), argsPiece(0, `{"at":1}`), start(1, tool), argsPiece(1, `{"at":1}`), stop("tool_use"), over}, "", []llm.ToolCall{call, renamed}, llm.FinishToolCalls},
		{"unknown events, blocks and pieces", []string{`{"type":"brand_new"}`, start(0, `{"type":"crystal"}`), piece(0, `{"type":"shine"}`), piece(7, `{"type":"text_delta","text":"lost"}`), start(1, `{"type":"text","text":"a"}`), stop("end_turn"), over}, "a", nil, llm.FinishStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := foldAll(false, c.events...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.calls, r.Message.ToolCalls); diff != "" || r.Message.Text() != c.text || r.Finish != c.finish {
				t.Errorf("text %q, finish %s, calls (-want +got):\n%s", r.Message.Text(), r.Finish, diff)
			}
		})
	}
}

// TestFailures: PST-009 and PST-011, and answers without an end.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		kind   llm.ErrorKind
	}{
		"overloaded":             {[]string{begun, start(0, `{"type":"text","text":"a"}`), overload}, llm.KindOverloaded},
		"internal error":         {[]string{begun, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`}, llm.KindOverloaded},
		"rate limit":             {[]string{begun, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`}, llm.KindRateLimit},
		"an error without type":  {[]string{begun, `{ "error": {"message": "boom"}}`}, llm.KindOverloaded},
		"cut":                    {[]string{begun, start(0, `{"type":"text","text":"a"}`)}, llm.KindNetwork},
		"no JSON":                {[]string{begun, `{"type":`}, llm.KindNetwork},
		"an overflow in the 200": {[]string{`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}`}, llm.KindOverflow},
	} {
		_, err := foldAll(false, c.events...)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.kind {
			t.Errorf("%s: %v, want kind %s", name, err, c.kind)
		}
	}
}

func TestUsage(t *testing.T) {
	r, err := foldAll(false, begun, start(0, `{"type":"text","text":"a"}`), stop("end_turn"), over)
	if want := (llm.Usage{Input: 20, CachedInput: 6, CacheWrite: 4, Output: 7}); err != nil || r.Usage != want {
		t.Errorf("%+v, %v, want %+v", r.Usage, err, want)
	}
}

// TestThinkingKeepsItsPlace is PRV-026: signed thinking, and blocks that nobody knows
// yet, come back byte for byte and in their order.
func TestThinkingKeepsItsPlace(t *testing.T) {
	crystal := `{"type":"crystal","zeta":1.0,"alpha":{"b":2,"a":[]},"note":"<é>\u2028&"}`
	r, err := foldAll(true, begun,
		start(0, `{"type":"thinking","thinking":"","signature":"","estimated_tokens":3}`), piece(0, `{"type":"thinking_delta","thinking":"<hm"}`),
		piece(0, `{"type":"thinking_delta","thinking":">"}`), piece(0, `{"type":"signature_delta","signature":"S=="}`),
		start(1, crystal), start(2, `{"type":"text","text":"I look"}`), start(3, `{"type":"redacted_thinking","data":"D"}`),
		start(4, `{"type":"tool_use","id":"c","name":"look","input":{}}`), argsPiece(4, `{"b": 1, "a": 2.0}`),
		start(5, `{"type":"thinking","thinking":"cut off"}`), stop("tool_use"), over)
	if err != nil {
		t.Fatal(err)
	}
	if r.Message.Reasoning.Text != "<hm>\n\ncut off" || r.Message.Reasoning.Issuer != string(testModel) {
		t.Errorf("reasoning: %+v", r.Message.Reasoning)
	}
	req := &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "q"), r.Message, {Role: llm.ToolRole, ToolCallID: "c"}}}
	want := `[{"type":"thinking","thinking":"<hm>","signature":"S=="},` + crystal + `,{"type":"text","text":"I look"},{"type":"redacted_thinking","data":"D"},` +
		`{"type":"tool_use","id":"c","name":"look","input":{"b":1,"a":2.0}}]`
	if got := contentOf(t, req, 1); got != want {
		t.Errorf("to the issuer:\n%s, want\n%s", got, want)
	}
	req.Model = "test/other"
	if got := contentOf(t, req, 1); got != `[{"type":"text","text":"I look"},{"type":"tool_use","id":"c","name":"look","input":{"b":1,"a":2.0}}]` {
		t.Errorf("to another model: %s", got)
	}
	// compatible servers do not sign, and want their thinking back as it was
	r, _ = foldAll(false, start(0, `{"type":"thinking","thinking":"hm"}`), stop("max_tokens"), over)
	req = &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "q"), r.Message, llm.Text(llm.User, "go on")}}
	if got := contentOf(t, req, 1); got != `[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"(empty message)"}]` {
		t.Errorf("unsigned: %s", got)
	}
}

// FuzzFold: no bytes make it panic, and what is to be stored is JSON.
func FuzzFold(f *testing.F) {
	for _, s := range []string{begun, overload, over, stop("end_turn"), start(0, `{"type":"thinking","signature":"x"}`), argsPiece(0, "{"), start(-1, "null"),
		`{"type":"message","content":[null,{"type":"crystal"}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := foldAll(false, string(raw), string(raw), over)
		if err == nil && r.Message.Reasoning != nil && len(r.Message.Reasoning.Raw) > 0 && !json.Valid(r.Message.Reasoning.Raw) {
			t.Errorf("what is to be stored is no JSON: %s", r.Message.Reasoning.Raw)
		}
	})
}

// TestStreamFaults: what compatible servers do to a stream, over a real connection.
func TestStreamFaults(t *testing.T) {
	sse := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	good := []string{begun, start(0, `{"type":"text","text":"a"}`), stop("end_turn"), over}
	for _, c := range []struct {
		name, raw, text string
		kind            llm.ErrorKind // empty: answered with text
	}{
		{"no event lines", sse(good...), "a", ""},
		{"PST-006 comments", ": ping\n\n" + strings.ReplaceAll(sse(good...), "\n\n", "\n\n: x\n\n"), "a", ""},
		{"PST-024 thousands of blank lines", strings.Repeat("\n", 5000) + sse(good...), "a", ""},
		{"no blank lines, no newline at the end", strings.TrimSpace(strings.ReplaceAll(sse(good...), "\n\n", "\nevent: x\n")), "a", ""},
		{"it does not end after message_stop", sse(good...), "a", ""},
		{"PST-028 plain JSON", `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`, "hi", ""},
		{"PST-017 nothing at all", " ", "", llm.KindNetwork},
		{"cut between events", sse(good[:2]...), "", llm.KindNetwork},
		{"cut inside an event", sse(good[:2]...) + `data: {"type":"mess`, "", llm.KindNetwork},
		{"PST-026 a web page", "<html><title>Blocked</title></html>", "", llm.KindUnknown},
		{"PST-009 an error event", sse(good[:2]...) + "event: error\ndata: " + overload + "\n\n", "", llm.KindOverloaded},
		{"an error without data prefix", sse(good[:2]...) + `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}` + "\n", "", llm.KindRateLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{})
			a := providertest.Answer{Raw: c.raw}
			if strings.Contains(c.name, "does not end") {
				a.End = providertest.EndSilent
			}
			srv.Enqueue(a)
			r, err := ask(t, newClient(t, Config{BaseURL: srv.BaseURL()}))
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

func ask(t *testing.T, c *Client) (llm.Response, error) {
	t.Helper()
	return llm.Collect(t.Context(), c.Stream(t.Context(), &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "hi")}}))
}

type replayed string

func (r replayed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(r)))}, nil
}

// BenchmarkStream folds an answer of 1,000 text events, cleaner included.
func BenchmarkStream(b *testing.B) {
	var stream strings.Builder
	stream.WriteString("event: message_start\ndata: " + begun + "\n\nevent: content_block_start\ndata: " + start(0, `{"type":"text","text":""}`) + "\n\n")
	for i := range 1000 {
		stream.WriteString("event: content_block_delta\ndata: " + textPiece(0, fmt.Sprintf("word%d ", i)) + "\n\n")
	}
	stream.WriteString("event: message_delta\ndata: " + stop("end_turn") + "\n\nevent: message_stop\ndata: " + over + "\n\n")
	c, err := New(Config{BaseURL: "http://recorded"}, Deps{HTTP: &http.Client{Transport: replayed(stream.String())}})
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
