package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
	"parley/store/storetest"
)

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// listening collects what a replica is woken for; it returns once it listens.
func (w *world) listening() <-chan record.ConversationID {
	w.t.Helper()
	woken := make(chan record.ConversationID, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Listen(ctx, w.replica, func(id record.ConversationID) { woken <- id }); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	w.wake(woken, "")
	return woken
}

func (w *world) wake(woken <-chan record.ConversationID, want record.ConversationID) {
	w.t.Helper()
	select {
	case got := <-woken:
		if got != want {
			w.t.Fatalf("woken for %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		w.t.Fatalf("not woken for %q", want)
	}
}

// PGS-013: a replica lives as long as it holds its lock and beats; the length of its
// turns does not matter.
func TestAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alive := func() bool { return query[bool](w, `SELECT replica_alive($1)`, w.replica) }
	if !alive() {
		t.Fatal("a registered replica is not alive")
	}
	first := query[time.Time](w, `SELECT heartbeat_at FROM replicas`)
	w.eventually("a heartbeat", func() bool { return query[time.Time](w, `SELECT max(heartbeat_at) FROM replicas`).After(first) })
	k := w.talk()
	w.turn(k)
	w.exec(`UPDATE turns SET started_at = now() - interval '3 days'`)
	fences, err := w.other().ClaimOrphans(t.Context(), w.replica, 10)
	w.check(err)
	if len(fences) != 0 {
		t.Error("the conversation of a living replica was claimed")
	}
	w.die()
}

// A replica whose heartbeat is old is dead although its connection stands.
func TestCutOffReplicaIsDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn := w.connect()
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(42)`); err != nil {
		t.Fatal(err)
	}
	alive := func(age string) bool {
		return query[bool](w, `WITH r AS (INSERT INTO replicas (id, host, lock_key, heartbeat_at) VALUES ($1, 'x', 42, now() - $2::interval)
			ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at RETURNING id) SELECT true FROM r`, cutOff, age) &&
			query[bool](w, `SELECT replica_alive($1)`, cutOff)
	}
	if !alive("14 seconds") {
		t.Error("dead too early")
	}
	if alive("16 seconds") {
		t.Error("alive without a heartbeat for 16 seconds")
	}
}

const cutOff = "00000000-0000-7000-8000-000000000001"

// A replica whose connection breaks takes its lock again at once.
func TestReplicaReconnects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	w.eventually("a new lock", func() bool { return query[bool](w, `SELECT replica_alive($1)`, w.replica) })
}

// A replica that cannot take its lock again is told so, once.
func TestReplicaIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := storetest.Open(t, w.url)
	lost := make(chan error, 10)
	r, err := db.Register(t.Context(), "test", func(err error) { lost <- err })
	w.check(err)
	key := query[int64](w, `SELECT lock_key FROM replicas WHERE id = $1`, r)
	thief := w.connect()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := thief.Exec(context.Background(), `SELECT pg_advisory_lock($1)`, key); err != nil {
			t.Error(err)
		}
	})
	w.eventually("the thief in the queue", func() bool {
		return query[bool](w, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`)
	})
	w.exec(`SELECT pg_terminate_backend(h.pid) FROM pg_locks h JOIN pg_locks q ON (h.classid, h.objid, h.database) = (q.classid, q.objid, q.database)
		WHERE h.granted AND NOT q.granted AND h.locktype = 'advisory' AND h.database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	wg.Wait()
	select {
	case err := <-lost:
		if err == nil {
			t.Error("lost without an error")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the replica does not know that it is lost")
	}
	db.Close()
	if len(lost) != 0 {
		t.Error("lost was called twice")
	}
}

// A replica that ends leaves no row; one that died leaves it to the next.
func TestReplicaRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := w.Register(ctx, "short", func(error) {})
	w.check(err)
	cancel()
	w.eventually("the row's end", func() bool { return query[int](w, `SELECT count(*) FROM replicas WHERE id = $1`, r) == 0 })
	w.exec(`INSERT INTO replicas (id, host, lock_key) VALUES ($1, 'dead', 1)`, cutOff)
	w.other()
	if n := query[int](w, `SELECT count(*) FROM replicas`); n != 2 {
		t.Errorf("%d rows, want those of the two living", n)
	}
}

// conversations makes n conversations with a received message each.
func (w *world) conversations(n int) []record.Fence {
	w.t.Helper()
	var fences []record.Fence
	for i := range n {
		ev := said(fmt.Sprint(i), "x")
		ev.Key, ev.From.ID = chat.EventKey(fmt.Sprintf("message/%d", i)), chat.Person(fmt.Sprintf("fake:%d", i))
		fences = append(fences, w.receive(ev).Fence)
	}
	return fences
}

// Two replicas share the conversations of a dead one: none is lost, none has two
// owners, and the dead one's late writes fail.
func TestOrphansAreSharedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.conversations(20)
	a, b := w.other(), w.other()
	if f, err := a.ClaimOrphans(t.Context(), a.replica, 100); err != nil || len(f) != 0 {
		t.Fatalf("claimed from the living: %v, %v", f, err)
	}
	w.die()
	var mu sync.Mutex
	got := map[record.ConversationID]record.Fence{}
	var wg sync.WaitGroup
	for _, r := range []*world{a, b, a, b} {
		wg.Go(func() {
			for {
				fences, err := r.ClaimOrphans(t.Context(), r.replica, 3)
				if err != nil {
					t.Error(err)
				}
				if len(fences) == 0 {
					return
				}
				mu.Lock()
				for _, f := range fences {
					if _, twice := got[f.Conversation]; twice {
						t.Errorf("%s was claimed twice", f.Conversation)
					}
					if f.Replica != r.replica {
						t.Errorf("a fence of another replica: %+v", f)
					}
					got[f.Conversation] = f
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A claim skips rows that the other is claiming; one more round gets the rest.
	rest, err := a.ClaimOrphans(t.Context(), a.replica, 100)
	w.check(err)
	if len(got)+len(rest) != len(all) {
		t.Errorf("%d of %d were claimed", len(got)+len(rest), len(all))
	}
	for _, f := range all {
		if g, ok := got[f.Conversation]; ok && g.Epoch != f.Epoch+1 {
			t.Errorf("epoch %d after %d", g.Epoch, f.Epoch)
		}
		_, err := a.AppendMessages(t.Context(), f, "", []record.Message{userRow("late")})
		w.want(err, record.ErrFenced)
	}
}

// A crash counts against the turn that ran, not against one that was suspended.
func TestOrphanedTurnCountsCrashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	turn := w.turn(k)
	o := w.other()
	w.die()
	fences, err := o.ClaimOrphans(t.Context(), o.replica, 1)
	w.check(err)
	if len(fences) != 1 || o.work(fences[0]).Turn.Crashes != 1 {
		t.Fatalf("fences %v", fences)
	}
	w.check(o.SuspendTurn(t.Context(), fences[0], turn.ID, "shutdown", false))
	if got := o.work(fences[0]).Turn; got.State != record.TurnSuspended || got.Cause != "shutdown" {
		t.Errorf("turn %+v", got)
	}
	if ok, err := o.Release(t.Context(), fences[0], true); err != nil || !ok {
		t.Fatalf("released %v, %v", ok, err)
	}
	third := o.other()
	fences, err = third.ClaimOrphans(t.Context(), third.replica, 1)
	w.check(err)
	if len(fences) != 1 || third.work(fences[0]).Turn.Crashes != 1 {
		t.Errorf("a suspended turn counted a crash: %v", fences)
	}
	w.check(third.SuspendTurn(t.Context(), fences[0], turn.ID, "refused", true))
	if n := third.work(fences[0]).Turn.Crashes; n != 2 {
		t.Errorf("%d crashes after a turn broke off by its own fault, want 2", n)
	}
}

// Each kind of open work makes an orphan, and holds off a release.
func TestOpenWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	turn := w.turn(k)
	approval := record.Approval{Turn: turn.ID, CallID: "c", Kind: record.AskApproval, Question: "may I?", Asked: ann, ExpiresAt: time.Now().Add(time.Hour)}
	card := record.Delivery{Kind: record.DeliverCard, Key: "card", Address: turn.Address, State: record.DeliverySent}
	_, _, err := w.OpenApproval(t.Context(), k.fence, approval, card)
	w.check(err)
	reset := func() {
		w.exec(`UPDATE inbox SET state = 'done', turn_id = NULL`)
		w.exec(`UPDATE turns SET state = 'done', ended_at = now()`)
		w.exec(`UPDATE approvals SET state = 'withdrawn'`)
		w.exec(`UPDATE deliveries SET state = 'sent'`)
	}
	for name, open := range map[string]string{
		"received event":    `UPDATE inbox SET state = 'received'`,
		"taken event":       `UPDATE inbox SET state = 'taken'`,
		"running turn":      `UPDATE turns SET state = 'calling', ended_at = NULL`,
		"suspended turn":    `UPDATE turns SET state = 'suspended', ended_at = NULL`,
		"pending delivery":  `UPDATE deliveries SET state = 'pending'`,
		"sending delivery":  `UPDATE deliveries SET state = 'sending'`,
		"unknown delivery":  `UPDATE deliveries SET state = 'unknown'`,
		"open approval":     `UPDATE approvals SET state = 'open'`,
		"nothing but ended": ``,
	} {
		t.Run(name, func(t *testing.T) {
			reset()
			if open != "" {
				w.exec(open)
			}
			epoch := query[int64](w, `SELECT epoch FROM conversations`)
			f := record.Fence{Conversation: k.fence.Conversation, Replica: w.replica, Epoch: epoch}
			released, err := w.Release(t.Context(), f, false)
			w.check(err)
			if released != (open == "") {
				t.Errorf("released: %v", released)
			}
			w.exec(`UPDATE conversations SET owner = NULL`)
			fences, err := w.ClaimOrphans(t.Context(), w.replica, 10)
			w.check(err)
			if (len(fences) == 1) != (open != "") {
				t.Errorf("orphans: %v", fences)
			}
			w.exec(`UPDATE conversations SET owner = $1, epoch = epoch + 1`, w.replica)
		})
	}
}

// A replica that has lost its lock claims nothing.
func TestDeadReplicaClaimsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.conversations(1)
	w.exec(`UPDATE conversations SET owner = NULL`)
	fences, err := w.ClaimOrphans(t.Context(), cutOff, 10)
	w.check(err)
	if len(fences) != 0 {
		t.Errorf("claimed %v", fences)
	}
}

// CON-014: after a takeover no write of the former owner goes through.
func TestEveryWriteIsFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	turn := w.turn(k)
	d := record.Delivery{Kind: record.DeliverLive, Key: "d", Address: turn.Address, State: record.DeliveryPending}
	run := record.ToolRun{Turn: turn.ID, CallID: "c", Tool: "t"}
	a := record.Approval{Turn: turn.ID, CallID: "c", Kind: record.AskApproval, ExpiresAt: time.Now().Add(time.Hour)}
	later := w.receive(said("2", "more")).Item
	writes := map[string]func(f record.Fence) error{
		"Release":   func(f record.Fence) error { _, err := w.Release(ctx, f, true); return err },
		"Work":      func(f record.Fence) error { _, err := w.Work(ctx, f); return err },
		"StartTurn": func(f record.Fence) error { _, err := w.StartTurn(ctx, f, record.TurnStart{Turn: turn}); return err },
		"JoinTurn":  func(f record.Fence) error { return w.JoinTurn(ctx, f, turn.ID, []record.InboxItem{later}, nil) },
		"SuspendTurn": func(f record.Fence) error {
			return w.SuspendTurn(ctx, f, turn.ID, "x", false)
		},
		"EndTurn": func(f record.Fence) error {
			return w.EndTurn(ctx, f, record.TurnEnd{Turn: turn.ID, State: record.TurnDone})
		},
		"EndItems": func(f record.Fence) error {
			_, err := w.EndItems(ctx, f, []record.InboxItem{later}, "x", record.BeginRoot{Reason: record.ReasonNew}, nil)
			return err
		},
		"AppendMessages": func(f record.Fence) error {
			_, err := w.AppendMessages(ctx, f, k.session, []record.Message{userRow("x")})
			return err
		},
		"SetSession": func(f record.Fence) error {
			return w.SetSession(ctx, f, record.Session{ID: k.session, SystemPrompt: "x"})
		},
		"SetWire": func(f record.Fence) error { return w.SetWire(ctx, f, k.session, 1, "x") },
		"Compress": func(f record.Fence) error {
			_, err := w.Compress(ctx, f, record.Compression{Parent: record.Session{ID: k.session}, Summary: userRow("x"), UpTo: 1, Turn: turn.ID})
			return err
		},
		"SetTurn": func(f record.Fence) error { return w.SetTurn(ctx, f, turn) },
		"PlanTools": func(f record.Fence) error {
			_, _, err := w.PlanTools(ctx, f, k.session, record.Message{Role: llm.Assistant, Turn: turn.ID}, []record.ToolRun{run})
			return err
		},
		"StartTool": func(f record.Fence) error { return w.StartTool(ctx, f, run) },
		"FinishTool": func(f record.Fence) error {
			return w.FinishTool(ctx, f, k.session, run, record.Message{Role: llm.ToolRole})
		},
		"SaveDelivery": func(f record.Fence) error { return w.SaveDelivery(ctx, f, d) },
		"OpenApproval": func(f record.Fence) error { _, _, err := w.OpenApproval(ctx, f, a, d); return err },
		"DecideApproval": func(f record.Fence) error {
			_, _, err := w.DecideApproval(ctx, f, cutOff, record.ApprovalDenied, ann, "")
			return err
		},
	}
	const state = `SELECT md5(concat((SELECT json_agg(s) FROM sessions s), (SELECT json_agg(m) FROM messages m), (SELECT json_agg(t) FROM turns t),
		(SELECT json_agg(i) FROM inbox i), (SELECT json_agg(d) FROM deliveries d), (SELECT json_agg(a) FROM approvals a),
		(SELECT json_agg(r) FROM tool_runs r), (SELECT json_agg(c) FROM conversations c)))`
	before := query[string](w, state)
	for name, write := range writes {
		for what, f := range map[string]record.Fence{
			"an old epoch":    {Conversation: k.fence.Conversation, Replica: w.replica, Epoch: k.fence.Epoch - 1},
			"another replica": {Conversation: k.fence.Conversation, Replica: cutOff, Epoch: k.fence.Epoch},
			"no fence":        {},
		} {
			t.Run(name+"/"+what, func(t *testing.T) { w.want(write(f), record.ErrFenced) })
		}
	}
	if query[string](w, state) != before {
		t.Error("a fenced write changed something")
	}
}

func TestOwned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fences := w.conversations(3)
	w.exec(`UPDATE inbox SET state = 'done' WHERE conversation_id <> $1`, fences[0].Conversation)
	w.check(w.SaveDelivery(t.Context(), fences[1], record.Delivery{Kind: record.DeliverNotice, Key: "n", State: record.DeliveryUnknown}))
	owned, err := w.Owned(t.Context(), w.replica)
	w.check(err)
	if len(owned) != 2 || owned[0].Conversation == fences[2].Conversation || owned[1].Conversation == fences[2].Conversation {
		t.Errorf("owned %v of %v", owned, fences)
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	o := w.other()
	claim := func(r *world, want bool) {
		t.Helper()
		got, err := r.ClaimAccount(ctx, r.replica, "fake/main")
		w.check(err)
		if got != want {
			t.Fatalf("claimed: %v, want %v", got, want)
		}
	}
	claim(w, true)
	claim(w, true)
	claim(o, false)
	w.check(o.ReleaseAccount(ctx, o.replica, "fake/main"))
	claim(o, false)
	w.check(w.ReleaseAccount(ctx, w.replica, "fake/main"))
	claim(o, true)
	claim(w, false)
	o.die()
	claim(w, true)

	third := w.other()
	w.check(w.ReleaseAccount(ctx, w.replica, "fake/main"))
	var wg sync.WaitGroup
	results := make([]bool, 8)
	for i := range results {
		wg.Go(func() {
			r := []*world{w, third}[i%2]
			var err error
			if results[i], err = r.ClaimAccount(ctx, r.replica, "fake/main"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if results[0] == results[1] {
		t.Error("two replicas have the account, or none")
	}
}

// PGS-001: a listener whose connection is killed listens again, and says that
// something may have been missed.
func TestListenSurvivesItsConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.other()
	woken := w.listening()
	k := w.talk()
	for i := range 3 {
		o.receive(said(fmt.Sprint("before", i), "x"))
		w.wake(woken, k.fence.Conversation)
		w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
		w.wake(woken, "")
	}
	o.receive(said("after", "x"))
	w.wake(woken, k.fence.Conversation)
}
