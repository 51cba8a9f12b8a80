package agentcore_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

// crashed is a turn whose process died with calls in the given states.
func crashed(t *testing.T, spec tool.Spec, states ...record.ToolState) (*bench, map[string]int) {
	t.Helper()
	ran := map[string]int{}
	count := makeTool("count", spec, func(_ context.Context, c tool.Call, _ string) (tool.Result, error) {
		ran[c.ID]++
		return tool.Result{Text: "counted now"}, nil
	})
	b := newBench(t, with(count), agentcoretest.Say("done"))
	b.req.Turn.State, b.req.Message = record.TurnActing, ""
	if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "count"}); err != nil {
		t.Fatal(err)
	}
	m := record.Message{Role: llm.Assistant}
	var runs []record.ToolRun
	for i := range states {
		id := string(rune('a' + i))
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id, Name: "count", Arguments: "{}"})
		runs = append(runs, record.ToolRun{Turn: "turn-1", Iteration: 1, Index: i, CallID: id, Tool: "count", Arguments: []byte("{}"), State: record.ToolPending})
	}
	_, runs, err := b.journal.Plan(t.Context(), m, runs)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range states {
		runs[i].State = s
		switch s {
		case record.ToolStarted:
			err = b.journal.Start(t.Context(), runs[i])
		case record.ToolDone:
			runs[i].Outcome = "ok"
			err = b.journal.Finish(t.Context(), runs[i], record.Message{Role: llm.ToolRole, Content: "counted before", ToolCallID: runs[i].CallID})
		case record.ToolPending:
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b, ran
}

// RST-005, STP-001: done is kept, started is told as unknown, pending runs.
func TestResumeByTheStatesOfTheCalls(t *testing.T) {
	b, ran := crashed(t, tool.Spec{}, record.ToolDone, record.ToolStarted, record.ToolPending)
	res, err := b.agent.Resume(t.Context(), b.req)
	if err != nil || res.State != record.TurnDone || res.Text != "done" || res.Iterations != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	r := b.results()
	if r["a"] != "counted before" || !strings.Contains(r["b"], "not known") || r["c"] != "counted now" {
		t.Error(r)
	}
	if ran["a"]+ran["b"] != 0 || ran["c"] != 1 {
		t.Errorf("ran %v", ran)
	}
	runs, _ := b.journal.Runs(t.Context())
	if runs[1].Outcome != "unknown" {
		t.Errorf("the audit says %q", runs[1].Outcome)
	}
	if got := b.rows(); got != "user, assistant a b c, tool a, tool b, tool c, assistant" {
		t.Error(got)
	}
}

// An answer that was not committed is asked for again; no user row is added.
func TestResumeBeforeTheAnswer(t *testing.T) {
	for name, states := range map[string][]record.ToolState{"after tools": {record.ToolDone}, "before any call": nil} {
		b, _ := crashed(t, tool.Spec{}, states...)
		b.req.Message = "must not be stored again"
		res, err := b.agent.Resume(t.Context(), b.req)
		if err != nil || res.Text != "done" || strings.Count(b.rows(), "user") != 1 {
			t.Errorf("%s: %+v %v %s", name, res, err, b.rows())
		}
	}
}

// A question stands across a crash: it is asked for again under the same call, and
// the tool runs once.
func TestResumeWhileApproving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ran := crashed(t, tool.Spec{Needs: tool.Exec}, record.ToolPending)
		b.req.Turn.State = record.TurnApproving
		b.asker.Answer = nil
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *agentcore.Result)
		go func() {
			res, err := b.agent.Resume(ctx, b.req)
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		synctest.Wait()
		if s := b.journal.Turn().State; s != record.TurnApproving {
			t.Errorf("the durable state is %s", s)
		}
		cancel(agentcore.ErrSuspend)
		<-done
		b.asker.Answer = agentcoretest.Decide(record.ApprovalApproved, "").Answer
		res, err := b.agent.Resume(t.Context(), b.req)
		if err != nil || res.State != record.TurnDone || ran["a"] != 1 {
			t.Errorf("%+v %v, ran %v", res, err, ran)
		}
		q := b.asker.Questions()
		if len(q) != 2 || q[0].CallID != q[1].CallID || q[0].Turn != q[1].Turn {
			t.Errorf("%+v", q)
		}
	})
}

func TestResumeNeedsAJournal(t *testing.T) {
	b := newBench(t, nil)
	if _, err := b.agent.Resume(t.Context(), agentcore.Request{}); err == nil {
		t.Error("resumed nothing")
	}
}

// joining hands over messages as the gateway does.
type joining struct {
	journal *agentcore.MemoryJournal
	waiting []string
}

func (s *joining) Take(ctx context.Context) ([]record.Message, error) {
	var rows []record.Message
	for _, w := range s.waiting {
		rows = append(rows, record.Message{Role: llm.User, Kind: record.KindSteer, Content: w})
	}
	s.waiting = nil
	return s.journal.Append(ctx, rows...)
}

// Steered text reaches the model after the tools' results, before its next call.
func TestSteering(t *testing.T) {
	b := newBench(t, nil)
	s := &joining{journal: b.journal}
	b.req.Steering = s
	say := makeTool("say", tool.Spec{}, func(context.Context, tool.Call, string) (tool.Result, error) {
		s.waiting = []string{"use the blue one", "please"}
		return tool.Result{Text: "ok"}, nil
	})
	b2 := newBench(t, with(say), agentcoretest.Call(agentcoretest.Tool("c", "say", "{}")), agentcoretest.Say("blue it is"))
	b2.req.Steering, s.journal = s, b2.journal
	res := b2.run(t.Context())
	if res.Text != "blue it is" || b2.rows() != "user, assistant c, tool c, user/steer, user/steer, assistant" {
		t.Errorf("%+v, %s", res, b2.rows())
	}
	if r := b2.model.Requests()[1]; !strings.Contains(allText(r), "use the blue one") {
		t.Error(allText(r))
	}
}

// A quick follow-up that joins before any tool ran restarts the call silently.
func TestJoinRestartsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, agentcoretest.Hang("half an"), agentcoretest.Say("both answered"))
		restart := new(agentcore.Restart)
		b.req.Restart = restart
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(t.Context()) }()
		synctest.Wait()
		if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "and this"}); err != nil {
			t.Fatal(err)
		}
		restart.Raise()
		res := <-done
		if res.Text != "both answered" || res.Iterations != 1 || b.rows() != "user, user, assistant" || b.sink.Text() != "both answered" {
			t.Errorf("%+v, %s, shown %q", res, b.rows(), b.sink.Text())
		}
		if r := b.model.Requests()[1]; len(r.Messages) != 1 || len(r.Messages[0].Parts) != 2 {
			t.Errorf("%+v", r.Messages)
		}
	})
}

// The signal is taken although the answer ends at that moment.
func TestJoinAsTheAnswerEnds(t *testing.T) {
	b := newBench(t, nil)
	restart := new(agentcore.Restart)
	b.req.Restart = restart
	b.model.Then(func(ctx context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		if _, err := b.journal.Append(context.Background(), record.Message{Role: llm.User, Content: "and this"}); err != nil {
			t.Error(err)
		}
		restart.Raise()
		<-ctx.Done()
		_ = yield(llm.ToolCallDelta{ID: "c", Name: "current_time", Arguments: "{}"}, nil) && yield(llm.Finished{Reason: llm.FinishToolCalls}, nil)
	}, agentcoretest.Say("both"))
	if res := b.run(t.Context()); res.Text != "both" || b.rows() != "user, user, assistant" {
		t.Errorf("%+v, %s", res, b.rows())
	}
}

// CON-008: a message that joins while the answer is being committed is answered
// too; the answer that did not see it is dropped.
func TestJoinAtTheVeryEnd(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Say("too early"), agentcoretest.Say("saw it"))
	j := &joinAtEnd{MemoryJournal: b.journal}
	b.req.Journal = j
	res := b.run(t.Context())
	if res.Text != "saw it" || b.rows() != "user, user, assistant" {
		t.Errorf("%+v, %s", res, b.rows())
	}
}

type joinAtEnd struct {
	*agentcore.MemoryJournal
	joined bool
}

func (j *joinAtEnd) End(ctx context.Context, e record.TurnEnd) error {
	if !j.joined {
		j.joined = true
		if _, err := j.Append(ctx, record.Message{Role: llm.User, Content: "one more"}); err != nil {
			return err
		}
	}
	return j.MemoryJournal.End(ctx, e)
}

// A signal that comes once tools have run does not restart, and nothing is lost.
func TestJoinAfterAToolIsSteeredIn(t *testing.T) {
	b := newBench(t, nil)
	restart := new(agentcore.Restart)
	say := makeTool("say", tool.Spec{}, func(ctx context.Context, _ tool.Call, _ string) (tool.Result, error) {
		_, err := b.journal.Append(ctx, record.Message{Role: llm.User, Content: "and this"})
		restart.Raise()
		return tool.Result{Text: "ok"}, err
	})
	c := newBench(t, with(say), agentcoretest.Call(agentcoretest.Tool("c", "say", "{}")), agentcoretest.Say("done"))
	b.journal = c.journal
	c.req.Restart = restart
	res := c.run(t.Context())
	if res.Iterations != 2 || !strings.Contains(allText(c.model.Requests()[1]), "and this") {
		t.Errorf("%+v, %s", res, c.rows())
	}
}
