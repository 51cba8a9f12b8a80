package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/store/record"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	document := func(scope, want string) {
		t.Helper()
		got, err := w.Document(ctx, scope, "USER.md")
		w.check(err)
		if got != want {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
	document("person:fake:ann", "")
	w.check(w.SetDocument(ctx, "person:fake:ann", "USER.md", "first"))
	w.check(w.SetDocument(ctx, "person:fake:ann", "USER.md", "likes tea\x00\xff"))
	document("person:fake:ann", "likes tea\uFFFD\uFFFD")
	document("person:fake:bob", "")

	long := strings.Repeat("k", 3000)
	at := time.Now().Add(-time.Hour)
	for i, key := range []string{"a", "b", "c", long + "1", long + "2"} {
		w.check(w.SetFact(ctx, record.Fact{Scope: "s", Category: "c", Key: key, Value: fmt.Sprint(i), At: at.Add(time.Duration(i) * time.Minute)}))
	}
	w.check(w.SetFact(ctx, record.Fact{Scope: "s", Category: "c", Key: "a", Value: "new"}))
	w.check(w.SetFact(ctx, record.Fact{Scope: "other", Category: "c", Key: "a", Value: "not asked for"}))
	facts, err := w.Facts(ctx, []string{"s", "none"}, 3)
	w.check(err)
	if len(facts) != 3 || facts[0].Value != "new" || facts[1].Value != "4" || facts[2].Value != "3" {
		t.Errorf("facts %+v", facts)
	}
	w.check(w.DeleteFact(ctx, "s", "c", long+"1"))
	w.want(w.DeleteFact(ctx, "s", "c", long+"1"), record.ErrNotFound)
	if facts, err = w.Facts(ctx, []string{"s"}, 10); err != nil || len(facts) != 4 {
		t.Errorf("%d facts, %v", len(facts), err)
	}
}

func TestTodos(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	root := record.SessionID(record.NewID())
	if l, err := w.TodoList(ctx, root); err != nil || l != nil {
		t.Fatalf("%s, %v", l, err)
	}
	w.check(w.SetTodoList(ctx, root, json.RawMessage(`[{"text":"x"}]`)))
	w.check(w.SetTodoList(ctx, root, json.RawMessage(`[{"text":"a\u0000b", "done":true}]`)))
	l, err := w.TodoList(ctx, root)
	w.check(err)
	if string(l) != `[{"text":"a\ufffdb", "done":true}]` {
		t.Errorf("list %s", l)
	}
	if w.SetTodoList(ctx, root, json.RawMessage(`[`)) == nil {
		t.Error("broken JSON was stored")
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	rows := w.append(k, k.session, "the deploy key is under the mat", "we deploy on Fridays", "数据库的密码在信封里", "Пароль лежит в Конверте",
		"percent 100% under_score back\\slash", "tail")
	_, err := w.AppendMessages(ctx, k.fence, k.session, []record.Message{{Role: llm.ToolRole, Content: "deploy log of the tool"}})
	w.check(err)
	w.effect(k, record.SetTitle{Title: "work"})
	w.compress(k, k.session, len(rows)-1) // copies must not be found beside their originals
	bob := said("b", "x")
	bob.From.ID, bob.Key = "fake:bob", "b"
	foreign := w.receive(bob)
	_, err = w.AppendMessages(ctx, foreign.Fence, foreign.Conversation.Session, []record.Message{userRow("bob's deploy key")})
	w.check(err)

	for _, c := range []struct {
		query string
		want  []string // in order
	}{
		{"deploy key", []string{rows[0].Content, "deploy log of the tool", rows[1].Content}},
		{"DEPLOY   fridays", []string{rows[1].Content, "deploy log of the tool", rows[0].Content}},
		{"密码", []string{rows[2].Content}},
		{"数据库 信封", []string{rows[2].Content}},
		{"конверт", []string{rows[3].Content}},
		{"пароль", []string{rows[3].Content}},
		{"100%", []string{rows[4].Content}},
		{"r_s", []string{rows[4].Content}},
		{`k\s`, []string{rows[4].Content}},
		{"p%t", nil},
		{"u_d", nil},
		{"summary", nil},
		{"nowhere", nil},
		{" \x00 ", nil},
		{"", nil},
	} {
		hits, err := w.Search(ctx, k.fence.Conversation, c.query, 10)
		w.check(err)
		var got []string
		for _, h := range hits {
			got = append(got, h.Content)
			if h.SessionTitle != "work" || h.Session != k.session {
				t.Errorf("hit %+v", h)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q found %q, want %q", c.query, got, c.want)
		}
	}
	if hits, err := w.Search(ctx, k.fence.Conversation, "deploy", 2); err != nil || len(hits) != 2 {
		t.Errorf("limited to two: %d, %v", len(hits), err)
	}
}
