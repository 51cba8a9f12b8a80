package agentcore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// shelf keeps notes, facts and task lists in memory.
type shelf struct {
	docs  map[string]string
	facts map[string]record.Fact
	todos map[record.SessionID]json.RawMessage
}

func newShelf() *shelf {
	return &shelf{docs: map[string]string{}, facts: map[string]record.Fact{}, todos: map[record.SessionID]json.RawMessage{}}
}

func (s *shelf) Document(_ context.Context, scope, name string) (string, error) {
	return s.docs[scope+" "+name], nil
}

func (s *shelf) SetDocument(_ context.Context, scope, name, content string) error {
	s.docs[scope+" "+name] = content
	return nil
}

func (s *shelf) Facts(_ context.Context, scopes []string, _ int) (facts []record.Fact, _ error) {
	for _, f := range s.facts {
		for _, scope := range scopes {
			if f.Scope == scope {
				facts = append(facts, f)
			}
		}
	}
	return facts, nil
}

func (s *shelf) SetFact(_ context.Context, f record.Fact) error {
	s.facts[f.Scope+" "+f.Category+" "+f.Key] = f
	return nil
}

func (s *shelf) DeleteFact(_ context.Context, scope, category, key string) error {
	k := scope + " " + category + " " + key
	if _, ok := s.facts[k]; !ok {
		return record.ErrNotFound
	}
	delete(s.facts, k)
	return nil
}

func (s *shelf) TodoList(_ context.Context, root record.SessionID) (json.RawMessage, error) {
	return s.todos[root], nil
}

func (s *shelf) SetTodoList(_ context.Context, root record.SessionID, items json.RawMessage) error {
	s.todos[root] = items
	return nil
}

// past is a searcher over fixed rows of sessions.
type past struct {
	sessions map[record.SessionID][]record.Message
	asked    []record.ConversationID
	root     record.SessionID // of all of them
}

func (p *past) Search(_ context.Context, c record.ConversationID, query string, _ int) (hits []record.SearchHit, _ error) {
	p.asked = append(p.asked, c)
	for id, rows := range p.sessions {
		for _, r := range rows {
			if strings.Contains(r.Content, query) {
				r.Session = id
				hits = append(hits, record.SearchHit{Message: r, Root: p.root})
			}
		}
	}
	return hits, nil
}

func (p *past) Sessions(context.Context, record.ConversationID, int) (list []record.SessionSummary, _ error) {
	for id, rows := range p.sessions {
		list = append(list, record.SessionSummary{Session: record.Session{ID: id}, Messages: len(rows), Opening: "about pears"})
	}
	return list, nil
}

func (p *past) SessionIn(_ context.Context, _ record.ConversationID, s record.SessionID) ([]record.Message, error) {
	rows, ok := p.sessions[s]
	if !ok {
		return nil, record.ErrNotFound
	}
	return rows, nil
}

// use runs calls of one tool in a turn each, and returns their results.
func use(t *testing.T, b *bench, name string, inputs ...string) []string {
	t.Helper()
	var out []string
	for i, in := range inputs {
		id := fmt.Sprintf("%s_%s%d", b.req.Turn.ID, name, i)
		b.journal.Begin()
		b.req.Message, b.req.Turn.ID = "go", record.TurnID(id)
		b.model.Then(agentcoretest.Call(agentcoretest.Tool(id, name, in)), agentcoretest.Say("ok"))
		b.run(t.Context())
		out = append(out, b.results()[id])
	}
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("call %d: %q, want %q", i, got[i], w)
		}
	}
}

func TestMemoryTool(t *testing.T) {
	s := newShelf()
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Notes = s })
	room := "conversation:" + string(b.req.Conversation.ID)
	got := use(t, b, "memory",
		`{"action":"add","content":"The server is called Ada."}`,
		`{"action":"add","content":"The server is called Ada."}`,
		`{"action":"add","target":"user","content":"Prefers short answers."}`,
		`{"action":"add","content":"Backups run at night."}`,
		`{"action":"replace","old_text":"Ada","content":"The server is called Eve."}`,
		`{"action":"remove","old_text":"nothing like it"}`,
		`{"action":"remove","old_text":"r"}`,
		`{"action":"add","content":"`+strings.Repeat("x", 2200)+`"}`,
		`{"action":"remove","old_text":"Backups"}`,
		`{"action":"set_fact","target":"user","category":"contact","key":"birthday","value":"1 May"}`,
		`{"action":"forget_fact","category":"contact","key":"birthday"}`,
		`{"action":"set_fact","category":"a"}`,
	)
	expect(t, got, "Saved. MEMORY.md uses 25 of 2200", "Saved", "USER.md uses 22 of 1375", "Saved", "Saved", "No entry contains", "Several entries",
		"the limit is 2200", "Saved", "Saved", "no such fact", "needs category")
	if doc := s.docs[room+" MEMORY.md"]; doc != "The server is called Eve." {
		t.Errorf("%q", doc)
	}
	if s.docs["person:x:1 USER.md"] != "Prefers short answers." || len(s.facts) != 1 {
		t.Errorf("%v %v", s.docs, s.facts)
	}
	// A new session has it in its prompt; mission 4.7.
	fresh := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Notes = s }, agentcoretest.Say("hi"))
	fresh.req.Conversation.ID = b.req.Conversation.ID
	fresh.run(t.Context())
	if p := fresh.model.Requests()[0].System; !strings.Contains(p, "called Eve") || !strings.Contains(p, "short answers") || !strings.Contains(p, "1 May") {
		t.Error(p)
	}
}

// Nothing about a person is written or shown in a shared room.
func TestMemoryOfAPersonStaysPrivate(t *testing.T) {
	s := newShelf()
	s.docs["person:x:1 USER.md"] = "Is secretly a spy."
	s.facts["f"] = record.Fact{Scope: "person:x:1", Category: "a", Key: "b", Value: "spy"}
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Notes = s })
	b.req.Kind = chat.Group
	got := use(t, b, "memory", `{"action":"add","target":"user","content":"x"}`, `{"action":"set_fact","target":"user","category":"a","key":"b","value":"c"}`,
		`{"action":"add","content":"The room likes tea."}`)
	expect(t, got, "only in that person's own", "only in that person's own", "Saved")
	if p := b.model.Requests()[0].System; strings.Contains(p, "spy") {
		t.Error("a person's memory is in a room's prompt")
	}
}

func TestTodoTool(t *testing.T) {
	s := newShelf()
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Todos = s })
	got := use(t, b, "todo", `{}`,
		`{"items":[{"id":"1","content":"plan","status":"in_progress"},{"id":"2","content":"build","status":"pending"}]}`,
		`{"items":[{"id":"1","status":"completed"},{"id":"3","content":"test","status":"pending"}],"merge":true}`,
		`{"items":[{"id":"9","status":"pending"}],"merge":true}`,
		`{"items":[{"id":"1","content":"x","status":"later"}]}`,
		`{}`)
	expect(t, got, "empty", "[>] 1: plan", "[x] 1: plan\n[ ] 2: build\n[ ] 3: test\n1 of 3", "Nothing was changed", "must be one of", "1 of 3 are done")
}

// The four shapes: what was found, a window to scroll, a session, the list.
func TestSessionSearchTool(t *testing.T) {
	p := &past{sessions: map[record.SessionID][]record.Message{"old": {
		{Seq: 1, Role: llm.User, Content: "I like pears"}, {Seq: 2, Role: llm.ToolRole, Content: "noise"}, {Seq: 3, Role: llm.Assistant, Content: "Noted."},
	}, "long": nil}}
	for i := range 60 {
		p.sessions["long"] = append(p.sessions["long"], record.Message{Seq: int64(i + 1), Role: llm.User, Content: fmt.Sprintf("line %d", i+1)})
	}
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Searcher = p })
	got := use(t, b, "session_search", `{"query":"pears"}`, `{"query":"plums"}`, `{"session":"old"}`, `{"session":"of somebody else"}`, `{}`,
		`{"session":"long"}`, `{"session":"long","around":30}`, `{"query":"line 33"}`, `{"query":"line"}`)
	expect(t, got, "session old, message 1, user", "Nothing was found", "3 assistant", "no session", `old: "about pears", 3 messages`,
		"(30 messages between; read on with around: 11)", "(14 messages before)\n15 user", "begins: 1 user (0001-01-01 00:00): line 1\n  28 user")
	if strings.Contains(got[2], "noise") || p.asked[0] != b.req.Conversation.ID {
		t.Errorf("%q, asked in %v", got[2], p.asked)
	}
	for i, n := range map[int]int{5: 31, 6: 33, 7: 14, 8: 15} {
		if lines := strings.Count(got[i], "\n"); lines != n {
			t.Errorf("call %d has %d lines: %s", i, lines, got[i])
		}
	}
}

// What is in view is not found, and a line of sessions is one hit.
func TestSessionSearchLeavesOutWhatIsInView(t *testing.T) {
	p := &past{sessions: map[record.SessionID][]record.Message{}, root: "root"}
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) { d.Searcher = p })
	kept := record.Message{Role: llm.User, Content: "apples, a copy", OriginSession: "parent", OriginSeq: 7}
	rows, err := b.journal.Append(t.Context(), kept, record.Message{Role: llm.User, Content: "apples, here"})
	if err != nil {
		t.Fatal(err)
	}
	p.sessions[rows[1].Session] = rows[1:]
	p.sessions["parent"] = []record.Message{{Seq: 7, Role: llm.User, Content: "apples, folded and kept"}, {Seq: 9, Role: llm.User, Content: "apples, folded away"}, {Seq: 11, Role: llm.User, Content: "apples again"}}
	got := use(t, b, "session_search", `{"query":"apples"}`)[0]
	if !strings.Contains(got, "session parent, message 9") || strings.Count(got, "session ") != 1 {
		t.Errorf("found %q", got)
	}
}

func TestCurrentTimeTool(t *testing.T) { // TRN-003
	b := newBench(t, func(_ *agentcore.Config, d *agentcore.Deps) {
		d.Now = func() time.Time { return time.Date(2025, 6, 2, 23, 30, 0, 0, time.UTC) }
	})
	got := use(t, b, "current_time", `{}`, `{"zone":"Asia/Tokyo"}`, `{"zone":"Mars/Olympus"}`)
	expect(t, got, "Monday, 2 June 2025, 23:30:00 +00:00", "Tuesday, 3 June 2025, 08:30:00 +09:00", "no zone")
}

// The prompt holds nothing that changes from turn to turn, and what is private to
// rooms is marked there (PRV-006).
func TestSharedRoom(t *testing.T) {
	b := newBench(t, nil, agentcoretest.Say("hi"))
	b.req.Kind, b.req.Message = chat.Group, ""
	if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "hello", From: "x:2", FromName: "Bo"},
		record.Message{Role: llm.User, Content: "me too", From: "x:3", FromName: "Cy"}); err != nil {
		t.Fatal(err)
	}
	b.run(t.Context())
	r := b.model.Requests()[0]
	if m := r.Messages; len(m) != 1 || m[0].Parts[0].Text != "[Bo <x:2>] hello" || m[0].Parts[1].Text != "[Cy <x:3>] me too" {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(r.System, "Several people") {
		t.Error("the prompt does not say that the room is shared")
	}
}
