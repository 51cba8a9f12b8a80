package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/gateway/chat"
	"parley/store"
	"parley/store/record"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// hourly runs what is due and is due again an hour later.
func hourly(s record.Schedule, now time.Time) record.ScheduleStep {
	return record.ScheduleStep{Due: s.NextAt, Next: now.Add(time.Hour), State: record.ScheduleActive}
}

func (w *world) schedule(k talk) record.Schedule {
	w.t.Helper()
	s, err := w.CreateSchedule(w.t.Context(), record.Schedule{
		Conversation: k.fence.Conversation, Creator: ann, Title: "tea", Prompt: "make tea", When: "every 1h", Zone: "UTC", Missed: record.MissedOnce,
		NextAt: noon, CreatedAt: noon.Add(-time.Hour),
	})
	w.check(err)
	return s
}

// CRN-001: a due time is one event however many replicas look for it, and none comes
// while an earlier run is open.
func TestDueTimesComeOnce(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	s := w.schedule(k)
	two := w.other()
	look := func(now time.Time) {
		var both sync.WaitGroup
		for _, r := range []*world{w, two} {
			for range 4 {
				both.Go(func() {
					if _, err := r.DueSchedules(t.Context(), r.replica, now, 10, hourly); err != nil {
						t.Error(err)
					}
				})
			}
		}
		both.Wait()
	}
	tasks := func() int { return query[int](w, `SELECT count(*) FROM inbox WHERE kind = 'task'`) }
	look(noon.Add(-time.Second))
	if n := tasks(); n != 0 {
		t.Fatalf("%d before it is due", n)
	}
	look(noon)
	look(noon.Add(24 * time.Hour))
	if n := tasks(); n != 1 {
		t.Fatalf("%d events of one due time", n)
	}
	items := w.work(k.fence).Inbox
	ev, err := items[len(items)-1].Event()
	w.check(err)
	want := chat.TaskDue{
		Origin:   chat.Origin{Key: "schedule/1/1796126400", Address: k.Conversation.Key.Address, Kind: chat.Direct, From: chat.User{ID: ann}, At: noon},
		Schedule: int64(s.ID), Title: "tea", Prompt: "make tea", Due: noon, Zone: "UTC",
	}
	if diff := cmp.Diff(want, ev, cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Error(diff)
	}
	if _, err := w.EndItems(t.Context(), k.fence, items, "done", record.NoEffect{}, nil); err != nil {
		t.Fatal(err)
	}
	look(noon.Add(24 * time.Hour))
	if n := tasks(); n != 2 {
		t.Errorf("%d events after the first run has ended", n)
	}
	list, err := w.Schedules(t.Context(), k.fence.Conversation)
	w.check(err)
	if len(list) != 1 || list[0].Runs != 2 || !list[0].LastAt.Equal(noon.Add(24*time.Hour)) {
		t.Errorf("%+v", list)
	}
}

// A conversation that nobody owns is claimed for what is due, and the failures of runs
// are counted in a row.
func TestRunsOfASchedule(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	w.end(k)
	s := w.schedule(k)
	if ok, err := w.Release(t.Context(), k.fence, false); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for i, state := range []record.TurnState{record.TurnFailed, record.TurnInterrupted, record.TurnFailed, record.TurnExhausted} {
		now := noon.Add(time.Duration(i) * 2 * time.Hour)
		fences, err := w.DueSchedules(t.Context(), w.replica, now, 10, hourly)
		w.check(err)
		if len(fences) != 1 {
			t.Fatalf("run %d: %v", i, fences)
		}
		root := record.BeginRoot{ID: record.SessionID(record.NewID()), Reason: record.ReasonSchedule, Title: "tea"}
		begun, err := w.StartTurn(t.Context(), fences[0], record.TurnStart{
			Turn: record.Turn{Person: ann, Trust: record.TrustSchedule, Address: k.Conversation.Key.Address, Schedule: s.ID}, Items: w.work(fences[0]).Inbox,
			Messages: []record.Message{userRow("make tea")}, Root: &root,
		})
		w.check(err)
		if begun.Session.ID != root.ID || begun.Session.Parent != "" || len(begun.History) != 1 {
			t.Errorf("it runs in %+v", begun.Session)
		}
		w.check(w.EndTurn(t.Context(), fences[0], record.TurnEnd{Turn: begun.Turn.ID, State: state}))
		if got, want := query[int](w, `SELECT failures FROM schedules`), []int{1, 1, 2, 0}[i]; got != want {
			t.Errorf("after %s there are %d failures", state, got)
		}
	}
	if got := query[string](w, `SELECT session_id::text FROM conversations`); got != string(k.session) {
		t.Error("the conversation moved to a run's session")
	}
}

// end ends the conversation's open rows.
func (w *world) end(k talk) {
	w.t.Helper()
	_, err := w.EndItems(w.t.Context(), k.fence, w.work(k.fence).Inbox, "done", record.NoEffect{}, nil)
	w.check(err)
}

func TestSchedulesBelongToTheirConversation(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	s := w.schedule(k)
	foreign := s
	foreign.Conversation = record.ConversationID(record.NewID())
	w.want(w.SetSchedule(t.Context(), foreign), record.ErrNotFound)
	w.want(w.DeleteSchedule(t.Context(), foreign.Conversation, s.ID), record.ErrNotFound)
	s.State, s.NextAt = record.SchedulePaused, time.Time{}
	w.check(w.SetSchedule(t.Context(), s))
	if fences, err := w.DueSchedules(t.Context(), w.replica, noon.AddDate(1, 0, 0), 10, hourly); err != nil || len(fences) != 0 {
		t.Errorf("a paused one ran: %v %v", fences, err)
	}
	w.check(w.DeleteSchedule(t.Context(), s.Conversation, s.ID))
	for range 50 {
		w.schedule(k)
	}
	_, err := w.CreateSchedule(t.Context(), s)
	w.want(err, store.ErrTooMany)
}

// An outside event goes to the conversation at its address, once by its key; where
// nobody has talked it goes nowhere.
func TestEnqueue(t *testing.T) {
	w := newWorld(t)
	k := w.talk()
	ev := chat.TaskDue{Origin: chat.Origin{Key: "webhook/ci/1", Address: k.Conversation.Key.Address}, Title: "ci", Data: "x"}
	first, err := w.Enqueue(t.Context(), w.replica, ev)
	w.check(err)
	second, err := w.Enqueue(t.Context(), w.replica, ev)
	w.check(err)
	if first.Duplicate || !first.Mine || first.Fence != k.fence || !second.Duplicate || len(w.work(k.fence).Inbox) != 2 {
		t.Errorf("%+v %+v", first, second)
	}
	ev.Address.Chat = "nobody"
	_, err = w.Enqueue(t.Context(), w.replica, ev)
	w.want(err, record.ErrNotFound)
}

// Who takes a conversation over from a dead owner is told so, to wake it, also where an
// event was known already or nothing was to be run: what the owner has left open
// there would wait for ever.
func TestWhoTakesOverIsTold(t *testing.T) {
	for name, take := range map[string]func(w *world, s record.Schedule, ev chat.TaskDue) []record.Fence{
		"a known event": func(w *world, _ record.Schedule, ev chat.TaskDue) []record.Fence {
			rc, err := w.Enqueue(t.Context(), w.replica, ev)
			w.check(err)
			if !rc.Duplicate || !rc.Mine {
				t.Errorf("%+v", rc)
			}
			return []record.Fence{rc.Fence}
		},
		"nothing to be run": func(w *world, _ record.Schedule, _ chat.TaskDue) []record.Fence {
			skip := func(s record.Schedule, now time.Time) record.ScheduleStep {
				return record.ScheduleStep{Next: now.Add(time.Hour), State: record.ScheduleActive}
			}
			fences, err := w.DueSchedules(t.Context(), w.replica, noon, 10, skip)
			w.check(err)
			return fences
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := w.talk()
			s := w.schedule(k)
			ev := chat.TaskDue{Origin: chat.Origin{Key: "webhook/ci/1", Address: k.Conversation.Key.Address}, Title: "ci", Data: "x"}
			if _, err := w.Enqueue(t.Context(), w.replica, ev); err != nil {
				t.Fatal(err)
			}
			heir := w.other()
			w.die()
			fences := take(heir, s, ev)
			if len(fences) != 1 || fences[0].Conversation != k.fence.Conversation || fences[0].Replica != heir.replica || fences[0].Epoch <= k.fence.Epoch {
				t.Fatalf("the heir was told of %+v", fences)
			}
			if n := len(heir.work(fences[0]).Inbox); n != 2 {
				t.Errorf("%d events are open for it", n)
			}
		})
	}
}
