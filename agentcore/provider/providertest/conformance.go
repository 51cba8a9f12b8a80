package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
)

// Mode is an API mode under test.
type Mode struct {
	// Model is asked for; its provider's name is how New names the provider.
	Model llm.ModelID
	// New makes the provider that talks to the base URL; it closes it with the test.
	New func(tb testing.TB, baseURL string) llm.Provider
	// Serve starts the fake of the mode's API.
	Serve func(tb testing.TB) Backend
	// Uncounted: the API does not count thinking apart from the rest of an answer.
	Uncounted bool
}

// Backend is the fake of an API, as *Server is.
type Backend interface {
	BaseURL() string
	Enqueue(answers ...Answer)
	Last(tb testing.TB) Request
	Refusals() []string
	AwaitRequests(tb testing.TB, n int)
	AwaitGone(tb testing.TB, n int)
}

// Run checks what the agent relies on in every provider. The backend judges the
// requests: any refusal fails the test.
func Run(t *testing.T, m Mode) {
	for name, check := range map[string]func(*testing.T, *bench){
		"Text":               checkText,
		"ToolCalls":          checkToolCalls,
		"ParallelToolCalls":  checkParallel,
		"DuplicateIDs":       checkDuplicateIDs,
		"Reasoning":          checkReasoning,
		"FinishReasons":      checkFinish,
		"Usage":              checkUsage,
		"ErrorKinds":         checkErrors,
		"Cut":                checkCut,
		"Cancel":             checkCancel,
		"Break":              checkBreak,
		"History":            checkHistory,
		"NoTools":            checkNoTools,
		"Ephemeral":          checkEphemeral,
		"UnstorableText":     checkInvalidText,
		"StableBytes":        checkStable,
		"StablePrefix":       checkPrefix,
		"Replay":             checkReplay,
		"Images":             checkImages,
		"ParallelResults":    checkResults,
		"DamagedHistories":   checkDamaged,
		"ConcurrentAnswers":  checkConcurrent,
		"CancelledBeforeUse": checkCancelledBefore,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{Mode: m, backend: m.Serve(t)}
			b.provider = m.New(t, b.backend.BaseURL())
			check(t, b)
			if r := b.backend.Refusals(); len(r) > 0 {
				t.Errorf("the server refused requests: %q", r)
			}
		})
	}
}

type bench struct {
	Mode
	backend  Backend
	provider llm.Provider
}

// Tools are declared in the suite's requests.
var suiteTools = []llm.ToolSpec{
	{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)},
	{Name: "wait", Description: "waits"},
}

func (b *bench) request(text string) *llm.Request {
	return &llm.Request{
		Model: b.Model, System: "be brief", Tools: suiteTools, MaxOutput: 1000, CacheKey: "session",
		Messages: []llm.Message{llm.Text(llm.User, text)},
	}
}

// ask collects an answer and checks the rules of every stream: an error or
// Finished is the last thing, and the first piece of a call names it.
func (b *bench) ask(t *testing.T, req *llm.Request) (llm.Response, error) {
	t.Helper()
	var c llm.Collector
	named := map[int]bool{}
	over := false
	for ev, err := range b.provider.Stream(t.Context(), req) {
		if over {
			t.Errorf("%T after the end", ev)
		}
		if err != nil {
			return llm.Response{}, err
		}
		switch ev := ev.(type) {
		case llm.Finished:
			over = true
			if ev.Model != req.Model {
				t.Errorf("Finished.Model = %q, want %q", ev.Model, req.Model)
			}
		case llm.ToolCallDelta:
			if !named[ev.Index] && (ev.ID == "" || ev.Name == "") {
				t.Errorf("the first piece of call %d has id %q and name %q", ev.Index, ev.ID, ev.Name)
			}
			named[ev.Index] = true
		}
		c.Add(ev)
	}
	r, ok := c.Response()
	if !ok {
		t.Fatal("the sequence ended with neither Finished nor an error")
	}
	return r, nil
}

func (b *bench) must(t *testing.T, req *llm.Request) llm.Response {
	t.Helper()
	r, err := b.ask(t, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkText(t *testing.T, b *bench) {
	want := "Grüße, 世界 🌍 <b>&\n\nend"
	b.backend.Enqueue(Answer{Text: want})
	if r := b.must(t, b.request("hi")); r.Message.Text() != want || r.Finish != llm.FinishStop {
		t.Errorf("got %q, finish %q", r.Message.Text(), r.Finish)
	}
}

func checkToolCalls(t *testing.T, b *bench) {
	b.backend.Enqueue(
		Answer{Text: "looking", Calls: []Call{{ID: "a1", Name: "look", Arguments: `{"at":"ä \"x\""}`}}},
		Answer{Calls: []Call{{ID: "a2", Name: "wait"}}},
	)
	r := b.must(t, b.request("look"))
	want := []llm.ToolCall{{ID: "a1", Name: "look", Arguments: `{"at":"ä \"x\""}`}}
	if diff := cmp.Diff(want, r.Message.ToolCalls); diff != "" || r.Finish != llm.FinishToolCalls || r.Message.Text() != "looking" {
		t.Errorf("finish %q, text %q, calls (-want +got):\n%s", r.Finish, r.Message.Text(), diff)
	}
	r = b.must(t, b.request("wait")) // PST-008: no arguments are {}
	if len(r.Message.ToolCalls) != 1 || r.Message.ToolCalls[0].Arguments != "{}" {
		t.Errorf("calls: %+v", r.Message.ToolCalls)
	}
}

func checkParallel(t *testing.T, b *bench) {
	var calls []Call
	for i := range 5 {
		calls = append(calls, Call{ID: fmt.Sprintf("p%d", i), Name: "look", Arguments: fmt.Sprintf(`{"at":"%d"}`, i)})
	}
	b.backend.Enqueue(Answer{Calls: calls})
	r := b.must(t, b.request("look everywhere"))
	if len(r.Message.ToolCalls) != len(calls) {
		t.Fatalf("got %d calls, want %d", len(r.Message.ToolCalls), len(calls))
	}
	for i, c := range r.Message.ToolCalls {
		if c.ID != calls[i].ID || c.Arguments != calls[i].Arguments {
			t.Errorf("call %d: %+v", i, c)
		}
	}
}

// checkDuplicateIDs is PRV-030 and PRV-007: equal ids in one answer, and an id that
// an earlier answer had.
func checkDuplicateIDs(t *testing.T, b *bench) {
	b.backend.Enqueue(Answer{Calls: []Call{
		{ID: "same", Name: "look", Arguments: `{"at":"1"}`}, {ID: "same", Name: "look", Arguments: `{"at":"2"}`},
	}}, Answer{Calls: []Call{{ID: "same", Name: "wait"}}})
	req := b.request("look twice")
	first := b.must(t, req)
	calls := first.Message.ToolCalls
	if len(calls) != 2 || calls[0].ID == calls[1].ID || calls[1].Arguments != `{"at":"2"}` {
		t.Fatalf("calls: %+v", calls)
	}
	req.Messages = append(req.Messages, first.Message, result(calls[0].ID, "one"), result(calls[1].ID, "two"))
	second := b.must(t, req)
	if id := second.Message.ToolCalls[0].ID; id == calls[0].ID || id == calls[1].ID {
		t.Errorf("the id %q is used again", id)
	}
}

func result(id, text string) llm.Message {
	m := llm.Text(llm.ToolRole, text)
	m.ToolCallID = id
	return m
}

func checkReasoning(t *testing.T, b *bench) {
	b.backend.Enqueue(Answer{Reasoning: "let me see", Text: "42"})
	r := b.must(t, b.request("why"))
	if r.Message.Reasoning == nil || r.Message.Reasoning.Text != "let me see" || r.Message.Text() != "42" {
		t.Errorf("message: %+v", r.Message)
	}
}

func checkFinish(t *testing.T, b *bench) {
	b.backend.Enqueue(
		Answer{Text: "cut", Finish: "length"},
		Answer{Text: "no", Finish: "content_filter"},
		// PRV-019: a call that ends in the middle was cut, whatever the server says
		Answer{Calls: []Call{{ID: "c", Name: "look", Arguments: `{"at":"rm -rf /tmp/bu`}}},
	)
	for _, want := range []llm.FinishReason{llm.FinishLength, llm.FinishFilter, llm.FinishLength} {
		if r := b.must(t, b.request("go on")); r.Finish != want {
			t.Errorf("finish = %q, want %q", r.Finish, want)
		}
	}
}

func checkUsage(t *testing.T, b *bench) {
	b.backend.Enqueue(Answer{Text: "x", Usage: &Usage{Input: 100, Cached: 60, Output: 20, Reasoning: 5}})
	want := llm.Usage{Input: 100, CachedInput: 60, Output: 20, Reasoning: 5}
	if b.Uncounted {
		want.Reasoning = 0
	}
	if r := b.must(t, b.request("count")); r.Usage != want {
		t.Errorf("usage = %+v, want %+v", r.Usage, want)
	}
}

func checkErrors(t *testing.T, b *bench) {
	for _, c := range []struct {
		status int
		want   llm.ErrorKind
	}{
		{http.StatusUnauthorized, llm.KindAuth},
		{http.StatusForbidden, llm.KindAuth},
		{http.StatusPaymentRequired, llm.KindBilling},
		{http.StatusTooManyRequests, llm.KindRateLimit},
		{http.StatusRequestEntityTooLarge, llm.KindOverflow},
		{http.StatusBadRequest, llm.KindMalformed},
		{http.StatusInternalServerError, llm.KindOverloaded},
		{http.StatusServiceUnavailable, llm.KindOverloaded},
		{529, llm.KindOverloaded},
	} {
		b.backend.Enqueue(Answer{Status: c.status, Header: map[string]string{"Retry-After": "7"}})
		_, err := b.ask(t, b.request("fail"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != c.want || e.Status != c.status || e.RetryAfter != 7*time.Second || e.Model != b.Model {
			t.Errorf("%d: %#v, want kind %s", c.status, err, c.want)
		}
	}
}

// checkCut is PST-009 and PST-011: an answer that did not end is none, and an error
// inside the stream is an error.
func checkCut(t *testing.T, b *bench) {
	for end, want := range map[End]llm.ErrorKind{
		EndCut: llm.KindNetwork, EndEarly: llm.KindNetwork, EndError: llm.KindOverloaded,
	} {
		b.backend.Enqueue(Answer{Text: "the three causes are", End: end})
		_, err := b.ask(t, b.request("why"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != want {
			t.Errorf("end %d: error %v, want kind %s", end, err, want)
		}
	}
}

// checkCancel: ending the context ends the sequence with the context's error, and
// the server sees the client go.
func checkCancel(t *testing.T, b *bench) {
	for _, a := range []Answer{{FirstToken: time.Hour}, {Text: "one two three", End: EndSilent}} {
		b.backend.Enqueue(a)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := llm.Collect(ctx, b.provider.Stream(ctx, b.request("hang")))
			ended <- err
		}()
		n := 1
		if a.Text != "" {
			n = 2
		}
		b.backend.AwaitRequests(t, n)
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want the context's own", err)
			}
		case <-time.After(time.Second):
			t.Fatal("not released within a second")
		}
		b.backend.AwaitGone(t, n)
	}
}

func checkCancelledBefore(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := llm.Collect(ctx, b.provider.Stream(ctx, b.request("x"))); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's own", err)
	}
}

func checkBreak(t *testing.T, b *bench) {
	b.backend.Enqueue(Answer{Text: Words(3), End: EndSilent})
	for ev, err := range b.provider.Stream(t.Context(), b.request("long")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(llm.TextDelta); ok {
			break
		}
	}
	b.backend.AwaitGone(t, 1)
}

// checkHistory sends what histories really hold: tool groups, empty results, ids
// of other providers (PRV-005), ids that repeat (PRV-007), broken arguments
// (PRV-020), a call without a name (PRV-032), blank texts (PRV-040), images.
func checkHistory(t *testing.T, b *bench) {
	long := strings.Repeat("x", 64)
	png := llm.Part{Image: &llm.Image{MIME: "image/png", Data: []byte("not really")}}
	req := b.request("first")
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: " \n"}}, ToolCalls: []llm.ToolCall{
			{ID: long + "a|:1", Name: "look", Arguments: `{"at":"x"}`}, {ID: long + "a|:2", Name: "look", Arguments: `{"at": "C:\p`},
		}},
		result(long+"a|:1", "one"), result(long+"a|:2", ""),
		llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "terminal:0", Name: "", Arguments: ""}}},
		result("terminal:0", "no such tool"),
		llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "terminal:0", Name: "wait", Arguments: "[1]"}}},
		llm.Message{Role: llm.ToolRole, ToolCallID: "terminal:0", Parts: []llm.Part{{Text: "a picture"}, png}},
		llm.Text(llm.Assistant, "done"), llm.Text(llm.User, "and then"), llm.Text(llm.Assistant, "\n"),
		llm.Message{Role: llm.User, Parts: []llm.Part{{Text: "[ann] and"}, {Text: " "}, png, {Text: "[bob] this?"}}},
	)
	b.backend.Enqueue(Answer{Text: "ok"})
	b.must(t, req)
	got := b.backend.Last(t)
	if got.Last().Images != 1 || !strings.Contains(got.LastUser(), "[bob] this?") {
		t.Errorf("last message: %+v", got.Last())
	}
	ids := map[string]string{}
	for _, m := range got.Messages {
		if m.Role == "tool" {
			ids[m.ToolCallID] = m.Text
		}
		for _, c := range m.Calls {
			if c.Name == "look" && !json.Valid([]byte(c.Arguments)) {
				t.Errorf("arguments %q", c.Arguments)
			}
		}
	}
	if len(ids) != 4 {
		t.Errorf("results by id: %v", ids)
	}
}

func checkNoTools(t *testing.T, b *bench) {
	req := b.request("sum up")
	req.NoTools = true
	b.backend.Enqueue(Answer{Text: "done"})
	b.must(t, req)
	if got := b.backend.Last(t); got.ToolChoice != "none" || len(got.Tools) != len(suiteTools) {
		t.Errorf("tool choice %q with %d tools", got.ToolChoice, len(got.Tools))
	}
}

func checkEphemeral(t *testing.T, b *bench) {
	req := b.request("hello")
	req.Ephemeral = "[3 calls left]"
	withResult := b.request("look")
	withResult.Ephemeral = req.Ephemeral
	withResult.Messages = append(withResult.Messages,
		llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "q", Name: "wait", Arguments: "{}"}}}, result("q", ""))
	for _, r := range []*llm.Request{req, withResult} {
		b.backend.Enqueue(Answer{Text: "ok"})
		b.must(t, r)
		if last := b.backend.Last(t).Last(); !strings.HasSuffix(last.Text, req.Ephemeral) {
			t.Errorf("the last message is %+v", last)
		}
	}
}

// checkInvalidText is PRV-008.
func checkInvalidText(t *testing.T, b *bench) {
	broken := "half an emoji \xed\xa0\xbd, NUL \x00, \xff"
	req := b.request(broken)
	req.System = broken
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "u", Name: "look", Arguments: `{"at":"\ud83d"}`}}},
		result("u", broken))
	b.backend.Enqueue(Answer{Text: "ok"})
	b.must(t, req)
}

// checkStable is PRV-006: equal requests have equal bytes.
func checkStable(t *testing.T, b *bench) {
	var bodies []string
	for range 3 {
		b.backend.Enqueue(Answer{Text: "ok"})
		b.must(t, b.request("same"))
		bodies = append(bodies, string(b.backend.Last(t).Body))
	}
	if bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Error("equal requests differ in their bytes")
	}
}

func checkConcurrent(t *testing.T, b *bench) {
	const n = 40
	var all sync.WaitGroup
	for range n {
		b.backend.Enqueue(Answer{Text: Words(20), Rate: 500})
	}
	for range n {
		all.Go(func() {
			r, err := llm.Collect(t.Context(), b.provider.Stream(t.Context(), b.request("hi")))
			if err != nil || r.Message.Text() != Words(20) {
				t.Errorf("%q, %v", r.Message.Text(), err)
			}
		})
	}
	all.Wait()
}
