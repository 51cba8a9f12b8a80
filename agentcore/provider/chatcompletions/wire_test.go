package chatcompletions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
	"parley/agentcore/provider/wire"
	"parley/config/secret"
)

// recorded is a client whose every answer is the same recorded stream.
func recorded(tb testing.TB, stream string) *Client {
	tb.Helper()
	c, err := New(Config{Name: "test", BaseURL: "http://recorded/v1"}, Deps{HTTP: &http.Client{Transport: replayed(stream)}})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

type replayed string

func (r replayed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(r))),
	}, nil
}

const (
	textA = `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
	stop  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done  = "data: [DONE]\n\n"
)

func sse(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

// TestStreamFaults: what servers do to a stream, over a real connection.
func TestStreamFaults(t *testing.T) {
	const overloaded = `{"error":{"message":"overloaded","type":"server_error","code":529}}`
	for _, c := range []struct {
		name, raw string
		text      string
		kind      llm.ErrorKind // empty: answered with text
	}{
		{"a good one", sse(textA, stop) + done, "a", ""},
		{"PST-006 comments", ": ping\n\n: OPENROUTER PROCESSING\n\nretry: 3000\n\n" + sse(textA) + ": PROCESSING\n\n" + sse(stop) + done, "a", ""},
		{"PST-024 thousands of comments", strings.Repeat(": x\n\n", 5000) + sse(textA, stop) + done, "a", ""},
		{"PST-024 thousands of blank lines", sse(textA) + strings.Repeat("\n", 5000) + sse(stop) + done, "a", ""},
		{"no [DONE], but a reason", sse(textA, stop), "a", ""},
		{"no reason, but [DONE]", sse(textA) + done, "a", ""},
		{"last line without newline", sse(textA) + "data: " + stop, "a", ""},
		{"split data lines", "data: {\"choices\":\ndata: [{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n" + sse(stop) + done, "a", ""},
		{"no blank lines between events", "data: " + textA + "\ndata: " + textA + "\ndata: " + stop + "\n" + done, "aa", ""},
		{"carriage returns and event lines", "event: message\r\ndata: " + textA + "\r\n\r\nid: 7\r\ndata:" + stop + "\r\n\r\ndata:[DONE]\r\n\r\n", "a", ""},
		{"a long line", sse(`{"choices":[{"delta":{"content":"`+strings.Repeat("x", 100_000)+`"}}]}`, stop) + done, strings.Repeat("x", 100_000), ""},
		{"byte order mark", "\uFEFF" + sse(textA, stop) + done, "a", ""},
		{"PST-028 plain JSON", "{\n \"choices\": [{\"message\": {\"content\": \"hi\"}, \"finish_reason\": \"stop\"}],\n \"usage\": {\"prompt_tokens\": 3}\n}", "hi", ""},
		{"PST-028 plain JSON without a reason", `{"choices":[{"message":{"content":"hi"}}]}`, "hi", ""},
		{"PST-017 nothing at all", "", "", llm.KindNetwork},
		{"PST-017 only [DONE]", done, "", llm.KindNetwork},
		{"only comments", ": ping\n\n", "", llm.KindNetwork},
		{"cut between events", sse(textA), "", llm.KindNetwork},
		{"cut inside an event", sse(textA) + `data: {"choices":[{"del`, "", llm.KindNetwork},
		{"cut JSON", `{"choices":[{"message":{"content":"h`, "", llm.KindNetwork},
		{"PST-026 a web page", "<html><title>Blocked</title></html>", "", llm.KindUnknown},
		{"error object", sse(textA, overloaded), "", llm.KindOverloaded},
		{"error after a comment", ": x\n\n" + sse(textA, overloaded), "", llm.KindOverloaded},
		{"error with a space", sse(textA, `{ "error": {"message":"slow down","code":"rate_limit_exceeded"}}`), "", llm.KindRateLimit},
		{"error beside choices", sse(textA, `{"id":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`), "", llm.KindOverloaded},
		{"error as text", sse(textA, `{"error":"out of memory"}`), "", llm.KindOverloaded},
		{"error in a list", sse(textA, `[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]`), "", llm.KindRateLimit},
		{"error event with an object", sse(textA) + "event: error\ndata: {\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}\n\n", "", llm.KindOverloaded},
		{"error event with text", sse(textA) + "event: error\ndata: upstream timed out\n\n", "", llm.KindTimeout},
		{"error without data prefix", sse(textA) + overloaded + "\n", "", llm.KindOverloaded},
		{"error of vLLM", sse(textA, `{"object":"error","message":"boom","type":"InternalServerError","code":500}`), "", llm.KindOverloaded},
		{"overflow inside a stream (CTX-003)", sse(`{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`), "", llm.KindOverflow},
		{"text that speaks of errors (CTX-009)", sse(`{"choices":[{"delta":{"content":"{\"error\":\"context length exceeded\"}"}}]}`, stop) + done, `{"error":"context length exceeded"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{})
			raw := c.raw
			if raw == "" {
				raw = " "
			}
			srv.Enqueue(providertest.Answer{Raw: raw})
			r, err := ask(t.Context(), newClient(t, Config{BaseURL: srv.BaseURL()}))
			var e *llm.Error
			errors.As(err, &e)
			switch {
			case c.kind == "" && (err != nil || r.Message.Text() != c.text):
				t.Errorf("text %q, error %v", r.Message.Text(), err)
			case c.kind != "" && (e == nil || e.Kind != c.kind || e.Model != testModel):
				t.Errorf("error %v, want kind %s", err, c.kind)
			}
			if e != nil && strings.Contains(e.Message, "<") {
				t.Errorf("markup in the message %q", e.Message)
			}
		})
	}
}

func ask(ctx context.Context, c *Client) (llm.Response, error) {
	req := &llm.Request{Model: testModel, Messages: []llm.Message{llm.Text(llm.User, "hi")}}
	return llm.Collect(ctx, c.Stream(ctx, req))
}

// TestSilence: a server that says nothing is given up, before the first byte and
// after it; comments are signs of life (PST-005, PST-006).
func TestSilence(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{})
	for name, c := range map[string]struct {
		cfg    Config
		answer providertest.Answer
		want   string
	}{
		"first byte": {Config{FirstByte: 30 * time.Millisecond}, providertest.Answer{FirstToken: time.Hour}, "no answer within 30ms"},
		"idle":       {Config{Idle: 30 * time.Millisecond}, providertest.Answer{Text: "a b", End: providertest.EndSilent}, "the answer stopped for 30ms"},
		"comments":   {Config{Idle: 30 * time.Millisecond}, providertest.Answer{Raw: ": x\n\n", End: providertest.EndSilent}, "the answer stopped for 30ms"},
	} {
		srv.Enqueue(c.answer)
		c.cfg.BaseURL = srv.BaseURL()
		_, err := ask(t.Context(), newClient(t, c.cfg))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.KindTimeout || e.Message != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	srv.AwaitGone(t, 3)
	// PST-005: an answer may take longer than every limit as long as it goes on
	srv.Enqueue(providertest.Answer{Text: providertest.Words(40), Rate: 200})
	if _, err := ask(t.Context(), newClient(t, Config{BaseURL: srv.BaseURL(), FirstByte: 100 * time.Millisecond, Idle: 100 * time.Millisecond})); err != nil {
		t.Errorf("a slow answer: %v", err)
	}
}

// unending is a body that stays open until the request is abandoned.
type unending struct {
	io.Reader
	ctx context.Context
}

func (u unending) Read(p []byte) (int, error) {
	if n, err := u.Reader.Read(p); err == nil {
		return n, nil
	}
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

func (unending) Close() error { return nil }

type unendingStream string

func (s unendingStream) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: unending{strings.NewReader(string(s)), r.Context()}}, nil
}

// TestSettle: an answer whose reason has come is complete although the server
// never ends it, and [DONE] ends it at once.
func TestSettle(t *testing.T) {
	for raw, want := range map[string]time.Duration{
		sse(textA, stop):        5 * time.Second,
		sse(textA, stop) + done: 50 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New(Config{Name: "test", BaseURL: "http://recorded"}, Deps{HTTP: &http.Client{Transport: unendingStream(raw)}})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			r, err := ask(t.Context(), c)
			if err != nil || r.Message.Text() != "a" || r.Finish != llm.FinishStop || time.Since(begun) != want {
				t.Errorf("%+v, %v after %s, want %s", r, err, time.Since(begun), want)
			}
		})
	}
}

// TestConnectionIsUsedAgain: after [DONE] the rest is read, so that the next call
// needs no new connection, although the end comes a little later.
func TestConnectionIsUsedAgain(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, sse(textA, stop)+done)
		_ = http.NewResponseController(w).Flush()
		<-time.After(time.Millisecond)
	}))
	defer srv.Close()
	dials := 0
	tr := wire.Transport()
	tr.DialContext = countDials(&dials, tr.DialContext)
	c, err := New(Config{Name: "test", BaseURL: srv.URL}, Deps{HTTP: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 5 {
		if _, err := ask(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if dials != 1 {
		t.Errorf("%d connections for 5 calls", dials)
	}
}

// TestKeysStayOutOfErrors: some servers repeat the key that they refuse.
func TestKeysStayOutOfErrors(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{})
	srv.Enqueue(providertest.Answer{Status: 401, Body: `{"error":{"message":"no such key: sk-very-secret-1234"}}`})
	_, err := ask(t.Context(), newClient(t, Config{BaseURL: srv.BaseURL()}))
	if err == nil || strings.Contains(err.Error(), "very-secret") || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("error: %v", err)
	}
}

// TestNetworkErrorsAreClean: no server, no name; the error holds neither the key
// nor the address with its secrets.
func TestNetworkErrorsAreClean(t *testing.T) {
	c := newClient(t, Config{BaseURL: "http://user:pass@127.0.0.1:1/v1?token=hush"})
	_, err := ask(t.Context(), c)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindNetwork || strings.Contains(err.Error(), "pass") || strings.Contains(err.Error(), "hush") {
		t.Errorf("error: %v", err)
	}
	if _, err := New(Config{Name: "x", APIKey: secret.New("k")}, Deps{}); err == nil {
		t.Error("no base URL, no error")
	}
}

// TestDeadHTTP2ConnectionsAreFound: pings are on (PST-002).
func TestDeadHTTP2ConnectionsAreFound(t *testing.T) {
	if tr := wire.Transport(); tr.HTTP2.SendPingTimeout == 0 || tr.HTTP2.PingTimeout == 0 || tr.IdleConnTimeout == 0 {
		t.Errorf("transport: %+v", tr.HTTP2)
	}
}
