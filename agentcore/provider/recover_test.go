package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"parley/agentcore/llm"
	"parley/config/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted answers the calls of each model in turn; the last one stays.
type scripted struct {
	mu    sync.Mutex
	steps map[llm.ModelID][]step
	calls []string
	begun time.Time
}

type step struct {
	err    *llm.Error
	text   string
	finish llm.FinishReason
	takes  time.Duration
}

func (s *scripted) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		s.mu.Lock()
		steps := s.steps[req.Model]
		now := steps[0]
		if len(steps) > 1 {
			s.steps[req.Model] = steps[1:]
		}
		s.calls = append(s.calls, fmt.Sprintf("%s@%s", req.Model, time.Since(s.begun)))
		s.mu.Unlock()
		select {
		case <-time.After(now.takes):
		case <-ctx.Done():
			yield(nil, ctx.Err())
			return
		}
		if now.text != "" && !yield(llm.TextDelta{Text: now.text}, nil) {
			return
		}
		if now.err != nil {
			e := *now.err
			e.Model = req.Model
			yield(nil, &e)
			return
		}
		reason := now.finish
		if reason == "" {
			reason = llm.FinishStop
		}
		yield(llm.Finished{Reason: reason, Model: req.Model}, nil)
	}
}

func newSet(t *testing.T, p llm.Provider, parallel int) *Set {
	t.Helper()
	factory := func(string, Config) (llm.Provider, error) { return p, nil }
	key := secret.New("k")
	s, err := Build(map[string]Config{
		"a": {APIKey: key, BaseURL: "http://a"}, "b": {APIKey: key, BaseURL: "http://b"}, "openai": {},
	}, map[Mode]Factory{ChatCompletions: factory}, Deps{Jitter: func() float64 { return 1 }, Parallel: parallel})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fail(kind llm.ErrorKind) step { return step{err: &llm.Error{Kind: kind}} }

func wait(kind llm.ErrorKind, d time.Duration) step {
	return step{err: &llm.Error{Kind: kind, RetryAfter: d}}
}

var good = step{text: "ok"}

// TestRecoveryTable is the table of the mission's section 3: which model is called
// when. PRV-013: what cannot mend itself is not called again.
func TestRecoveryTable(t *testing.T) {
	chain := []llm.ModelID{"b/m"}
	for _, c := range []struct {
		name     string
		steps    []step // of the first model
		fallback []llm.ModelID
		calls    []string
		kind     llm.ErrorKind // of the error; empty: answered
	}{
		{"answers", []step{good}, nil, []string{"a/m@0s"}, ""},
		{"auth falls back at once", []step{fail(llm.KindAuth)}, chain, []string{"a/m@0s", "b/m@0s"}, ""},
		{"auth alone is told", []step{fail(llm.KindAuth)}, nil, []string{"a/m@0s"}, llm.KindAuth},
		{"billing falls back at once", []step{fail(llm.KindBilling)}, chain, []string{"a/m@0s", "b/m@0s"}, ""},
		{"no model falls back at once", []step{fail(llm.KindNotFound)}, chain, []string{"a/m@0s", "b/m@0s"}, ""},
		{"filtered falls back at once", []step{fail(llm.KindFiltered)}, chain, []string{"a/m@0s", "b/m@0s"}, ""},
		{"rate limit waits as asked", []step{wait(llm.KindRateLimit, 7*time.Second), good}, nil, []string{"a/m@0s", "a/m@7s"}, ""},
		{"rate limit waits 5 s unasked", []step{fail(llm.KindRateLimit), good}, nil, []string{"a/m@0s", "a/m@5s"}, ""},
		{"rate limit waits 60 s at most", []step{wait(llm.KindRateLimit, 90*time.Second), good}, nil, []string{"a/m@0s", "a/m@1m0s"}, ""},
		{"rate limit retries once", []step{fail(llm.KindRateLimit)}, chain, []string{"a/m@0s", "a/m@5s", "b/m@5s"}, ""},
		{"rate limit alone is told", []step{fail(llm.KindRateLimit)}, nil, []string{"a/m@0s", "a/m@5s"}, llm.KindRateLimit},
		{"hours are not waited for (PRV-025)", []step{wait(llm.KindRateLimit, 2*time.Hour)}, nil, []string{"a/m@0s"}, llm.KindRateLimit},
		{"network retries once", []step{fail(llm.KindNetwork)}, chain, []string{"a/m@0s", "a/m@2s", "b/m@2s"}, ""},
		{"timeout alone", []step{fail(llm.KindTimeout)}, nil, []string{"a/m@0s", "a/m@2s", "a/m@6s", "a/m@14s"}, llm.KindTimeout},
		{"overloaded heals", []step{fail(llm.KindOverloaded), fail(llm.KindOverloaded), good}, nil, []string{"a/m@0s", "a/m@2s", "a/m@6s"}, ""},
		{"empty answer", []step{{}, {}, good}, chain, []string{"a/m@0s", "a/m@2s", "a/m@6s"}, ""},
		{"always empty", []step{{}}, chain, []string{"a/m@0s", "a/m@2s", "a/m@6s", "a/m@14s", "b/m@14s"}, ""},
		{"announced calls that do not come (PRV-035)", []step{{text: "I will", finish: llm.FinishToolCalls}, good}, nil, []string{"a/m@0s", "a/m@2s"}, ""},
		{"refusal without text is an answer (PRV-009)", []step{{finish: llm.FinishFilter}}, chain, []string{"a/m@0s"}, ""},
		{"a silence that was meant is an answer", []step{{finish: llm.FinishSilent}}, chain, []string{"a/m@0s"}, ""},
		{"overflow is returned", []step{fail(llm.KindOverflow)}, chain, []string{"a/m@0s"}, llm.KindOverflow},
		{"malformed is returned", []step{fail(llm.KindMalformed)}, chain, []string{"a/m@0s"}, llm.KindMalformed},
		{"unknown is returned", []step{fail(llm.KindUnknown)}, chain, []string{"a/m@0s"}, llm.KindUnknown},
		{
			"repaired is sent again", []step{{err: &llm.Error{Kind: llm.KindMalformed, Repaired: true}}, good}, nil,
			[]string{"a/m@0s", "a/m@0s"}, "",
		},
		{"off falls back", []step{good}, []llm.ModelID{"openai/x", "b/m"}, []string{"a/m@0s"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{"a/m": c.steps, "b/m": {good}}}
				chain := newSet(t, p, 0).Chain(Chain{Model: "a/m", Fallback: c.fallback})
				_, err := llm.Collect(t.Context(), chain.Stream(t.Context(), &llm.Request{}))
				if diff := cmp.Diff(c.calls, p.calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				var e *llm.Error
				errors.As(err, &e)
				if (e == nil) != (c.kind == "") || e != nil && e.Kind != c.kind {
					t.Errorf("error = %v, want kind %q", err, c.kind)
				}
			})
		})
	}
}

// TestRestartVoidsPartialText: what was streamed before a retry is void, and the
// wait is jittered.
func TestRestartVoidsPartialText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{
			"a/m": {{text: "half an ans", err: &llm.Error{Kind: llm.KindNetwork}}}, "b/m": {{text: "a whole answer"}},
		}}
		s := newSet(t, p, 0)
		s.jitter = func() float64 { return 1.2 }
		chain := s.Chain(Chain{Model: "a/m", Fallback: []llm.ModelID{"b/m"}})
		var got []llm.Event
		for ev, err := range chain.Stream(t.Context(), &llm.Request{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ev)
		}
		want := []llm.Event{
			llm.TextDelta{Text: "half an ans"},
			llm.Restarted{Wait: 2400 * time.Millisecond, Model: "a/m", Reason: "the connection broke"},
			llm.TextDelta{Text: "half an ans"},
			llm.Restarted{Model: "b/m", Reason: "the connection broke"},
			llm.TextDelta{Text: "a whole answer"},
			llm.Finished{Reason: llm.FinishStop, Model: "b/m"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestPauseOfOthersIsShown: whoever comes while the provider wants to be left alone
// is told that there is something to wait for.
func TestPauseOfOthersIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{steps: map[llm.ModelID][]step{"a/m": {wait(llm.KindRateLimit, 7*time.Second), good}}, begun: time.Now()}
		m := newSet(t, p, 0).Chain(Chain{Model: "a/m"})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, err := range m.Stream(ctx, &llm.Request{Model: "a/m"}) {
			_ = err // it is the context's own
			stop()  // at the wait
		}
		<-time.After(2 * time.Second)
		var seen []string
		for ev, err := range m.Stream(t.Context(), &llm.Request{Model: "a/m"}) {
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := ev.(llm.Restarted); ok {
				seen = append(seen, r.Reason+" "+r.Wait.String())
			}
		}
		if d := cmp.Diff([]string{"rate limited 5s"}, seen); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"a/m@0s", "a/m@7s"}, p.calls); d != "" {
			t.Error(d)
		}
	})
}

// TestStopEndsEveryWait: the context ends a wait between calls, in the queue and
// in a call at once.
func TestStopEndsEveryWait(t *testing.T) {
	for name, c := range map[string]struct {
		step     step
		parallel int
	}{
		"back-off":   {wait(llm.KindRateLimit, time.Minute), 0},
		"long wait":  {fail(llm.KindOverloaded), 0},
		"in a call":  {step{takes: time.Hour}, 0},
		"in a queue": {step{takes: time.Hour}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{"a/m": {c.step}}}
				s := newSet(t, p, c.parallel)
				chain := s.Chain(Chain{Model: "a/m"})
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for range 2 {
					all.Go(func() {
						if _, err := llm.Collect(ctx, chain.Stream(ctx, &llm.Request{})); !errors.Is(err, context.Canceled) {
							t.Errorf("error = %v", err)
						}
					})
				}
				<-time.After(time.Second)
				synctest.Wait()
				cancelled := time.Now()
				cancel()
				all.Wait()
				if took := time.Since(cancelled); took != 0 {
					t.Errorf("released after %s", took)
				}
				if g := s.providers["a"].gate; g.running != 0 || g.waiting.Len() != 0 {
					t.Errorf("the gate holds %d running and %d waiting", g.running, g.waiting.Len())
				}
			})
		})
	}
}

// TestCooldown: a failed primary is passed over until its cooldown ends, then it
// comes back; if everything cools down, everything is tried.
func TestCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{
			"a/m": {fail(llm.KindAuth), good}, "b/m": {good, fail(llm.KindAuth), good},
		}}
		chain := newSet(t, p, 0).Chain(Chain{Model: "a/m", Fallback: []llm.ModelID{"b/m"}})
		ask := func() {
			_, _ = llm.Collect(t.Context(), chain.Stream(t.Context(), &llm.Request{}))
		}
		ask()                         // a fails, b answers
		ask()                         // b fails, alone
		ask()                         // both cool: a answers and is warm
		ask()                         // a
		<-time.After(6 * time.Minute) // all are warm
		ask()
		want := []string{"a/m@0s", "b/m@0s", "b/m@0s", "a/m@0s", "a/m@0s", "a/m@6m0s"}
		if diff := cmp.Diff(want, p.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestAnswerEndsCooldown: a model that answers again is first again.
func TestAnswerEndsCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{"a/m": {fail(llm.KindAuth), good}, "b/m": {good}}}
		s := newSet(t, p, 0)
		both, alone := s.Chain(Chain{Model: "a/m", Fallback: []llm.ModelID{"b/m"}}), s.Chain(Chain{Model: "a/m"})
		for _, c := range []llm.Provider{both, both, alone, both} {
			if _, err := llm.Collect(t.Context(), c.Stream(t.Context(), &llm.Request{})); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"a/m@0s", "b/m@0s", "b/m@0s", "a/m@0s", "a/m@0s"}, p.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestNamedModelComesFirst: a request may name a model of its own; the chain is
// what it falls back to.
func TestNamedModelComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{"b/other": {fail(llm.KindNotFound)}, "a/m": {good}}}
		chain := newSet(t, p, 0).Chain(Chain{Model: "a/m"})
		r, err := llm.Collect(t.Context(), chain.Stream(t.Context(), &llm.Request{Model: "b/other"}))
		if err != nil || r.Model != "a/m" || len(p.calls) != 2 {
			t.Errorf("%+v, %v, calls %v", r, err, p.calls)
		}
	})
}

// TestBreakAbandons: breaking out of the loop ends the chain without another call.
func TestBreakAbandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{begun: time.Now(), steps: map[llm.ModelID][]step{"a/m": {{text: "x", err: &llm.Error{Kind: llm.KindNetwork}}}}}
		s := newSet(t, p, 0)
		for _, err := range s.Chain(Chain{Model: "a/m"}).Stream(t.Context(), &llm.Request{}) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if len(p.calls) != 1 || s.providers["a"].gate.running != 0 {
			t.Errorf("calls %v, running %d", p.calls, s.providers["a"].gate.running)
		}
	})
}

// limited is a provider that takes ten requests at a time.
type limited struct {
	mu             sync.Mutex
	running, calls int
}

func (l *limited) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		l.mu.Lock()
		l.calls++
		if l.running == 10 {
			l.mu.Unlock()
			yield(nil, &llm.Error{Kind: llm.KindRateLimit, Status: 429, RetryAfter: 5 * time.Second, Model: req.Model})
			return
		}
		l.running++
		l.mu.Unlock()
		<-time.After(2 * time.Second) // to the first token and on
		l.mu.Lock()
		l.running--
		l.mu.Unlock()
		_ = yield(llm.TextDelta{Text: "ok"}, nil) && yield(llm.Finished{Reason: llm.FinishStop, Model: req.Model}, nil)
	}
}

// TestBurstIsDelayedNotFailed is CON-007.
func TestBurstIsDelayedNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &limited{}
		chain := newSet(t, p, 0).Chain(Chain{Model: "a/m"})
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				<-time.After(time.Duration(i) * 10 * time.Millisecond)
				if _, err := llm.Collect(t.Context(), chain.Stream(t.Context(), &llm.Request{})); err != nil {
					t.Errorf("conversation %d: %v", i, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took > time.Minute || p.calls > 200 {
			t.Errorf("took %s and %d calls", took, p.calls)
		}
	})
}
