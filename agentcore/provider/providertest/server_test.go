package providertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { http.DefaultClient.CloseIdleConnections() }))
}

const (
	user  = `{"role":"user","content":"hi"}`
	calls = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	resA  = `{"role":"tool","tool_call_id":"a","content":"1"}`
	resB  = `{"role":"tool","tool_call_id":"b","content":"2"}`
)

func body(extra string, messages ...string) string {
	return `{"model":"m",` + extra + `"messages":[` + strings.Join(messages, ",") + `]}`
}

// TestCheck is what the server takes and what it refuses.
func TestCheck(t *testing.T) {
	for _, ok := range []string{
		body("", user),
		body("", `{"role":"system","content":"s"}`, user, `{"role":"assistant","content":"a"}`, user),
		body(`"stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"reasoning_effort":"low",`, user),
		body("", user, calls, resB, resA),
		body("", user, calls, resA, resB, user),
		body(`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"none",`, user),
		body("", `{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`),
		body("", `{"role":"user","content":"\ud83d\ude00"}`),
	} {
		if err := Check([]byte(ok)); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, c := range []struct{ name, body, want string }{
		{"no JSON", `{`, "unexpected EOF"},
		{"no UTF-8", "{\"model\":\"\xff\"}", "UTF-8"},
		{"PRV-008 lone surrogate", body("", `{"role":"user","content":"\ud83d"}`), "surrogate"},
		{"PRV-008 lone surrogate in arguments", body("", user, strings.ReplaceAll(calls, `"{}"`, `"{\"x\":\"\\ud83d\"}"`), resA, resB), "surrogate"},
		{"unknown field", body(`"frobnicate":1,`, user), "frobnicate"},
		{"unknown field of a message", body("", `{"role":"user","content":"x","reasoning_content":""}`), "reasoning_content"},
		{"wrong type", body(`"stream":"yes",`, user), "stream"},
		{"no messages", body(""), "too short"},
		{"no model", `{"messages":[` + user + `]}`, "model"},
		{"stream options alone", body(`"stream_options":{"include_usage":true},`, user), "only allowed when 'stream'"},
		{"tool choice alone", body(`"tool_choice":"none",`, user), "only allowed when 'tools'"},
		{"max_tokens of a reasoning model", `{"model":"gpt-5-mini","max_tokens":5,"messages":[` + user + `]}`, "max_completion_tokens"},
		{"tool name", body(`"tools":[{"type":"function","function":{"name":"a b"}}],`, user), "pattern"},
		{"tool twice", body(`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}],`, user), "unique"},
		{"schema", body(`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"array"}}}],`, user), "schema"},
		{"PRV-029 first is an assistant", body("", `{"role":"assistant","content":"a"}`, user), "first message"},
		{"PRV-003 last is an assistant", body("", user, `{"role":"assistant","content":"a"}`), "end with a user message"},
		{"PRV-018 two users", body("", user, user), "alternate"},
		{"two assistants", body("", user, `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"b"}`, user), "alternate"},
		{"system in the middle", body("", user, `{"role":"system","content":"s"}`, user), "beginning"},
		{"PRV-040 blank text", body("", `{"role":"user","content":" \n"}`), "non-empty"},
		{"blank part", body("", `{"role":"user","content":[{"type":"text","text":""}]}`), "non-empty"},
		{"tool result without content", body("", user, calls, `{"role":"tool","tool_call_id":"a"}`, resB), "required property"},
		{"a call without a result", body("", user, calls, resA, user), "did not have response"},
		{"a call without a result at the end", body("", user, calls, resA), "did not have response"},
		{"a result without a call", body("", user, resA), "must be a response"},
		{"a result twice", body("", user, calls, resA, resA), "must be a response"},
		{"a late result", body("", user, calls, resA, resB, user, resA), "must be a response"},
		{"PRV-007 an id twice", body("", user, calls, resA, resB, calls, resA, resB), "Duplicate"},
		{"PRV-005 a long id", body("", user, strings.ReplaceAll(calls, `"a"`, `"`+strings.Repeat("x", 41)+`"`), resB), "40"},
		{"PRV-020 arguments", body("", user, strings.ReplaceAll(calls, `"{}"`, `"{\"a\":"`), resA, resB), "arguments"},
		{"PRV-032 no name", body("", user, strings.ReplaceAll(calls, `"f"`, `""`), resA, resB), "name"},
		{"image", body("", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA=="}}]}`), "image"},
		{"image of a tool", body("", user, calls, `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`, resB), "only allowed in user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := Check([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want %q in it", err, c.want)
			}
		})
	}
}

func post(t *testing.T, s *Server, body string) (status int, header http.Header, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.BaseURL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(raw)
}

func TestServerStatuses(t *testing.T) {
	long := body("", fmt.Sprintf(`{"role":"user","content":%q}`, Words(200)))
	for name, c := range map[string]struct {
		o      Options
		body   string
		status int
		want   string
	}{
		"answered":      {Options{}, body("", user), 200, `"content":"echo: hi"`},
		"streamed":      {Options{}, body(`"stream":true,`, user), 200, "data: [DONE]"},
		"refused":       {Options{}, body("", user, user), 400, "invalid_request_error"},
		"wrong key":     {Options{Key: "other"}, body("", user), 401, "invalid_api_key"},
		"unknown model": {Options{Models: []string{"n"}}, body("", user), 404, "model_not_found"},
		"overflow":      {Options{Window: 100}, long, 400, "context_length_exceeded"},
	} {
		s := NewServer(t, c.o)
		status, _, answer := post(t, s, c.body)
		if status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
		if refused := len(s.Refusals()) > 0; refused != (name == "refused") {
			t.Errorf("%s: refusals %q", name, s.Refusals())
		}
	}
}

// TestKeywords goes through the words that scripts use.
func TestKeywords(t *testing.T) {
	s := NewServer(t, Options{})
	tools := `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],`
	for _, c := range []struct{ tools, said, want string }{
		{"", "say hello there", `"content":"hello there"`},
		{"", "[Mon 2026-09-28 10:00 +02:00] say stamped", `"content":"stamped"`},
		{"", "words 3", `"content":"word0 word1 word2"`},
		{"", "think hard", `"reasoning_content":"hard"`},
		{tools, `call f {} && call g {"x":1}`, `"arguments":"{\"x\":1}"`},
		{"", "call f {}", "echo: call f"},
		{"", "fail 1 503", "Service Unavailable"},
		{"", "fail 1 503", "recovered"},
	} {
		_, _, answer := post(t, s, body(c.tools, fmt.Sprintf(`{"role":"user","content":%q}`, c.said)))
		if !strings.Contains(answer, c.want) {
			t.Errorf("%s: %s", c.said, answer)
		}
	}
	if _, _, answer := post(t, s, body("", user, calls, resA, resB)); !strings.Contains(answer, "results: 1 | 2") {
		t.Errorf("after tools: %s", answer)
	}
	if _, _, answer := post(t, s, body("", `{"role":"system","content":"Summarise."}`, user)); !strings.Contains(answer, "SUMMARY of 2 messages") {
		t.Errorf("summary: %s", answer)
	}
}

// TestParallelLimit: more than the limit get a 429 with Retry-After.
func TestParallelLimit(t *testing.T) {
	s := NewServer(t, Options{Parallel: 1, RetryAfter: "5"})
	s.Enqueue(Answer{Text: "x", End: EndSilent})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.BaseURL()+"/chat/completions", strings.NewReader(body(`"stream":true,`, user)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	status, header, _ := post(t, s, body("", user))
	if status != 429 || header.Get("Retry-After") != "5" {
		t.Errorf("status %d, Retry-After %q", status, header.Get("Retry-After"))
	}
	cancel()
	_ = resp.Body.Close()
	s.AwaitGone(t, 1)
}

// TestPaceHoldsForManyStreams: 1,000 streams of 20 tokens at 20 tokens a second
// take a second each, beside each other.
func TestPaceHoldsForManyStreams(t *testing.T) {
	const streams = 1000
	s := NewServer(t, Options{FirstToken: 100 * time.Millisecond, Rate: 20, Forget: true})
	s.Respond(func(Request) Answer { return Answer{Text: Words(20)} })
	tr := &http.Transport{MaxIdleConnsPerHost: streams}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	begun := time.Now()
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			resp, err := client.Post(s.BaseURL()+"/chat/completions", "application/json", strings.NewReader(body(`"stream":true,`, user)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			events := 0
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "data: ") {
					events++
				}
			}
			if events != 24 { // role, 20 words, reason, usage, [DONE]
				t.Errorf("%d events", events)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took < 1050*time.Millisecond {
		t.Errorf("took only %s", took)
	}
	if s.Peak() < streams/2 {
		t.Errorf("at most %d streams at once", s.Peak())
	}
	for _, x := range s.Exchanges() {
		if took := x.LastToken.Sub(x.Request.At); took < 1050*time.Millisecond {
			t.Errorf("a stream took only %s", took)
			break
		}
	}
}
