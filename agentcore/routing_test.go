package agentcore_test

import (
	"strings"
	"testing"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/store/record"
)

// routed is the model that a message is answered by.
func routed(t *testing.T, message string, change func(*bench)) llm.ModelID {
	t.Helper()
	b := newBench(t, func(c *agentcore.Config, d *agentcore.Deps) {
		c.Routing = agentcore.RoutingConfig{Fast: "test/fast", Smart: "test/smart"}
		d.Facts = func(m llm.ModelID) llm.Facts {
			if m == "test/fast" {
				return llm.Facts{ContextWindow: 1000}
			}
			return llm.Facts{ContextWindow: 100_000}
		}
	}, agentcoretest.Say("hi"))
	b.req.Message = message
	if change != nil {
		change(b)
	}
	b.run(t.Context())
	return b.model.Requests()[0].Model
}

// Mission 4.6: the rules, first match first.
func TestRouting(t *testing.T) {
	for model, messages := range map[llm.ModelID][]string{
		"test/smart": {
			"ok ```x```", strings.Repeat("long ", 120), "Why? How? When?", "please IMPLEMENT it", "refactor it", "debug this for me", "analyze the data", "write code for it",
			"design", "rewrite", "walk me through it", "what is an algorithm",
		},
		"test/fast": {
			"hi", "Hello", "thanks", "ok", "yes", "no", "  hey  ", "test", "status", "Good Morning", "what is rust", "who is linus torvalds", "define recursion", "what's up with the weather?",
		},
		"test/model": {
			"how are you", "what time", "capital Ecuador", "what is the meaning of this long sentence", "I went to the market yesterday and bought some apples", "hi there",
			"could you tell my sister that we come on Sunday?",
		},
	} {
		for _, m := range messages {
			if got := routed(t, m, nil); got != model {
				t.Errorf("%.40q goes to %s, want %s", m, got, model)
			}
		}
	}
}

// The conversation's own choice stands above the tiers, and only a person's words
// are judged.
func TestWhatIsNotRouted(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"/model":     func(b *bench) { b.req.Conversation.Model = "test/chosen" },
		"a trigger":  func(b *bench) { b.req.Turn.Trust = record.TrustUntrusted },
		"a schedule": func(b *bench) { b.req.Turn.Trust = record.TrustSchedule },
		"a subagent": func(b *bench) {
			s, err := b.journal.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.Reason = record.ReasonDelegation
			if err := b.journal.SetSession(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		},
		"a long conversation": func(b *bench) {
			b.engine.DecideFunc = func(s engine.State) engine.Decision { return engine.Decision{Compress: s.Window == 1000} }
		},
	} {
		want := llm.ModelID("test/model")
		if name == "/model" {
			want = "test/chosen"
		}
		if got := routed(t, "hi", change); got != want {
			t.Errorf("%s goes to %s", name, got)
		}
	}
	// Off by default, and a tier without a model is the primary one.
	b := newBench(t, func(c *agentcore.Config, _ *agentcore.Deps) { c.Routing.Smart = "test/smart" }, agentcoretest.Say("a"))
	b.req.Message = "hi"
	b.run(t.Context())
	b.next("refactor it")
	if r := b.model.Requests(); r[0].Model != "test/model" || r[1].Model != "test/smart" {
		t.Errorf("%s, %s", r[0].Model, r[1].Model)
	}
}

// A resumed turn keeps its model.
func TestResumedTurnKeepsItsTier(t *testing.T) {
	got := routed(t, "", func(b *bench) {
		rows := []record.Message{{Role: llm.User, Content: "refactor everything", Turn: "earlier"}, {Role: llm.Assistant, Content: "done"}, {Role: llm.User, Content: "hi", Turn: "turn-1"}}
		if _, err := b.journal.Append(t.Context(), rows...); err != nil {
			t.Fatal(err)
		}
	})
	if got != "test/fast" {
		t.Error(got)
	}
}
