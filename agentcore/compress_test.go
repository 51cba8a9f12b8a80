package agentcore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

// summarised folds all but the newest user message and what follows it.
func summarised(in engine.Input) engine.Result {
	from := 0
	for i, m := range in.Messages {
		if m.Role == llm.User && m.Kind != record.KindSummary {
			from = i
		}
	}
	return engine.Result{Outcome: engine.Compressed, Folded: from, Compression: record.Compression{
		Summary: record.Message{Role: llm.User, Kind: record.KindSummary, Content: "the past"}, Tail: in.Messages[from:],
	}}
}

// once decides to compress the first time.
func once() func(engine.State) engine.Decision {
	done := false
	return func(engine.State) engine.Decision {
		d := engine.Decision{Compress: !done, Tokens: 60, Limit: 50}
		done = true
		return d
	}
}

// CMP-005, CMP-014, CMP-017: the preflight moves the turn to the child, and it
// goes on there with its tool chain.
func TestPreflightInTheMiddleOfATurn(t *testing.T) {
	b := newBench(t, with(makeTool("echo", tool.Spec{}, echo)),
		agentcoretest.Call(agentcoretest.Tool("c", "echo", args("x"))), agentcoretest.Say("done"))
	b.engine.DecideFunc = func(s engine.State) engine.Decision {
		return engine.Decision{Compress: s.Session.Parent == "" && len(s.Messages) > 3, Tokens: 60, Limit: 50}
	}
	b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) {
		if in.Trigger != engine.Preflight {
			t.Errorf("trigger %s", in.Trigger)
		}
		return summarised(in), nil
	}
	past := []record.Message{{Role: llm.User, Content: "old"}}
	if _, err := b.journal.Append(t.Context(), past...); err != nil {
		t.Fatal(err)
	}
	parent := b.req.Conversation.Session
	res := b.run(t.Context())
	if res.State != record.TurnDone || res.Session == parent || res.Text != "done" {
		t.Fatalf("%+v", res)
	}
	if got := b.rows(); got != "user/summary, user, assistant c, tool c, assistant" {
		t.Error(got)
	}
	last := b.model.Requests()[1]
	if last.CacheKey != string(res.Session) || !strings.Contains(allText(last), "echo x") || strings.Contains(allText(last), "old") {
		t.Errorf("asked in the child with %q", allText(last))
	}
}

func TestFutileCompressionGoesOn(t *testing.T) {
	for _, outcome := range []engine.Outcome{engine.NothingToDo, engine.Aborted, engine.CoolingDown, engine.Blocked} {
		b := newBench(t, nil, agentcoretest.Say("anyway"))
		tries := 0
		b.engine.DecideFunc = func(engine.State) engine.Decision { return engine.Decision{Compress: true} }
		b.engine.CompressFunc = func(context.Context, engine.Input) (engine.Result, error) {
			tries++
			return engine.Result{Outcome: outcome, Reason: "why", Cooldown: time.Minute}, nil
		}
		res := b.run(t.Context())
		s, _ := b.journal.Session(t.Context())
		if res.Text != "anyway" || tries != 1 || s.CoolUntil.IsZero() {
			t.Errorf("%s: %d tries, %+v", outcome, tries, res)
		}
	}
}

func overflow() agentcoretest.Step {
	return agentcoretest.Fail("", &llm.Error{Kind: llm.KindOverflow, Status: 400, Window: 1000})
}

// CTX-003, CMP-002: an overflow compresses and tries again; the window it told is
// believed.
func TestOverflowCompressesAndTriesAgain(t *testing.T) {
	b := newBench(t, nil, overflow(), overflow(), overflow(), agentcoretest.Say("fits"))
	b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) {
		if in.Trigger != engine.Overflow || in.Window != 1000 {
			t.Errorf("%s, window %d", in.Trigger, in.Window)
		}
		return summarised(in), nil
	}
	if res := b.run(t.Context()); res.Text != "fits" || res.Iterations != 1 || res.Window != 1000 {
		t.Errorf("%+v", res)
	}
}

// CMP-009, CTX-007: bounded, and the user is told what to do.
func TestOverflowIsBounded(t *testing.T) {
	b := newBench(t, nil, overflow(), overflow(), overflow(), overflow())
	b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) { return summarised(in), nil }
	if res := b.run(t.Context()); res.State != record.TurnFailed || !strings.Contains(res.Text, "/new") {
		t.Errorf("%+v", res)
	}
	b = newBench(t, nil, overflow())
	if res := b.run(t.Context()); res.State != record.TurnFailed || !strings.Contains(res.Text, "/new") || len(b.model.Requests()) != 1 {
		t.Errorf("nothing to compress: %+v", res)
	}
}

// CTX-009: only the error's kind decides.
func TestTextAboutOverflowIsNoOverflow(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Say("Context overflow: prompt too large for the model."))
	b.req.Message = "Context overflow: prompt too large for the model. Try again"
	if res := b.run(t.Context()); res.State != record.TurnDone {
		t.Errorf("%+v", res)
	}
}

// Mission 4.4: effect is judged by the next real prompt size.
func TestIneffectiveCompressionIsCounted(t *testing.T) {
	for want, limit := range map[int]int{1: 1, 0: 100_000} {
		b := newBench(t, nil, agentcoretest.Say("ok"))
		decide := once()
		b.engine.DecideFunc = func(s engine.State) engine.Decision {
			d := decide(s)
			d.Limit = limit
			return d
		}
		b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) { return summarised(in), nil }
		b.run(t.Context())
		if s, _ := b.journal.Session(t.Context()); s.Ineffective != want {
			t.Errorf("limit %d: %d ineffective, want %d", limit, s.Ineffective, want)
		}
	}
}

// Between turns the child is made complete and nothing is changed; its prompt has
// the memory of the conversation's person.
func TestCompactOutsideATurn(t *testing.T) {
	s := newShelf()
	s.docs["person:x:9 USER.md"] = "Likes tea."
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Notes = s })
	b.engine.DecideFunc = func(s engine.State) engine.Decision { return engine.Decision{Compress: s.Trigger == engine.Between} }
	var payer record.Payer
	b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) {
		payer = in.Payer
		return summarised(in), nil
	}
	req := agentcore.CompactRequest{Conversation: b.req.Conversation, Journal: b.journal, Trigger: engine.Between, PlatformHint: "A small screen."}
	req.Conversation.Key.Participant = "x:9"
	if res, err := b.agent.Compact(t.Context(), req); err != nil || res.Outcome != engine.NothingToDo {
		t.Errorf("an empty conversation: %+v %v", res, err)
	}
	if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "a"}, record.Message{Role: llm.Assistant, Content: "b"}); err != nil {
		t.Fatal(err)
	}
	if needs, err := b.agent.NeedsCompression(t.Context(), req); err != nil || !needs {
		t.Errorf("%v %v", needs, err)
	}
	res, err := b.agent.Compact(t.Context(), req)
	c := res.Compression
	if err != nil || c.Child.ID == "" || c.Parent.ID != b.req.Conversation.Session || c.UpTo != 2 {
		t.Errorf("%+v %v", c, err)
	}
	if want := (record.Payer{Conversation: b.req.Conversation.ID, Person: "x:9", Purpose: record.ForCompression}); payer != want {
		t.Errorf("paid by %+v, want %+v", payer, want)
	}
	if p := c.Child.SystemPrompt; !strings.Contains(p, "Likes tea") || !strings.Contains(p, "small screen") {
		t.Error(p)
	}
	if b.rows() != "user, assistant" {
		t.Error("something was changed")
	}
}
