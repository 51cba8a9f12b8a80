package agentcore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/store/record"
)

// diary keeps schedules in memory.
type diary struct {
	all  []record.Schedule
	full bool
}

func (d *diary) CreateSchedule(_ context.Context, s record.Schedule) (record.Schedule, error) {
	if d.full {
		return s, record.ErrConflict
	}
	s.ID, s.State = record.ScheduleID(len(d.all)+1), record.ScheduleActive
	d.all = append(d.all, s)
	return s, nil
}

func (d *diary) Schedules(context.Context, record.ConversationID) ([]record.Schedule, error) {
	return slices.Clone(d.all), nil
}

func (d *diary) SetSchedule(_ context.Context, s record.Schedule) error {
	d.all[s.ID-1] = s
	return nil
}

func (d *diary) DeleteSchedule(_ context.Context, _ record.ConversationID, id record.ScheduleID) error {
	d.all = slices.DeleteFunc(d.all, func(s record.Schedule) bool { return s.ID == id })
	return nil
}

var scheduleNow = time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)

func scheduling(t *testing.T, d *diary) *bench {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(_ *agentcore.Config, deps *agentcore.Deps) {
		deps.Schedules, deps.Location, deps.Now = d, berlin, func() time.Time { return scheduleNow }
	})
	b.req.Role = record.RoleUser
	return b
}

// Times are read in the conversation's zone, and the model is told when it is due next.
func TestScheduleTool(t *testing.T) {
	d := &diary{}
	b := scheduling(t, d)
	got := use(t, b, "schedule",
		`{"action":"create","prompt":"report","cron":"30 2 * * *"}`,
		`{"action":"create","prompt":"report","at":"2026-10-25 09:00","zone":"America/New_York","missed":"skip","title":"breakfast"}`,
		`{"action":"list"}`,
		`{"action":"pause","id":1}`,
		`{"action":"resume","id":1}`,
		`{"action":"run","id":1}`,
		`{"action":"delete","id":2}`,
		`{"action":"delete","id":2}`,
	)
	expect(t, got,
		"Schedule 1 is made: cron 30 2 * * * (Europe/Berlin), next Sun 2026-10-25 02:30 CEST",
		"Schedule 2 is made: once, Sun 2026-10-25 09:00 EDT", `2 "breakfast"`, "paused on request", "next Sun", "runs once", "deleted", "no schedule 2")
	if s := d.all[0]; s.Creator != "x:1" || s.Missed != record.MissedOnce || !s.Asked || s.State != record.ScheduleActive {
		t.Errorf("%+v", s)
	}
}

func TestScheduleToolRefuses(t *testing.T) {
	d := &diary{}
	b := scheduling(t, d)
	got := use(t, b, "schedule",
		`{"action":"create","prompt":"x"}`,
		`{"action":"create","prompt":"x","every":"2h","cron":"0 9 * * *"}`,
		`{"action":"create","prompt":" ","every":"2h"}`,
		`{"action":"create","prompt":"x","every":"5s"}`,
		`{"action":"create","prompt":"x","at":"2026-10-24 13:00"}`,
		`{"action":"create","prompt":"x","in":"soon"}`,
		`{"action":"create","prompt":"x","every":"2h","zone":"Berlin"}`,
	)
	expect(t, got, "exactly one", "exactly one", "needs a prompt", "at least 1m", "has passed; it is Sat 2026-10-24 14:00 CEST", "not a duration", "no time zone")
	if len(d.all) > 0 {
		t.Errorf("made %+v", d.all)
	}
	d.full = true
	expect(t, use(t, b, "schedule", `{"action":"create","prompt":"x","every":"2h"}`), "Delete one first")
}

// Only the maker or an admin changes a schedule, and nothing that no person has begun
// makes or changes one.
func TestSchedulesAreTheirMakers(t *testing.T) {
	d := &diary{all: []record.Schedule{{ID: 1, Creator: "x:2", When: "every 2h", Zone: "UTC", State: record.ScheduleActive}}}
	b := scheduling(t, d)
	expect(t, use(t, b, "schedule", `{"action":"delete","id":1}`), "Only the person who made")
	b.req.Role = record.RoleAdmin
	expect(t, use(t, b, "schedule", `{"action":"pause","id":1}`), "paused")
	for _, trust := range []record.Trust{record.TrustSchedule, record.TrustUntrusted} {
		b.req.Turn.Trust = trust
		expect(t, use(t, b, "schedule", `{"action":"create","prompt":"x","every":"2h"}`, `{"action":"delete","id":1}`), "that a person has begun", "that a person has begun")
	}
	if len(d.all) != 1 {
		t.Errorf("%+v", d.all)
	}
}

// TRN-003: "in an hour" counts from the person's message, not from when the model got
// to it; what has passed by then is due at once.
func TestScheduleInCountsFromTheMessage(t *testing.T) {
	d := &diary{}
	b := scheduling(t, d)
	b.req.Message = ""
	if _, err := b.journal.Append(t.Context(), record.Message{Role: llm.User, Content: "in an hour", Turn: "turn-1", CreatedAt: scheduleNow.Add(-10 * time.Minute)}); err != nil {
		t.Fatal(err)
	}
	b.model.Then(agentcoretest.Call(
		agentcoretest.Tool("a", "schedule", `{"action":"create","prompt":"x","in":"1h"}`),
		agentcoretest.Tool("b", "schedule", `{"action":"create","prompt":"x","in":"1m"}`)), agentcoretest.Say("ok"))
	b.run(t.Context())
	for i, want := range []time.Duration{50 * time.Minute, 0} {
		if got := d.all[i].NextAt.Sub(scheduleNow); got < want || got > want+2*time.Second {
			t.Errorf("it is due in %s, want %s; %s", got, want, strings.Join([]string{b.results()["a"], b.results()["b"]}, " "))
		}
	}
}
