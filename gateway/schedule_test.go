package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/schedule"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

// clock is one that the test sets.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) set(text string) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	c.now.Store(&t)
}

func (c *clock) Now() time.Time { return *c.now.Load() }

// tick answers each run with its due time, which its message names.
func tick(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
	_, due, found := strings.Cut(gatewaytest.LastUser(r), ", due ")
	due, _, _ = strings.Cut(due, ". ")
	if !found {
		due = "hello"
	}
	say(llm.TextDelta{Text: due})
	return nil
}

// CRN-001, CRN-002, CRN-005: under a fake clock across both changes of the clocks, a
// restart, and a week in which nothing ran: each due time is run once, at its time.
func TestSchedulesAcrossTheYear(t *testing.T) {
	c := &clock{}
	c.set("2026-10-24T10:00:00Z")
	db, platform := storetest.New(t), gatewaytest.NewPlatform(chat.Limits{})
	start := func() *gatewaytest.Harness {
		return gatewaytest.New(t, gatewaytest.NewModel(tick), gatewaytest.Options{Store: db, Platform: platform, Now: c.Now})
	}
	h := start()
	h.Say(owner, "hi")
	h.Final(owner, "hello")
	makeSchedule(t, db, "cron 30 2 * * *", c.Now())
	posted := 1
	due := func(now, want string) {
		t.Helper()
		c.set(now)
		if want != "" {
			posted++
			h.Final(owner, want)
		}
		if got := len(platform.Posts(gatewaytest.Direct(owner).Chat)); got != posted {
			t.Errorf("at %s there are %d messages, want %d", now, got, posted)
		}
	}
	due("2026-10-25T00:29:59Z", "")
	due("2026-10-25T00:30:00Z", "Sun 2026-10-25 02:30 CEST")
	due("2026-10-25T01:30:00Z", "") // 02:30 for the second time
	due("2026-10-26T01:30:00Z", "Mon 2026-10-26 02:30 CET")
	h.Stop()
	c.set("2026-11-02T12:00:00Z")
	h = start()
	due("2026-11-02T12:00:01Z", "Mon 2026-11-02 02:30 CET")
	due("2027-03-27T01:30:05Z", "Sat 2027-03-27 02:30 CET")
	due("2027-03-28T01:00:00Z", "Sun 2027-03-28 03:00 CEST") // 02:30 does not exist
	due("2027-03-29T00:30:00Z", "Mon 2027-03-29 02:30 CEST")
}

func makeSchedule(t *testing.T, db *store.DB, when string, now time.Time) record.Schedule {
	t.Helper()
	list, err := db.Conversations(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.CreateSchedule(t.Context(), record.Schedule{
		Conversation: list[0].ID, Creator: owner.ID, Title: "report", Prompt: "report", When: when, Zone: "Europe/Berlin", Missed: record.MissedOnce,
		NextAt: now, CreatedAt: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Its first due time is worked out as the tool does.
	if err := db.SetSchedule(t.Context(), mustResume(t, s, now)); err != nil {
		t.Fatal(err)
	}
	return s
}

func mustResume(t *testing.T, s record.Schedule, now time.Time) record.Schedule {
	t.Helper()
	s, err := schedule.Resumed(s, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a person writes while a task runs waits for its end: nothing of the task is
// lost, nothing joins it.
func TestMessagesWaitForATask(t *testing.T) {
	release := make(chan struct{})
	h := gatewaytest.New(t, gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if strings.Contains(gatewaytest.LastUser(r), "This is schedule") {
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
			return gatewaytest.Say("the report")(ctx, r, say)
		}
		return echo(ctx, r, say)
	}), gatewaytest.Options{})
	h.Say(owner, "hi")
	h.Final(owner, "echo: hi")
	s := makeSchedule(t, h.Store, "every 24h", time.Now())
	s.State, s.Asked, s.NextAt = record.ScheduleActive, true, time.Now().Add(time.Hour)
	if err := h.Store.SetSchedule(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	awaitRequests(t, h.Model, 2)
	id := h.Say(owner, "meanwhile")
	h.Platform.AwaitReaction(t, id, chat.ReactSeen) // it waits
	close(release)
	h.Final(owner, "echo: meanwhile")
	var said []string
	for _, p := range h.Platform.Posts(gatewaytest.Direct(owner).Chat) {
		said = append(said, p.Out.Text)
	}
	if got := fmt.Sprint(said); got != "[echo: hi the report echo: meanwhile]" {
		t.Error(got)
	}
}
