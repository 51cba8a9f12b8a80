package agentcore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/provider"
	"parley/agentcore/provider/chatcompletions"
	"parley/config/secret"
	"parley/store/record"
)

// reply is what a server answers to one call.
type reply struct {
	status int
	header http.Header
	body   string
	// hangs leaves the answer open after body, which may be nothing at all.
	hangs bool
}

// replies are answers by name: those recorded from real servers, and the rest.
func replies(t *testing.T) map[string]reply {
	t.Helper()
	sse := func(lines ...string) reply {
		return reply{status: 200, header: http.Header{"Content-Type": {"text/event-stream"}}, body: "data: " + strings.Join(lines, "\n\ndata: ") + "\n\n"}
	}
	const text = `{"choices":[{"index":0,"delta":{"content":"I am here."}}]}`
	all := map[string]reply{
		"answer":     sse(text, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`),
		"cut off":    sse(text),
		"nothing":    sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `[DONE]`),
		"no network": {},
		"silence":    {hangs: true},
		"in 9 s":     {status: 429, header: http.Header{"Retry-After": {time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat)}}},
	}
	stall := sse(text)
	stall.hangs = true
	all["stall"] = stall
	f, err := os.Open("provider/wire/testdata/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct {
			Name   string
			Status int
			Header map[string]string
			Body   string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		r := reply{status: c.Status, header: http.Header{}, body: c.Body}
		for k, v := range c.Header {
			r.header.Set(k, v)
		}
		if c.Status == 0 {
			r = sse(text, c.Body)
		}
		all[c.Name] = r
	}
	return all
}

// servers plays provider a by a list of replies, of which the last one stays, and
// lets b answer.
type servers struct {
	mu      sync.Mutex
	replies []reply
	answer  reply
	begun   time.Time
	calls   []string
	at      []time.Duration
}

func (s *servers) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	r := s.answer
	if req.URL.Host == "a" {
		r = s.replies[min(len(s.calls), len(s.replies)-1)]
	}
	since := time.Since(s.begun)
	s.calls, s.at = append(s.calls, fmt.Sprintf("%s@%s", req.URL.Host, since)), append(s.at, since)
	s.mu.Unlock()
	if r.status == 0 {
		if r.hangs {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return nil, errors.New("connection refused")
	}
	body := io.NopCloser(strings.NewReader(r.body))
	if r.hangs {
		pr, pw := io.Pipe()
		context.AfterFunc(req.Context(), func() { pw.CloseWithError(req.Context().Err()) })
		body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(r.body), pr), pr}
	}
	return &http.Response{StatusCode: r.status, Header: r.header.Clone(), Body: body, Request: req}, nil
}

// ended keeps how the turn ended.
type ended struct {
	*agentcore.MemoryJournal
	end record.TurnEnd
}

func (e *ended) End(ctx context.Context, end record.TurnEnd) error {
	e.end = end
	return e.MemoryJournal.End(ctx, end)
}

// recovering is a turn on real clients, recovery included, with recorded answers.
type recovering struct {
	*bench
	servers      *servers
	journal      *ended
	log          *observer.ObservedLogs
	compressions int
}

func newRecovering(t *testing.T, answers []string, fallback ...llm.ModelID) *recovering {
	t.Helper()
	all := replies(t)
	r := &recovering{servers: &servers{answer: all["answer"], begun: time.Now()}}
	for _, name := range answers {
		a, ok := all[name]
		if !ok {
			t.Fatalf("there is no recorded answer %q", name)
		}
		r.servers.replies = append(r.servers.replies, a)
	}
	factory := func(name string, c provider.Config) (llm.Provider, error) {
		return chatcompletions.New(chatcompletions.Config{Name: name, BaseURL: c.BaseURL, APIKey: c.APIKey},
			chatcompletions.Deps{HTTP: &http.Client{Transport: r.servers}})
	}
	key := secret.New("the key")
	set, err := provider.Build(map[string]provider.Config{"a": {APIKey: key, BaseURL: "http://a"}, "b": {APIKey: key, BaseURL: "http://b"}},
		map[provider.Mode]provider.Factory{provider.ChatCompletions: factory}, provider.Deps{Jitter: func() float64 { return 1.2 }})
	if err != nil {
		t.Fatal(err)
	}
	core, log := observer.New(zap.DebugLevel)
	r.log = log
	r.bench = newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) {
		d.Model, d.DefaultModel, d.Log = set.Chain(provider.Chain{Model: "a/m", Fallback: fallback}), "a/m", zap.New(core)
	})
	r.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) {
		r.compressions++
		return summarised(in), nil
	}
	r.journal = &ended{MemoryJournal: r.bench.journal}
	r.req.Journal = r.journal
	return r
}

// shown are the lines about trouble that the person sees while the turn runs.
func (r *recovering) shown() string {
	var lines []string
	for _, s := range events[agentcore.Status](r.bench) {
		if s.Visible && s.State == record.TurnCalling {
			lines = append(lines, s.Text)
		}
	}
	return strings.Join(slices.Compact(lines), ", ")
}

// The ways of failing, as the mission's section 3 has them: what is called when,
// with a jitter of 1.2, and what the person reads. fell is with a second model,
// alone without; "" is the same as alone.
var recoveryTable = []struct {
	class       string
	answers     []string
	fell, alone string
	shown       string // while it runs, alone
	text        string // at the end, alone; "" is an answer
	compressed  int
}{
	{"auth 401", []string{"openai key"}, "a@0s b@0s", "a@0s", "", "The model provider refused the credentials.", 0},
	{"auth 403", []string{"forbidden"}, "a@0s b@0s", "a@0s", "", "The model provider refused the credentials.", 0},
	{"auth in a stream", []string{"bad key in a stream"}, "a@0s b@0s", "a@0s", "", "The model provider refused the credentials.", 0},

	{"billing 402", []string{"openrouter no credits"}, "a@0s b@0s", "a@0s", "", "The model provider's quota is used up or unpaid.", 0},
	{"billing 400", []string{"anthropic credit in 400 (PRV-023)"}, "a@0s b@0s", "a@0s", "", "The model provider's quota is used up", 0},
	{"billing 403", []string{"openrouter key limit"}, "a@0s b@0s", "a@0s", "", "The model provider's quota is used up", 0},
	{"billing 429", []string{"openai quota (PRV-023)"}, "a@0s b@0s", "a@0s", "", "The model provider's quota is used up", 0},

	{"rate limit, seconds", []string{"retry-after in seconds"}, "a@0s a@7s b@7s", "a@0s a@7s", "rate limited", "The model provider allows no more requests for now.", 0},
	{"rate limit, date", []string{"in 9 s"}, "a@0s a@9s b@9s", "a@0s a@9s", "rate limited", "The model provider allows no more requests", 0},
	{"rate limit, body", []string{"retry in words"}, "a@0s a@20s b@20s", "a@0s a@20s", "rate limited", "The model provider allows no more requests", 0},
	{"rate limit, at most 60 s", []string{"groq rate limit, minutes"}, "a@0s a@1m0s b@1m0s", "a@0s a@1m0s", "rate limited", "The model provider allows no more requests", 0},
	{"rate limit that says nothing", []string{"empty body"}, "a@0s a@6s b@6s", "a@0s a@6s", "rate limited", "The model provider allows no more requests", 0},
	{"rate limit in a stream", []string{"rate limit in a stream"}, "a@0s a@6s b@6s", "a@0s a@6s", "rate limited", "The model provider allows no more requests", 0},
	{"rate limit that ends", []string{"retry-after in seconds", "answer"}, "", "a@0s a@7s", "rate limited", "", 0},

	{"timeout 504", []string{"gateway timeout"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "no answer in time", "The model did not answer in time.", 0},
	{"no first byte", []string{"silence", "answer"}, "", "a@0s a@2m2.4s", "no answer in time", "", 0},
	{"stall", []string{"stall", "answer"}, "", "a@0s a@1m32.4s", "no answer in time", "", 0},
	{"network", []string{"no network"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "the connection broke", "The model provider could not be reached", 0},
	{"cut stream", []string{"cut off"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "the connection broke", "The model provider could not be reached", 0},
	{"500", []string{"server error"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "the provider has trouble", "The model provider is overloaded or down.", 0},
	{"502, a web page", []string{"cloudflare page"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "the provider has trouble", "The model provider is overloaded or down.", 0},
	{"529", []string{"anthropic overloaded"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "the provider has trouble", "The model provider is overloaded or down.", 0},
	{"overloaded in a stream", []string{"overloaded in a stream (PST-011)"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s a@16.8s", "the provider has trouble", "The model provider is overloaded", 0},
	{"trouble that ends", []string{"server error", "no network", "answer"}, "a@0s a@2.4s b@2.4s", "a@0s a@2.4s a@7.2s", "the provider has trouble, the connection broke", "", 0},

	{"model not found", []string{"openai model"}, "a@0s b@0s", "a@0s", "", "The model provider does not know this model.", 0},

	{"overflow", []string{"openai overflow", "answer"}, "", "a@0s a@0s", "", "", 1},
	{"overflow in a stream", []string{"llama.cpp overflow in a stream (CTX-003)", "answer"}, "", "a@0s a@0s", "", "", 1},
	{"overflow for ever", []string{"gemini overflow, array"}, "", "a@0s a@0s a@0s a@0s", "", "This conversation no longer fits into the model's context.", 3},

	{"malformed", []string{"tools refused"}, "", "a@0s", "", "The model provider refused the request as malformed. It says: Invalid schema", 0},
	{"malformed and repaired", []string{"parameter name is no overflow", "answer"}, "", "a@0s a@0s", "", "", 0},
	{"malformed and not to be repaired", []string{"parameter name is no overflow"}, "", "a@0s a@0s", "", "The model provider refused the request as malformed.", 0},

	{"unknown", []string{"path, openai"}, "", "a@0s", "", "An internal error ended this turn (reference ", 0},

	{"filtered", []string{"azure filter"}, "a@0s b@0s", "a@0s", "", "The model provider's content filter refused to answer this.", 0},
	{"nothing", []string{"nothing"}, "a@0s a@2.4s a@7.2s a@16.8s b@16.8s", "a@0s a@2.4s a@7.2s a@16.8s", "an empty answer", "The model gave an empty answer", 0},
}

// TestRecovery holds every class of failure to the mission's table, from the bytes
// of the provider to the words for the person. PRV-013, PRV-023, PRV-025, CTX-003.
func TestRecovery(t *testing.T) {
	for _, c := range recoveryTable {
		t.Run(c.class+"/alone", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecovering(t, c.answers)
				res := r.run(t.Context())
				r.check(res, c.alone, c.text, "a/m")
				if got := r.shown(); got != c.shown || r.compressions != c.compressed {
					t.Errorf("shown %q, want %q; %d compressions, want %d", got, c.shown, r.compressions, c.compressed)
				}
			})
		})
		t.Run(c.class+"/with a fallback", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, text, model := c.alone, c.text, llm.ModelID("a/m")
				if c.fell != "" {
					calls, text, model = c.fell, "", "b/m"
				}
				r := newRecovering(t, c.answers, "b/m")
				r.check(r.run(t.Context()), calls, text, model)
			})
		})
	}
}

// check compares what was called and what the person reads; an unknown failure
// must be found in the log.
func (r *recovering) check(res *agentcore.Result, calls, text string, model llm.ModelID) {
	r.t.Helper()
	if got := strings.Join(r.servers.calls, " "); got != calls {
		r.t.Errorf("calls %s\nwant  %s", got, calls)
	}
	if text == "" {
		if res.State != record.TurnDone || res.Text != "I am here." || r.sink.Text() != res.Text || r.journal.end.Model != model {
			r.t.Errorf("%s: %q by %s, shown %q, want an answer by %s", res.State, res.Text, r.journal.end.Model, r.sink.Text(), model)
		}
		return
	}
	if res.State != record.TurnFailed || !strings.HasPrefix(res.Text, text) || r.journal.end.Text != res.Text {
		r.t.Errorf("%s: %q, want %q", res.State, res.Text, text)
	}
	if ref := r.journal.end.Reference; ref != "" {
		if !strings.Contains(res.Text, ref) || r.log.FilterField(zap.String("reference", ref)).Len() != 1 {
			r.t.Errorf("the reference %s is not told or not in the log", ref)
		}
	}
	if strings.Contains(res.Text, "the key") {
		r.t.Error("the key is told")
	}
}

// TestStopEndsEveryWaitOfRecovery ends each wait of the table in its middle:
// nothing more is called and the turn is over at that moment.
func TestStopEndsEveryWaitOfRecovery(t *testing.T) {
	stopped := 0
	for _, c := range recoveryTable {
		waits := waitsOf(t, c.answers)
		for i, at := range waits {
			synctest.Test(t, func(t *testing.T) {
				r := newRecovering(t, c.answers)
				ctx, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(at, func() { stop(agentcore.ErrStopped) })
				res := r.run(ctx)
				stop(nil)
				if took := time.Since(r.servers.begun); res.State != record.TurnInterrupted || took != at || res.Text != "" {
					t.Errorf("%s, wait %d: %s after %s, want interrupted after %s", c.class, i, res.State, took, at)
				}
				if later := slices.IndexFunc(r.servers.at, func(d time.Duration) bool { return d > at }); later >= 0 {
					t.Errorf("%s, wait %d: called after the stop", c.class, i)
				}
			})
			stopped++
		}
	}
	if stopped < 35 {
		t.Errorf("only %d waits were stopped", stopped)
	}
}

// waitsOf are the moments in the middle between two calls.
func waitsOf(t *testing.T, answers []string) (middles []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecovering(t, answers)
		r.run(t.Context())
		for i, at := range r.servers.at[1:] {
			if before := r.servers.at[i]; at > before {
				middles = append(middles, (before+at)/2)
			}
		}
	})
	return middles
}
