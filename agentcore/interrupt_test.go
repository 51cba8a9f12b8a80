package agentcore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

// waits are the places where a turn can hang; each is set up to hang for ever.
func waits(stubborn chan struct{}) map[string]func(t *testing.T) *bench {
	hanging := func(spec tool.Spec) tool.Tool {
		return makeTool("hang", spec, func(ctx context.Context, _ tool.Call, _ string) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{Text: "killed"}, nil
		})
	}
	call := agentcoretest.Call(agentcoretest.Tool("c1", "hang", args("x")), agentcoretest.Tool("c2", "hang", args("y")))
	return map[string]func(t *testing.T) *bench{
		"model silent":    func(t *testing.T) *bench { return newBench(t, nil, agentcoretest.Hang("")) },
		"model streaming": func(t *testing.T) *bench { return newBench(t, nil, agentcoretest.Hang("partial text")) },
		"tools in order":  func(t *testing.T) *bench { return newBench(t, with(hanging(tool.Spec{ReadOnly: true})), call) },
		"tools at once": func(t *testing.T) *bench {
			return newBench(t, with(hanging(tool.Spec{Parallel: true, ReadOnly: true})), call)
		},
		"tool that ignores its context": func(t *testing.T) *bench { // STP-007
			return newBench(t, with(makeTool("hang", tool.Spec{ReadOnly: true}, func(context.Context, tool.Call, string) (tool.Result, error) {
				<-stubborn
				return tool.Result{Text: "late"}, nil
			})), call)
		},
		"approval": func(t *testing.T) *bench {
			b := newBench(t, with(hanging(tool.Spec{Needs: tool.Exec})), call)
			b.asker.Answer = nil
			return b
		},
		"clarify": func(t *testing.T) *bench {
			b := newBench(t, nil, agentcoretest.Call(agentcoretest.Tool("c1", "clarify", `{"question":"Which?"}`)))
			b.asker.Answer = nil
			return b
		},
		"last call for a summary": func(t *testing.T) *bench {
			b := newBench(t, with(makeTool("echo", tool.Spec{}, echo)), agentcoretest.Call(agentcoretest.Tool("c1", "echo", "{}")), agentcoretest.Hang("so far"))
			b.req.Turn.Budget = record.Budget{Initial: 1, Cap: 1}
			return b
		},
		"compression": func(t *testing.T) *bench {
			b := newBench(t, nil)
			b.engine.DecideFunc = func(engine.State) engine.Decision { return engine.Decision{Compress: true, Tokens: 10, Limit: 5} }
			b.engine.CompressFunc = func(ctx context.Context, _ engine.Input) (engine.Result, error) {
				<-ctx.Done()
				return engine.Result{}, ctx.Err()
			}
			return b
		},
	}
}

// STP-001, STP-002, STP-003, STP-006, STP-007, RST-009: in every wait /stop ends
// the turn within a second, the history is legal, and the next message is answered.
func TestStopInEveryWait(t *testing.T) {
	for name := range waits(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubborn := make(chan struct{})
				b := waits(stubborn)[name](t)
				res, took := cut(t, b, agentcore.ErrStopped)
				if res.State != record.TurnInterrupted || took >= time.Second {
					t.Errorf("%s after %v", res.State, took)
				}
				e, ok := b.journal.Ended()
				if !ok || e.State != record.TurnInterrupted || e.Text != "" {
					t.Errorf("the end: %+v", e)
				}
				if rows := b.rows(); !strings.HasSuffix(rows, "assistant/notice") || strings.Contains(rows, "assistant/notice,") {
					t.Errorf("rows %s", rows)
				}
				runs, _ := b.journal.Runs(t.Context())
				for _, r := range runs {
					if r.State != record.ToolDone || r.Tool != "echo" && r.Outcome != "interrupted" {
						t.Errorf("call %s: %s, %s, %q", r.CallID, r.State, r.Outcome, b.results()[r.CallID])
					}
				}
				b.engine.DecideFunc = nil
				b.next("go on")
				asked := b.model.Requests()
				if strings.Contains(allText(asked[len(asked)-1]), "partial text") {
					t.Error("a partial answer entered the history")
				}
				close(stubborn)
				b.agent.Wait()
			})
		})
	}
}

// A suspension writes nothing: the next owner finds the turn as it was.
func TestSuspendInEveryWait(t *testing.T) {
	for name := range waits(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubborn := make(chan struct{})
				b := waits(stubborn)[name](t)
				var before string
				res, took := cut(t, b, agentcore.ErrSuspend, func() { before = b.rows() })
				if res.State != record.TurnSuspended || took >= time.Second || res.Cause == "" {
					t.Errorf("%s after %v: %s", res.State, took, res.Cause)
				}
				if _, ended := b.journal.Ended(); ended || b.rows() != before {
					t.Errorf("the turn left %s, had %s", b.rows(), before)
				}
				close(stubborn)
				b.agent.Wait()
			})
		})
	}
}

// A new message ends every wait but a compression and a tool that changes
// something.
func TestInterruptInEveryWait(t *testing.T) {
	for name := range waits(nil) {
		if name == "compression" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubborn := make(chan struct{})
				b := waits(stubborn)[name](t)
				res, took := cut(t, b, agentcore.ErrInterrupted)
				if res.State != record.TurnInterrupted || took >= time.Second || !strings.Contains(res.Cause, "new message") {
					t.Errorf("%s after %v: %s", res.State, took, res.Cause)
				}
				b.next("what I said")
				close(stubborn)
				b.agent.Wait()
			})
		})
	}
}

// CMP-004: a compression is not cut off by a new message.
func TestInterruptWaitsForACompression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		made := make(chan struct{})
		b.engine.DecideFunc = func(engine.State) engine.Decision { return engine.Decision{Compress: true} }
		b.engine.CompressFunc = func(ctx context.Context, in engine.Input) (engine.Result, error) {
			select {
			case <-made:
				return summarised(in), nil
			case <-ctx.Done():
				return engine.Result{}, ctx.Err()
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(ctx) }()
		synctest.Wait()
		cancel(agentcore.ErrInterrupted)
		synctest.Wait()
		close(made)
		res := <-done
		if res.State != record.TurnInterrupted || !strings.HasPrefix(b.rows(), "user/summary") {
			t.Errorf("%s, %s", res.State, b.rows())
		}
	})
}

// A tool that changes something is let finish when a new message comes, and its
// result is kept; /stop kills it.
func TestInterruptLetsAWriterFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		write := makeTool("write", tool.Spec{Needs: tool.Write, Parallel: true}, func(ctx context.Context, _ tool.Call, _ string) (tool.Result, error) {
			select {
			case <-finish:
				return tool.Result{Text: "written"}, nil
			case <-ctx.Done():
				return tool.Result{Text: "killed"}, nil
			}
		})
		read := makeTool("read", tool.Spec{Parallel: true, ReadOnly: true}, func(ctx context.Context, _ tool.Call, _ string) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{Text: "killed"}, nil
		})
		stubborn := make(chan struct{})
		deaf := makeTool("deaf", tool.Spec{Parallel: true, ReadOnly: true}, func(context.Context, tool.Call, string) (tool.Result, error) {
			<-stubborn
			return tool.Result{Text: "late"}, nil
		})
		b := newBench(t, with(write, read, deaf),
			agentcoretest.Call(agentcoretest.Tool("w", "write", "{}"), agentcoretest.Tool("r", "read", "{}"), agentcoretest.Tool("d", "deaf", "{}")))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(ctx) }()
		synctest.Wait()
		cancel(agentcore.ErrInterrupted)
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("the writer was not waited for")
		default:
		}
		begun := time.Now()
		close(finish)
		res := <-done
		if got := b.results(); res.State != record.TurnInterrupted || got["w"] != "written" || !strings.Contains(got["r"], "Interrupted") || !strings.Contains(got["d"], "Interrupted") {
			t.Errorf("%s %v", res.State, got)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("took %v after the writer", took)
		}
		b.next("and now?")
		close(stubborn)
		b.agent.Wait()
	})
}

// A plain cancellation suspends: only a named cause ends a turn.
func TestChatIsCutOffByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, agentcoretest.Hang("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.agent.Chat(ctx, "hi"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// The answer that is complete when /stop comes is not lost: its end is committed
// with a context of its own.
func TestEndIsCommittedDespiteTheContext(t *testing.T) {
	b := newBench(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	b.model.Then(func(_ context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		yield(llm.TextDelta{Text: "complete"}, nil)
		yield(llm.Finished{Reason: llm.FinishStop}, nil)
		cancel(agentcore.ErrStopped)
	})
	if res := b.run(ctx); res.State != record.TurnDone || res.Text != "complete" {
		t.Errorf("%+v", res)
	}
}

// away is a journal whose database goes away at one of its methods.
type away struct {
	*agentcore.MemoryJournal
	at string
}

func (a *away) fails(at string) error {
	if a.at == at {
		return record.ErrUnavailable
	}
	return nil
}

func (a *away) History(ctx context.Context) ([]record.Message, error) {
	if err := a.fails("history"); err != nil {
		return nil, err
	}
	return a.MemoryJournal.History(ctx)
}

func (a *away) Plan(ctx context.Context, m record.Message, r []record.ToolRun) (record.Message, []record.ToolRun, error) {
	if err := a.fails("plan"); err != nil {
		return m, nil, err
	}
	return a.MemoryJournal.Plan(ctx, m, r)
}

func (a *away) Start(ctx context.Context, r record.ToolRun) error {
	if err := a.fails("start"); err != nil {
		return err
	}
	return a.MemoryJournal.Start(ctx, r)
}

func (a *away) Finish(ctx context.Context, r record.ToolRun, m record.Message) error {
	if err := a.fails("finish"); err != nil {
		return err
	}
	return a.MemoryJournal.Finish(ctx, r, m)
}

func (a *away) End(ctx context.Context, e record.TurnEnd) error {
	if err := a.fails("end"); err != nil {
		return err
	}
	return a.MemoryJournal.End(ctx, e)
}

// Nothing that is not durable is acted upon: the turn is suspended, and goes on
// where it was once the database is back.
func TestJournalErrorsSuspendAndResume(t *testing.T) {
	for _, at := range []string{"history", "plan", "start", "finish", "end"} {
		t.Run(at, func(t *testing.T) {
			ran := 0
			count := makeTool("count", tool.Spec{}, func(context.Context, tool.Call, string) (tool.Result, error) {
				ran++
				return tool.Result{Text: "counted"}, nil
			})
			call := agentcoretest.Call(agentcoretest.Tool("c", "count", "{}"))
			b := newBench(t, with(count), call)
			if at != "history" && at != "plan" {
				b.model.Then(agentcoretest.Say("answer"))
			}
			j := &away{MemoryJournal: b.journal, at: at}
			b.req.Journal = j
			res := b.run(t.Context())
			if res.State != record.TurnSuspended || !strings.Contains(res.Cause, "cannot be reached") {
				t.Fatalf("%s: %s", res.State, res.Cause)
			}
			if at == "start" && ran > 0 {
				t.Error("a tool ran whose start is not committed")
			}
			j.at = ""
			if at == "plan" {
				b.model.Then(call)
			}
			b.model.Then(agentcoretest.Say("answer"))
			res, err := b.agent.Resume(t.Context(), b.req)
			if err != nil || res.State != record.TurnDone || res.Text != "answer" {
				t.Fatalf("%+v %v", res, err)
			}
			if ran > 1 {
				t.Errorf("the tool ran %d times", ran)
			}
		})
	}
}

// cut runs the turn, cancels it with a cause once it hangs, and tells how long it
// took to return.
func cut(t *testing.T, b *bench, cause error, before ...func()) (*agentcore.Result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan *agentcore.Result)
	go func() {
		res, err := b.agent.RunConversation(ctx, b.req)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	synctest.Wait()
	select {
	case res := <-done:
		t.Fatalf("it does not hang: %s %s", res.State, res.Cause)
	default:
	}
	for _, look := range before {
		look()
	}
	begun := time.Now()
	cancel(cause)
	res := <-done
	return res, time.Since(begun)
}

func allText(r llm.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Text() + "\n")
	}
	return b.String()
}
