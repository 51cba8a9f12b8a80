package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

// world is a database with one replica that works on it, and a raw connection
// that looks at it from outside.
type world struct {
	*store.DB
	t       testing.TB
	url     string
	replica record.ReplicaID
	raw     *pgx.Conn
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, url: storetest.URL(t)}
	w.DB = storetest.Open(t, w.url)
	w.raw = w.connect()
	w.replica = w.register(w.DB)
	return w
}

// other is a second process on the same database.
func (w *world) other() *world {
	w.t.Helper()
	o := &world{t: w.t, url: w.url, raw: w.raw, DB: storetest.Open(w.t, w.url)}
	o.replica = o.register(o.DB)
	return o
}

func (w *world) connect() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (w *world) register(db *store.DB) record.ReplicaID {
	w.t.Helper()
	r, err := db.Register(context.Background(), "test", func(err error) { w.t.Errorf("lost: %v", err) })
	w.check(err)
	return r
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// want fails unless err matches.
func (w *world) want(err, target error) {
	w.t.Helper()
	if !errors.Is(err, target) {
		w.t.Fatalf("got error %v, want %v", err, target)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.raw.Exec(w.t.Context(), sql, args...)
	w.check(err)
}

func query[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	var v T
	w.check(w.raw.QueryRow(w.t.Context(), sql, args...).Scan(&v))
	return v
}

// die frees the replica's lock at once, as the end of its process does, and keeps
// the database handle from taking it again.
func (w *world) die() {
	w.t.Helper()
	w.Close()
	w.eventually("the replica's death", func() bool { return !query[bool](w, `SELECT replica_alive($1)`, w.replica) })
}

// eventually waits for a condition that another goroutine or process brings about.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			w.t.Fatalf("%s did not happen", what)
		}
	}
}

const ann chat.Person = "fake:ann"

// said is a direct message of ann.
func said(id, text string) chat.MessageReceived {
	return chat.MessageReceived{
		Origin: chat.Origin{
			Key:     chat.EventKey("message/ann/" + id),
			Address: chat.Address{Account: "fake/main", Chat: "ann"},
			Kind:    chat.Direct,
			From:    chat.User{ID: ann, Name: "Ann"},
			Message: chat.MessageID(id),
		},
		Text: text, ForBot: true,
	}
}

func accept(record.AccessFacts) record.Verdict { return record.Verdict{State: record.InboxReceived} }

func (w *world) request(ev chat.Event) record.ReceiveRequest {
	return record.ReceiveRequest{Replica: w.replica, Event: ev, Scope: chat.ScopeThread, Model: "fake/model", PairingCode: "ABCD2345"}
}

func (w *world) receive(ev chat.Event) record.Receipt {
	w.t.Helper()
	rc, err := w.Receive(w.t.Context(), w.request(ev), accept)
	w.check(err)
	return rc
}

// talk is a conversation with one received message.
type talk struct {
	record.Receipt
	fence   record.Fence
	session record.SessionID
}

func (w *world) talk() talk {
	w.t.Helper()
	rc := w.receive(said("1", "hello"))
	return talk{Receipt: rc, fence: rc.Fence, session: rc.Conversation.Session}
}

func userRow(text string) record.Message {
	return record.Message{Role: llm.User, Content: text, From: ann}
}

// turn starts a turn for the conversation's received rows.
func (w *world) turn(k talk, items ...record.InboxItem) record.Turn {
	w.t.Helper()
	if len(items) == 0 {
		items = []record.InboxItem{k.Item}
	}
	begun, err := w.StartTurn(w.t.Context(), k.fence, record.TurnStart{
		Turn: record.Turn{
			Session: k.session, Person: ann, Trust: record.TrustUser, Budget: record.Budget{Initial: 10, Step: 10, Cap: 25},
			Address: k.Conversation.Key.Address, Source: "1",
		},
		Items: items, Messages: []record.Message{userRow("hello")},
	})
	w.check(err)
	return begun.Turn
}

func (w *world) work(f record.Fence) record.Work {
	w.t.Helper()
	work, err := w.Work(w.t.Context(), f)
	w.check(err)
	return work
}

func (w *world) history(s record.SessionID) []record.Message {
	w.t.Helper()
	msgs, err := w.History(w.t.Context(), s)
	w.check(err)
	return msgs
}

func contents(msgs []record.Message) []string {
	out := make([]string, len(msgs))
	for i, m := range msgs {
		out[i] = m.Content
	}
	return out
}
