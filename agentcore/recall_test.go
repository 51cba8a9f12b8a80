package agentcore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/prompt"
	"parley/gateway/chat"
	"parley/store/record"
)

// recaller brings back fixed rows and records what it was asked and told.
type recaller struct {
	sources memory.Sources
	err     error
	asked   []record.RecallQuery
	saved   []record.SessionID
}

func (r *recaller) Recall(_ context.Context, q record.RecallQuery, _ chat.Person) (memory.Sources, error) {
	r.asked = append(r.asked, q)
	return r.sources, r.err
}

func (r *recaller) Saved(_ record.Payer, s record.SessionID) { r.saved = append(r.saved, s) }

// recalling is a bench whose first turn is compressed before it calls the model.
func recalling(t *testing.T, r *recaller, steps ...agentcoretest.Step) *bench {
	t.Helper()
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Recall = r }, steps...)
	b.engine.DecideFunc = once()
	b.engine.CompressFunc = func(_ context.Context, in engine.Input) (engine.Result, error) { return summarised(in), nil }
	for range 3 {
		if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "old"}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// Mission 4.8: what left the window reaches the model beside the newest message,
// what the turn's own preflight folded included, and is replayed byte for byte.
func TestRecall(t *testing.T) {
	r := &recaller{sources: memory.Sources{Salient: []record.Message{{Session: "parent", Seq: 1, Role: llm.User, Content: "my cat is called Minka, the password: hunter2hunter2"}}}}
	b := recalling(t, r, agentcoretest.Say("Minka"))
	parent := b.req.Conversation.Session
	b.req.Message = "what is my cat called?"
	res := b.run(t.Context())
	first := b.model.Requests()[0].Messages[0].Parts[1].Text
	if !strings.HasPrefix(first, "[") || !strings.Contains(first, "what is my cat called?\n\n[Recalled") || !strings.Contains(first, "called Minka") || strings.Contains(first, "hunter2") {
		t.Errorf("%q", first)
	}
	if len(r.asked) != 1 || r.asked[0].Text != "what is my cat called?" || r.asked[0].Session != res.Session || res.Session == parent || r.asked[0].Before != 4 {
		t.Errorf("asked %+v", r.asked)
	}
	if len(r.saved) != 1 || r.saved[0] != res.Session {
		t.Errorf("told of %v", r.saved)
	}
	b.next("thanks")
	again := b.model.Requests()[1].Messages
	if again[0].Parts[1].Text != first {
		t.Errorf("replayed as %q", again[0].Parts[1].Text)
	}
	if got := again[len(again)-1].Text(); strings.Contains(got, "Recalled") {
		t.Errorf("recalled a second time: %q", got)
	}
	rows, err := b.journal.History(t.Context())
	if err != nil || rows[1].Content != "what is my cat called?" {
		t.Errorf("the row itself says %q, %v", rows[1].Content, err)
	}
}

// Without a recall the turn goes on: a session that has lost nothing asks for none.
func TestTurnWithoutRecall(t *testing.T) {
	r := &recaller{err: errors.New("no database")}
	b := recalling(t, r, agentcoretest.Say("Minka"))
	if res := b.run(t.Context()); res.State != record.TurnDone || len(r.asked) != 1 {
		t.Errorf("%s, asked %d times", res.State, len(r.asked))
	}
	r = &recaller{}
	b = newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Recall = r }, agentcoretest.Say("hi"))
	if b.run(t.Context()); len(r.asked) != 0 {
		t.Error("asked for a session that has no parent")
	}
}

// A message that joins before the first tool is looked up too; the one before it
// keeps its bytes.
func TestRecallForAMessageThatJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		minka := record.Message{Session: "parent", Seq: 1, Role: llm.User, Content: "my cat is called Minka"}
		r := &recaller{sources: memory.Sources{Relevant: []record.Message{minka}}}
		b := recalling(t, r, agentcoretest.Hang("half an"), agentcoretest.Say("both"))
		restart := new(agentcore.Restart)
		b.req.Restart = restart
		done := make(chan *agentcore.Result)
		go func() { done <- b.run(t.Context()) }()
		synctest.Wait()
		if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "and the dog?"}); err != nil {
			t.Fatal(err)
		}
		dog := record.Message{Session: "parent", Seq: 2, Role: llm.User, Content: "my dog is called Rex"}
		r.sources.Relevant = append(r.sources.Relevant, dog)
		restart.Raise()
		<-done
		first, second := b.model.Requests()[0].Messages[0].Parts, b.model.Requests()[1].Messages[0].Parts
		if len(second) != 3 || second[1].Text != first[1].Text || r.asked[1].Text != "and the dog?" {
			t.Fatalf("%+v, asked %+v", second, r.asked)
		}
		if joined := second[2].Text; !strings.Contains(joined, "called Rex") || strings.Contains(joined, "Minka") {
			t.Errorf("%q", joined)
		}
	})
}

// The bodies of skills stand beside the message that calls for them, once in a
// window, and never in the system prompt.
func TestSkills(t *testing.T) {
	skills := []prompt.Skill{{Name: "bake", Description: "cakes", Triggers: []string{"cake"}, Body: "Heat the oven.", Folder: "/skills/bake"}, {Name: "zip", Body: "Pack."}}
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Skills = skills }, agentcoretest.Say("yes"))
	b.req.Message = "make me a cake"
	b.run(t.Context())
	b.next("another cake")
	b.next("/skill zip it")
	last := b.model.Requests()[2]
	want := []string{"make me a cake\n\n[Skill \"bake\"", "another cake", "/skill zip it\n\n[Skill \"zip\""}
	for i, m := range []llm.Message{last.Messages[0], last.Messages[2], last.Messages[4]} {
		if text := m.Text(); !strings.Contains(text, want[i]) || strings.Contains(text, "[Skill") != strings.Contains(want[i], "[Skill") {
			t.Errorf("%q", text)
		}
	}
	if !strings.Contains(last.System, `"bake": "cakes"`) || strings.Contains(last.System, "Heat the oven") {
		t.Error(last.System)
	}
	if got := b.agent.Skills(); len(got) != 2 {
		t.Error(got)
	}
	b = newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Skills = skills })
	expect(t, use(t, b, "skill", `{"name":"Bake"}`, `{"name":"fly"}`), "Heat the oven.", "There are: bake, zip")

	// The words of an outsider call for nothing.
	b = newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Skills = skills }, agentcoretest.Say("yes"))
	b.req.Message, b.req.Turn.Trust = "/skill bake a cake", record.TrustUntrusted
	b.run(t.Context())
	if text := b.model.Requests()[0].Messages[0].Text(); strings.Contains(text, "[Skill") {
		t.Error(text)
	}
}

// ACC-005: what is known about a person is in the prompt of their own direct
// conversation only; a room has its own notes.
func TestMemoryInThePrompt(t *testing.T) {
	notes := newShelf()
	notes.docs = map[string]string{
		"person:x:1 USER.md": "canary-user", "person:x:2 USER.md": "canary-other", "conversation:c MEMORY.md": "room notes", "conversation:d MEMORY.md": "canary-notes",
	}
	notes.facts = map[string]record.Fact{
		"1": {Scope: "person:x:1", Category: "a", Key: "b", Value: "canary-fact"}, "2": {Scope: "conversation:c", Category: "a", Key: "b", Value: "room fact"},
	}
	prompt := func(kind chat.Kind, person chat.Person) string {
		b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Notes = notes }, agentcoretest.Say("hi"))
		b.journal = agentcore.NewMemoryJournal(record.Conversation{ID: "c", Kind: kind})
		b.req.Conversation, b.req.Journal, b.req.Turn.Person = b.journal.Conversation(), b.journal, person
		b.run(t.Context())
		return b.model.Requests()[0].System
	}
	own := prompt(chat.Direct, "x:1")
	for _, want := range []string{"canary-user", "canary-fact", "room notes", "room fact"} {
		if !strings.Contains(own, want) {
			t.Errorf("%s is missing in the person's own conversation", want)
		}
	}
	for who, text := range map[string]string{"a room": prompt(chat.Group, "x:1"), "somebody else": prompt(chat.Direct, "x:3")} {
		if strings.Contains(text, "canary") || !strings.Contains(text, "room notes") {
			t.Errorf("%s reads %s", who, text)
		}
	}
}
