package agentcore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

// delegating is a bench whose model answers by what it is asked: the parent's steps in
// order, and a subagent by its goal.
func delegating(t *testing.T, change func(*agentcore.Config, *agentcore.Deps), subagent agentcoretest.Step, parent ...agentcoretest.Step) *bench {
	t.Helper()
	var mu sync.Mutex
	router := func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
		if strings.HasPrefix(req.System, "You are a subagent") {
			subagent(ctx, req, yield)
			return
		}
		mu.Lock()
		step := parent[0]
		parent = parent[1:]
		mu.Unlock()
		step(ctx, req, yield)
	}
	b := newBench(t, func(c *agentcore.Config, d *agentcore.Deps) {
		d.Delegation = agentcore.DefaultDelegation()
		if change != nil {
			change(c, d)
		}
	})
	for range 30 {
		b.model.Then(router)
	}
	return b
}

func delegateCall(id string, goals ...string) agentcoretest.Step {
	var tasks []string
	for _, g := range goals {
		tasks = append(tasks, fmt.Sprintf(`{"goal":%q,"context":"the context"}`, g))
	}
	return agentcoretest.Call(agentcoretest.Tool(id, "delegate_task", `{"tasks":[`+strings.Join(tasks, ",")+`]}`))
}

func asked(req *llm.Request) string { return req.Messages[0].Text() }

// goalOf is the goal of the subagent that a request comes from.
func goalOf(req *llm.Request) string {
	first, _, _ := strings.Cut(req.Messages[0].Text(), "\n\n")
	return first[strings.LastIndex(first, "] ")+2:] // behind the time
}

func toolNames(req *llm.Request) string {
	var names []string
	for _, s := range req.Tools {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// Tasks of a call run beside each other, each with a context of its own, and their
// results come back in the order of the tasks.
func TestDelegate(t *testing.T) {
	var begun sync.WaitGroup
	begun.Add(2)
	b := delegating(t, with(makeTool("echo", tool.Spec{}, echo), makeTool("send_file", tool.Spec{Needs: tool.SendFiles}, echo)),
		func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
			if got := toolNames(req); got != "current_time echo" {
				t.Errorf("a subagent is offered %s", got)
			}
			if strings.Contains(asked(req), "do it") || !strings.Contains(asked(req), "the context") {
				t.Errorf("a subagent is asked %q", asked(req))
			}
			begun.Done()
			begun.Wait() // neither ends before the other has begun
			agentcoretest.Say("found "+goalOf(req))(ctx, req, yield)
		}, delegateCall("d", "alpha", "beta"), agentcoretest.Say("done"))
	res := b.run(t.Context())
	if res.State != record.TurnDone || res.Iterations != 2 {
		t.Fatalf("%+v", res)
	}
	if got, want := b.results()["d"], "## Task 1: alpha\nfound alpha\n\n## Task 2: beta\nfound beta"; got != want {
		t.Errorf("got %q", got)
	}
	if got := b.rows(); got != "user, assistant d, tool d, assistant" {
		t.Error(got)
	}
	if !strings.Contains(toolNames(&b.model.Requests()[0]), "delegate_task") {
		t.Error("the agent itself has no subagents")
	}
}

// What cannot be started is told to the model before anything runs; of a batch that is
// too large nothing is left out in silence.
func TestDelegateRefuses(t *testing.T) {
	for want, arguments := range map[string]string{
		"3 now and the others": `{"tasks":[{"goal":"a"},{"goal":"b"},{"goal":"c"},{"goal":"d"}]}`,
		"no task":              `{"tasks":[]}`,
		"task 1 has no goal":   `{"tasks":[{"goal":" "}]}`,
		"can have":             `{"tasks":[{"goal":"a"},{"goal":"b","tools":["memory"]}]}`,
		"at most 20000 fit":    `{"tasks":[{"goal":"a","context":"` + strings.Repeat("x", 20_000) + `"}]}`,
	} {
		b := delegating(t, nil, func(context.Context, *llm.Request, func(llm.Event, error) bool) { t.Error("a subagent began") },
			agentcoretest.Call(agentcoretest.Tool("d", "delegate_task", arguments)), agentcoretest.Say("done"))
		b.run(t.Context())
		if got := b.results()["d"]; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// SUB-003: whatever becomes of a subagent, its parent is told in words.
func TestDelegateEndsAreWords(t *testing.T) {
	for want, step := range map[string]agentcoretest.Step{
		"The subagent failed":       agentcoretest.Fail("", &llm.Error{Kind: llm.KindAuth, Status: 401, Message: "no"}),
		"used up its model calls":   agentcoretest.Call(agentcoretest.Tool("", "current_time", `{}`)),
		"I can say only this much.": agentcoretest.Say("I can say only this much."),
	} {
		b := delegating(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Delegation.MaxIterations = 2 }, step, delegateCall("d", "a"), agentcoretest.Say("done"))
		if res := b.run(t.Context()); res.Text != "done" || !strings.Contains(b.results()["d"], want) {
			t.Errorf("%s: the parent was told %q", want, b.results()["d"])
		}
	}
}

// A subagent has the person and the trust of its parent, and what it may not do
// without consent is asked in its parent's name.
func TestDelegateAsksInItsParentsName(t *testing.T) {
	var told tool.Call
	danger := makeTool("danger", tool.Spec{Needs: tool.Exec}, func(_ context.Context, c tool.Call, _ string) (tool.Result, error) {
		told = c
		return tool.Result{Text: "ran"}, nil
	})
	b := delegating(t, with(danger), then(agentcoretest.Call(agentcoretest.Tool("x", "danger", args("now"))), agentcoretest.Say("ok")),
		delegateCall("d", "clean `up`"), agentcoretest.Say("done"))
	b.req.Turn.Trust, b.req.Role = record.TrustUntrusted, record.RoleUser
	if res := b.run(t.Context()); res.State != record.TurnDone {
		t.Fatalf("%+v", res)
	}
	q := b.asker.Questions()
	if len(q) != 2 || !strings.Contains(q[0].Question, "delegate_task") || !strings.Contains(q[1].Question, "task is `clean 'up'`") || !strings.HasSuffix(q[1].CallID, "/x") || len(q[1].CallID) < 30 {
		t.Errorf("asked %+v", q)
	}
	if told.Person != "x:1" || told.Trust != record.TrustUntrusted || told.Role != record.RoleUser || told.Turn == "turn-1" {
		t.Errorf("the tool was told %+v", told)
	}
}

// STP-001: /stop ends the subagents with their parent, within a second.
func TestDelegateStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := delegating(t, nil, agentcoretest.Hang("so far"), delegateCall("d", "a", "b"), agentcoretest.Say("done"))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(ctx) }()
		synctest.Wait()
		begun := time.Now()
		cancel(agentcore.ErrStopped)
		if res := <-done; res.State != record.TurnInterrupted || time.Since(begun) > time.Second {
			t.Errorf("%s after %s", res.State, time.Since(begun))
		}
		for i := range 2 {
			if e, ok := b.child(t, i).Ended(); !ok || e.State != record.TurnInterrupted {
				t.Errorf("the subagent %d has ended: %v %+v", i, ok, e)
			}
		}
		b.agent.Wait()
	})
}

// A new message does not cut subagents off.
func TestDelegateOutlastsAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := delegating(t, nil, slow("found"), delegateCall("d", "a"), agentcoretest.Say("done"))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(ctx) }()
		synctest.Wait()
		cancel(agentcore.ErrInterrupted)
		if res := <-done; res.State != record.TurnInterrupted || b.results()["d"] != "found" {
			t.Errorf("%s, %v", res.State, b.results())
		}
	})
}

// RST-005: after a crash or a shutdown a subagent goes on where it was, and one that
// had ended is not run again.
func TestDelegateResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran, calls := 0, map[string]int{}
		var mu sync.Mutex
		count := makeTool("count", tool.Spec{}, func(ctx context.Context, _ tool.Call, _ string) (tool.Result, error) {
			ran++
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		b := delegating(t, with(count), func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
			goal := goalOf(req)
			mu.Lock()
			calls[goal]++
			n := calls[goal]
			mu.Unlock()
			switch {
			case goal == "quick":
				agentcoretest.Say("quick result")(ctx, req, yield)
			case n == 1:
				agentcoretest.Call(agentcoretest.Tool("c", "count", `{}`))(ctx, req, yield)
			default:
				agentcoretest.Say("slow result")(ctx, req, yield)
			}
		}, delegateCall("d", "quick", "slow"), agentcoretest.Say("done"))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(ctx) }()
		synctest.Wait()
		cancel(agentcore.ErrSuspend)
		if res := <-done; res.State != record.TurnSuspended {
			t.Fatalf("%+v", res)
		}
		b.agent.Wait()
		b.req.Turn = b.journal.Turn()
		res, err := b.agent.Resume(t.Context(), b.req)
		if err != nil || res.Text != "done" {
			t.Fatalf("%+v %v", res, err)
		}
		if got := b.results()["d"]; !strings.Contains(got, "quick result") || !strings.Contains(got, "slow result") {
			t.Errorf("got %q", got)
		}
		if ran != 1 || calls["quick"] != 1 || calls["slow"] != 2 {
			t.Errorf("the tool ran %d times, the model was asked %v", ran, calls)
		}
		rows, _ := b.child(t, 1).History(t.Context())
		if len(rows) != 4 || !strings.Contains(rows[2].Content, "not known") {
			t.Errorf("the subagent's history is %+v", rows)
		}
	})
}

// Subagents have subagents only as deep as is configured.
func TestDelegateDepth(t *testing.T) {
	offered := map[string]bool{}
	b := delegating(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Delegation.MaxDepth = 2 },
		func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
			goal, has := goalOf(req), strings.Contains(toolNames(req), "delegate_task")
			offered[goal] = has
			if has && len(req.Messages) == 1 {
				delegateCall("e", "deeper")(ctx, req, yield)
				return
			}
			agentcoretest.Say("end of "+goal)(ctx, req, yield)
		}, delegateCall("d", "first"), agentcoretest.Say("done"))
	b.run(t.Context())
	if !offered["first"] || offered["deeper"] || len(offered) != 2 || b.results()["d"] != "end of first" {
		t.Errorf("offered %v, got %v", offered, b.results())
	}
}

// What a subagent does is one line of its parent's, by its task.
func TestDelegateShowsItsWork(t *testing.T) {
	b := delegating(t, with(makeTool("echo", tool.Spec{}, echo)), then(agentcoretest.Call(agentcoretest.Tool("x", "echo", args("hello"))), agentcoretest.Say("ok")),
		delegateCall("d", "look"), agentcoretest.Say("done"))
	b.run(t.Context())
	var lines []string
	for _, ev := range events[agentcore.SubagentProgress](b) {
		if ev.Call.ID != "d" || ev.Goal != "look" {
			t.Errorf("%+v", ev)
		}
		lines = append(lines, ev.Line+string(ev.State))
	}
	if got := strings.Join(lines, " | "); !strings.Contains(got, "echo: hello") || !strings.HasSuffix(got, "| done") {
		t.Error(got)
	}
	if n := len(events[agentcore.ToolStarted](b)); n != 1 {
		t.Errorf("%d tools are shown as the agent's own", n)
	}
}

// then plays steps by how far the conversation of the request is.
func then(steps ...agentcoretest.Step) agentcoretest.Step {
	return func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.Assistant {
				n++
			}
		}
		steps[n](ctx, req, yield)
	}
}

// slow answers after a minute.
func slow(text string) agentcoretest.Step {
	return func(ctx context.Context, req *llm.Request, yield func(llm.Event, error) bool) {
		select {
		case <-ctx.Done():
			yield(nil, ctx.Err())
		case <-time.After(time.Minute):
			agentcoretest.Say(text)(ctx, req, yield)
		}
	}
}

// child is the journal of the i-th task of the call d.
func (b *bench) child(t *testing.T, i int) *agentcore.MemoryJournal {
	t.Helper()
	d, j, err := b.journal.Delegate(context.Background(), record.Delegation{Parent: "turn-1", CallID: "d", Task: i})
	if err != nil || d.New {
		t.Fatalf("there is no subagent %d: %v", i, err)
	}
	return j.(*agentcore.MemoryJournal)
}
