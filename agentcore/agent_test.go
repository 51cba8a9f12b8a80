package agentcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/gateway/chat"
	"parley/store/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an agent with a scripted model and everything recorded.
type bench struct {
	t       *testing.T
	agent   *agentcore.Agent
	model   *agentcoretest.Model
	sink    *agentcoretest.Sink
	asker   *agentcoretest.Asker
	engine  *agentcoretest.Engine
	journal *agentcore.MemoryJournal
	req     agentcore.Request
}

// newBench makes one; change alters what the agent is made of.
func newBench(t *testing.T, change func(*agentcore.Config, *agentcore.Deps), steps ...agentcoretest.Step) *bench {
	t.Helper()
	b := &bench{
		t: t, model: agentcoretest.NewModel(steps...), sink: &agentcoretest.Sink{}, asker: agentcoretest.Decide(record.ApprovalApproved, ""),
		engine: &agentcoretest.Engine{},
	}
	cfg := agentcore.DefaultConfig()
	deps := agentcore.Deps{Model: b.model, DefaultModel: "test/model", Engine: b.engine, Asker: b.asker, Location: time.UTC}
	if change != nil {
		change(&cfg, &deps)
	}
	var err error
	if b.agent, err = agentcore.New(cfg, deps); err != nil {
		t.Fatal(err)
	}
	b.journal = agentcore.NewMemoryJournal(record.Conversation{Kind: chat.Direct})
	b.req = agentcore.Request{Message: "do it", Conversation: b.journal.Conversation(), Journal: b.journal, Sink: b.sink, Asker: b.asker}
	b.req.Turn = record.Turn{ID: "turn-1", Person: "x:1"}
	t.Cleanup(func() {
		for _, p := range b.model.Problems() {
			t.Errorf("an illegal request was made: %v", p)
		}
	})
	return b
}

func (b *bench) run(ctx context.Context) *agentcore.Result {
	b.t.Helper()
	res, err := b.agent.RunConversation(ctx, b.req)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

// next begins another turn of the conversation and expects it to be answered.
func (b *bench) next(message string) *agentcore.Result {
	b.t.Helper()
	b.journal.Begin()
	b.req.Message, b.req.Turn.ID = message, b.req.Turn.ID+"+"
	b.model.Then(agentcoretest.Say("next answer"))
	res := b.run(b.t.Context())
	if res.State != record.TurnDone || res.Text != "next answer" {
		b.t.Errorf("the next turn: %s, %q (%s)", res.State, res.Text, res.Cause)
	}
	return res
}

// rows writes the history in short.
func (b *bench) rows() string {
	b.t.Helper()
	rows, err := b.journal.History(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		s := string(r.Role)
		if r.Kind != record.KindSaid {
			s += "/" + string(r.Kind)
		}
		for _, c := range r.ToolCalls {
			s += " " + c.ID
		}
		if r.ToolCallID != "" {
			s += " " + r.ToolCallID
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func (b *bench) results() map[string]string {
	b.t.Helper()
	rows, err := b.journal.History(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	m := map[string]string{}
	for _, r := range rows {
		if r.Role == llm.ToolRole {
			m[r.ToolCallID] = r.Content
		}
	}
	return m
}

// events lists the recorded events of type E.
func events[E agentcore.Event](b *bench) []E {
	var out []E
	for _, ev := range b.sink.Events() {
		if e, ok := ev.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

type echoInput struct {
	Text string `json:"text,omitempty"`
}

// makeTool makes a tool of a function over its text.
func makeTool(name string, spec tool.Spec, run func(context.Context, tool.Call, string) (tool.Result, error)) tool.Tool {
	spec.Name, spec.Description = name, "A tool for tests."
	return tool.Must(tool.New(spec, func(ctx context.Context, c tool.Call, in echoInput) (tool.Result, error) { return run(ctx, c, in.Text) }))
}

func echo(_ context.Context, _ tool.Call, text string) (tool.Result, error) {
	return tool.Result{Text: "echo " + text}, nil
}

// with offers tools.
func with(tools ...tool.Tool) func(*agentcore.Config, *agentcore.Deps) {
	return func(_ *agentcore.Config, d *agentcore.Deps) {
		set, err := tool.NewSet(tools...)
		if err != nil {
			panic(err)
		}
		d.Tools = set
	}
}

func args(text string) string {
	b, _ := json.Marshal(echoInput{Text: text})
	return string(b)
}

func TestNewNeedsItsDependencies(t *testing.T) {
	full := agentcore.Deps{Model: agentcoretest.NewModel(), DefaultModel: "a/b", Engine: &agentcoretest.Engine{}, Asker: agentcore.DenyAsker{}}
	if _, err := agentcore.New(agentcore.DefaultConfig(), full); err != nil {
		t.Fatal(err)
	}
	for name, take := range map[string]func(*agentcore.Deps){
		"model": func(d *agentcore.Deps) { d.Model = nil }, "default model": func(d *agentcore.Deps) { d.DefaultModel = "" },
		"engine": func(d *agentcore.Deps) { d.Engine = nil }, "asker": func(d *agentcore.Deps) { d.Asker = nil },
	} {
		d := full
		take(&d)
		if _, err := agentcore.New(agentcore.DefaultConfig(), d); err == nil || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	with(makeTool("clarify", tool.Spec{}, echo))(nil, &full)
	if _, err := agentcore.New(agentcore.DefaultConfig(), full); err == nil {
		t.Error("a tool may take the name of the agent's own")
	}
}

// counting counts the writes of a journal.
type counting struct {
	*agentcore.MemoryJournal
	mu     sync.Mutex
	writes []string
}

func (c *counting) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, what)
}

func (c *counting) SetTurn(ctx context.Context, t record.Turn) error {
	c.note("turn " + string(t.State))
	return c.MemoryJournal.SetTurn(ctx, t)
}

func (c *counting) SetSession(ctx context.Context, s record.Session) error {
	c.note("session")
	return c.MemoryJournal.SetSession(ctx, s)
}

func (c *counting) Append(ctx context.Context, m ...record.Message) ([]record.Message, error) {
	c.note("append")
	return c.MemoryJournal.Append(ctx, m...)
}

func (c *counting) End(ctx context.Context, e record.TurnEnd) error {
	c.note("end " + string(e.State))
	return c.MemoryJournal.End(ctx, e)
}

func TestPlainTurn(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Say("hello there"))
	j := &counting{MemoryJournal: b.journal}
	b.req.Journal = j
	if _, err := j.MemoryJournal.Append(t.Context(), record.Message{Role: llm.User, Content: "hi"}); err != nil {
		t.Fatal(err)
	}
	b.req.Message = "" // as from the gateway, which stores the rows itself
	res := b.run(t.Context())
	if res.State != record.TurnDone || res.Text != "hello there" || res.Iterations != 1 || res.Session == "" || res.Window == 0 || res.ContextTokens == 0 {
		t.Errorf("%+v", res)
	}
	if got := b.rows(); got != "user, assistant" {
		t.Error(got)
	}
	if want := []string{"session", "end done"}; !slices.Equal(j.writes, want) {
		t.Errorf("a plain turn writes %q, want %q: the session's prompt once, and the end", j.writes, want)
	}
	if want := []record.TurnState{"preparing", "calling", "done"}; !slices.Equal(b.sink.States(), want) {
		t.Errorf("states %v", b.sink.States())
	}
	if b.sink.Text() != "hello there" || len(events[agentcore.Thinking](b)) != 2 {
		t.Errorf("shown: %q", b.sink.Text())
	}
	e, _ := b.journal.Ended()
	if e.Text != "hello there" || e.PromptTokens == 0 || e.Model != "test/model" || e.Usage.Output == 0 || e.Seen != 1 {
		t.Errorf("%+v", e)
	}
	j.writes = nil
	b.next("again")
	if want := []string{"append", "end done"}; !slices.Equal(j.writes, want) {
		t.Errorf("the second turn writes %q: the prompt is built once per session", j.writes)
	}
	reqs := b.model.Requests()
	if reqs[0].System != reqs[1].System || reqs[0].CacheKey != string(res.Session) {
		t.Error("the prefix changed between turns (PRV-006)")
	}
}

func TestModelOfTheConversation(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Say("x"))
	b.req.Conversation.Model = "other/model"
	b.run(t.Context())
	if m := b.model.Requests()[0].Model; m != "other/model" {
		t.Errorf("asked %s", m)
	}
}

func TestToolRoundsCommitBeforeTheNextCall(t *testing.T) {
	// RST-005: calls and results are rows before the model is asked again.
	b := newBench(t, with(makeTool("echo", tool.Spec{}, echo)),
		agentcoretest.SayAndCall("I look.", agentcoretest.Tool("c1", "echo", args("a"))), agentcoretest.Call(agentcoretest.Tool("c2", "echo", args("b"))), agentcoretest.Say("done"))
	res := b.run(t.Context())
	if res.State != record.TurnDone || res.Iterations != 3 {
		t.Fatalf("%+v", res)
	}
	if got := b.rows(); got != "user, assistant c1, tool c1, assistant c2, tool c2, assistant" {
		t.Error(got)
	}
	if r := b.results(); r["c1"] != "echo a" || r["c2"] != "echo b" {
		t.Error(r)
	}
	runs, _ := b.journal.Runs(t.Context())
	for _, r := range runs {
		if r.State != record.ToolDone || r.Outcome != "ok" || r.StartedAt.IsZero() || r.EndedAt.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if steps := events[agentcore.Step](b); len(steps) != 2 || steps[0].Text != "I look." || steps[0].Iteration != 1 {
		t.Errorf("%+v", steps)
	}
	if b.sink.Text() != "done" {
		t.Errorf("shown at the end: %q", b.sink.Text())
	}
}

func TestErrorTexts(t *testing.T) {
	for _, tc := range []struct {
		err       error
		want      string
		reference bool
	}{
		{&llm.Error{Kind: llm.KindAuth, Message: "sk-123"}, "refused the credentials", false},
		{&llm.Error{Kind: llm.KindRateLimit}, "no more requests", false},
		{&llm.Error{Kind: llm.KindEmpty}, "empty answer", false},
		{&llm.Error{Kind: llm.KindFiltered}, "content filter", false},
		{&llm.Error{Kind: llm.KindMalformed, Message: "unsupported parameter"}, "unsupported parameter", false},
		{&llm.Error{Kind: llm.KindUnknown, Message: "odd"}, "internal error", true},
		{errors.New("pq: secret detail"), "internal error", true},
	} {
		b := newBench(t, nil, agentcoretest.Fail("begun", tc.err))
		res := b.run(t.Context())
		e, ok := b.journal.Ended()
		if res.State != record.TurnFailed || !strings.Contains(res.Text, tc.want) || strings.Contains(res.Text, "secret") || strings.Contains(res.Text, "sk-") {
			t.Errorf("%v: %s %q", tc.err, res.State, res.Text)
		}
		if !ok || (e.Reference != "") != tc.reference || tc.reference && !strings.Contains(res.Text, e.Reference) {
			t.Errorf("%v: reference %q", tc.err, e.Reference)
		}
		if got := b.rows(); got != "user, assistant/notice" {
			t.Errorf("%v: %s: nothing of a broken answer is kept", tc.err, got)
		}
		b.next("again")
	}
}

func TestRefusalReachesTheUser(t *testing.T) { // PRV-009
	b := newBench(t, nil, agentcoretest.Play(llm.Finished{Reason: llm.FinishFilter}))
	if res := b.run(t.Context()); res.State != record.TurnFailed || !strings.Contains(res.Text, "content filter") {
		t.Errorf("%+v", res)
	}
}

func TestEmptyAnswers(t *testing.T) { // PRV-035
	empty := agentcoretest.Play(llm.Finished{Reason: llm.FinishToolCalls})
	b := newBench(t, nil, empty, agentcoretest.Say("at last"))
	if res := b.run(t.Context()); res.Text != "at last" {
		t.Errorf("one empty answer: %+v", res)
	}
	b = newBench(t, nil, empty, empty)
	if res := b.run(t.Context()); res.State != record.TurnFailed || !strings.Contains(res.Text, "empty answer") {
		t.Errorf("two empty answers: %+v", res)
	}
}

// A message that the model closed without a word is an answer: the person sees that, and
// nobody is asked again.
func TestASilenceThatWasMeant(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Play(llm.Finished{Reason: llm.FinishSilent}))
	res := b.run(t.Context())
	if res.State != record.TurnDone || !strings.Contains(res.Text, "nothing to say") || len(b.model.Requests()) != 1 {
		t.Errorf("%+v after %d calls", res, len(b.model.Requests()))
	}
	if got := b.rows(); got != "user, assistant/notice" {
		t.Error(got)
	}
}

func TestAnswerCutAtTheOutputLimit(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Cut("one two "), agentcoretest.Say("three"))
	if res := b.run(t.Context()); res.Text != "one two three" || b.rows() != "user, assistant" {
		t.Errorf("%q, %s", res.Text, b.rows())
	}
	if b.sink.Text() != "one two three" {
		t.Errorf("shown: %q", b.sink.Text())
	}
	b = newBench(t, nil, agentcoretest.Cut("a "), agentcoretest.Cut("b "), agentcoretest.Cut("c "), agentcoretest.Cut("d "))
	if res := b.run(t.Context()); !strings.HasPrefix(res.Text, "a b c d ") || !strings.Contains(res.Text, "cut off") || res.State != record.TurnDone {
		t.Errorf("continued without end: %+v", res)
	}
	b = newBench(t, nil, agentcoretest.Cut("same "), agentcoretest.Cut("same "))
	if res := b.run(t.Context()); strings.Count(res.Text, "same") != 1 || res.Iterations != 2 {
		t.Errorf("a repeated piece is kept: %+v", res)
	}
	b = newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) {
		d.Facts = func(llm.ModelID) llm.Facts { return llm.Facts{ContextWindow: 1000} }
	}, agentcoretest.Play(llm.TextDelta{Text: "the window is"}, llm.Finished{Reason: llm.FinishLength, Usage: llm.Usage{Input: 900, Output: 60}}))
	if res := b.run(t.Context()); !strings.HasPrefix(res.Text, "the window is\n\n*(") || res.State != record.TurnDone {
		t.Errorf("continued in a full window: %+v", res)
	}
	b = newBench(t, nil, agentcoretest.Cut(""))
	if res := b.run(t.Context()); res.State != record.TurnFailed || !strings.Contains(res.Text, "thinking") {
		t.Errorf("only thinking: %+v", res)
	}
}

func TestCutToolCallIsNeverRun(t *testing.T) { // PRV-019
	ran := false
	spy := makeTool("spy", tool.Spec{}, func(context.Context, tool.Call, string) (tool.Result, error) {
		ran = true
		return tool.Result{}, nil
	})
	cut := agentcoretest.Cut("", agentcoretest.Tool("c", "spy", `{"text":"x"}`))
	b := newBench(t, with(spy), cut, agentcoretest.Say("smaller then"))
	res := b.run(t.Context())
	if ran || res.Text != "smaller then" {
		t.Errorf("ran %v, %+v", ran, res)
	}
	if r := b.model.Requests()[1]; !strings.Contains(r.Ephemeral, "smaller pieces") || r.MaxOutput == 0 {
		t.Errorf("asked again without a word: %+v", r)
	}
	b = newBench(t, with(spy), cut, cut, cut, cut)
	if res := b.run(t.Context()); res.State != record.TurnFailed || ran || !strings.Contains(res.Text, "output limit") {
		t.Errorf("%+v", res)
	}
}

func TestRetriedCallResetsTheLiveText(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Play(
		llm.TextDelta{Text: "lost"}, llm.Restarted{Wait: time.Second, Reason: "rate limited"}, llm.TextDelta{Text: "kept"}, llm.Finished{Reason: llm.FinishStop}))
	if res := b.run(t.Context()); res.Text != "kept" || b.sink.Text() != "kept" {
		t.Errorf("%q, shown %q", res.Text, b.sink.Text())
	}
}

func TestSurfaces(t *testing.T) { // mission 2.7: eight surfaces, in order
	slow := makeTool("slow", tool.Spec{}, func(_ context.Context, c tool.Call, _ string) (tool.Result, error) {
		c.Progress("half\nway")
		return tool.Result{Text: "ok"}, nil
	})
	b := newBench(t, with(slow),
		agentcoretest.Play(llm.ReasoningDelta{Text: "hm"}, llm.TextDelta{Text: "Let me."}, llm.ToolCallDelta{ID: "c", Name: "slow", Arguments: "{}"}, llm.Finished{Reason: llm.FinishToolCalls}),
		agentcoretest.Call(agentcoretest.Tool("q", "clarify", `{"question":"Which?"}`)),
		agentcoretest.Say("end"))
	b.asker.Answer = func(q record.Approval) record.Approval {
		q.State, q.Answer = record.ApprovalAnswered, "this"
		return q
	}
	b.run(t.Context())
	var got []string
	for _, ev := range b.sink.Events() {
		if _, ok := ev.(agentcore.Status); !ok {
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", ev), "agentcore."))
		}
	}
	want := "Thinking ReasoningDelta StreamDelta ToolGenerating Thinking Step ToolStarted ToolProgress ToolFinished " +
		"Thinking ToolGenerating Thinking Step ToolStarted ClarifyAsked ToolFinished Thinking StreamDelta Thinking"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if p := events[agentcore.ToolProgress](b); p[0].Line != "half way" || p[0].Call.ID != "c" {
		t.Errorf("%+v", p)
	}
}

// A model with a small window is not filled up with tools without a word.
func TestToolsThatFillTheWindow(t *testing.T) {
	for window, warned := range map[int]bool{100_000: false, 100: true} {
		core, log := observer.New(zap.WarnLevel)
		newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) {
			d.Log = zap.New(core)
			d.Facts = func(llm.ModelID) llm.Facts { return llm.Facts{ContextWindow: window} }
			with(makeTool("a", tool.Spec{}, echo), makeTool("b", tool.Spec{}, echo))(nil, d)
		})
		if got := log.FilterMessageSnippet("tools.enabled").Len() == 1; got != warned {
			t.Errorf("window %d: warned: %v", window, got)
		}
	}
}
