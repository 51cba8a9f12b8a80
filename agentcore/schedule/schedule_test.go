package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/agentcore/schedule"
	"parley/store/record"
)

const berlin, newYork = "Europe/Berlin", "America/New_York"

func at(t interface {
	Helper()
	Fatal(...any)
}, text string,
) time.Time {
	t.Helper()
	got, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// CRN-001, CRN-002, CRN-005: the clocks of Berlin go forward on 28 March 2027 at 02:00
// and back on 25 October 2026 at 03:00; those of New York forward on 14 March 2027.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name, when, zone, after string
		want                    []string
	}{
		{"a day's time keeps its hour when the clocks go back", "cron 0 9 * * *", berlin, "2026-10-24T08:00:00Z", []string{"2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"}},
		{"a time that comes twice is the first", "cron 30 2 * * *", berlin, "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked within the second of the two", "cron 30 2 * * *", berlin, "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"a time that does not exist is when the clocks jump", "cron 30 2 * * *", berlin, "2027-03-27T12:00:00Z", []string{"2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"}},
		{"the same in New York", "cron 15,45 2 * * *", newYork, "2027-03-14T00:00:00Z", []string{"2027-03-14T07:00:00Z", "2027-03-15T06:15:00Z"}},
		{"each hour goes by the clock, forward", "cron 0 * * * *", berlin, "2027-03-27T23:30:00Z", []string{"2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z", "2027-03-28T02:00:00Z"}},
		{"each hour goes by the clock, back", "cron 0 * * * *", berlin, "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"every half hour in the repeated one", "cron */30 * * * *", berlin, "2026-10-25T00:40:00Z", []string{"2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"}},
		{"the seventh day is Sunday", "cron 0 9 * * 7", berlin, "2026-11-30T00:00:00Z", []string{"2026-12-06T08:00:00Z"}},
		{"a leap day", "cron 0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"every counts real time", "every 24h", berlin, "2026-10-24T09:00:00Z", []string{"2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"}},
		{"local time", "at 2026-12-01 09:30", berlin, "2026-11-30T00:00:00Z", []string{"2026-12-01T08:30:00Z", "0001-01-01T00:00:00Z"}},
		{"an offset counts more than the zone", "at 2026-12-01T14:30:00+08:00", berlin, "2026-11-30T00:00:00Z", []string{"2026-12-01T06:30:00Z"}},
		{"local time that does not exist", "at 2027-03-28 02:30", berlin, "2026-11-30T00:00:00Z", []string{"2027-03-28T01:00:00Z"}},
		{"local time that comes twice", "at 2026-10-25 02:30", berlin, "2026-10-01T00:00:00Z", []string{"2026-10-25T00:30:00Z"}},
		{"long past", "at 2020-01-01 00:00", berlin, "2026-11-30T00:00:00Z", []string{"0001-01-01T00:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := schedule.Parse(c.when, c.zone, at(t, "2026-01-01T08:00:00Z"))
			if err != nil {
				t.Fatal(err)
			}
			now, got := at(t, c.after), []string{}
			for range c.want {
				now = r.Next(now)
				got = append(got, now.UTC().Format(time.RFC3339))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever is asked, the next due time is later, and a cron expression with a fixed
// hour is due at most once a day; no due time is left out.
func TestNextIsLater(t *testing.T) {
	zones := []string{berlin, newYork, "UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "America/Sao_Paulo"}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		when := rapid.SampledFrom([]string{fmt.Sprintf("cron %d %d * * *", minute, hour), fmt.Sprintf("cron */%d * * * *", max(minute, 1)), "every 95m"}).Draw(t, "when")
		made := at(t, "2026-01-01T00:00:00Z")
		r, err := schedule.Parse(when, zone, made)
		if err != nil {
			t.Fatal(err)
		}
		now := made.Add(time.Duration(rapid.Int64Range(0, 2*365*24*3600).Draw(t, "second")) * time.Second)
		next := r.Next(now)
		if !next.After(now) {
			t.Fatalf("%s in %s: after %s comes %s", when, zone, now, next)
		}
		if middle := now.Add(next.Sub(now) / 2); !r.Next(middle).Equal(next) {
			t.Fatalf("%s in %s: after %s comes %s, but after %s in between %s", when, zone, now, next, middle, r.Next(middle))
		}
		loc, _ := time.LoadLocation(zone)
		fixed := !strings.Contains(when, "*/") && !strings.HasPrefix(when, "every")
		if again := r.Next(next); fixed && again.In(loc).Format(time.DateOnly) == next.In(loc).Format(time.DateOnly) {
			t.Fatalf("%s in %s runs twice on one day: %s and %s", when, zone, next, again)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for want, bad := range map[string][2]string{
		"no time zone":        {"every 2h", "Mars/Olympus"},
		"no time zone \"\"":   {"every 2h", ""},
		"at least 1m0s":       {"every 10s", "UTC"},
		"not a duration":      {"every day", "UTC"},
		"five fields":         {"cron * * * * * *", "UTC"},
		"\"61 * * * *\"":      {"cron 61 * * * *", "UTC"},
		"\"TZ=0 * * * *\"":    {"cron TZ=0 * * * *", "UTC"},
		"never due":           {"cron 0 0 30 2 *", "UTC"},
		"not a time":          {"at tomorrow", "UTC"},
		"neither at, every":   {"sometimes", "UTC"},
		"neither at, every n": {"", "UTC"},
	} {
		if _, err := schedule.Parse(bad[0], bad[1], time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q in %q: %v, want %q", bad[0], bad[1], err, want)
		}
	}
}

// CRN-002: after a week in which nobody was there, the policy decides; and what is due
// comes one at a time.
func TestPlanOfAStoppedWeek(t *testing.T) {
	now := at(t, "2026-10-28T12:00:00Z") // the clocks went back meanwhile
	for policy, want := range map[record.Missed][]string{
		record.MissedSkip: {"2026-10-29T08:00:00Z"},
		record.MissedOnce: {"run 2026-10-28T08:00:00Z, 6 skipped", "2026-10-29T08:00:00Z"},
		record.MissedAll: {
			"run 2026-10-22T07:00:00Z", "run 2026-10-23T07:00:00Z", "run 2026-10-24T07:00:00Z", "run 2026-10-25T08:00:00Z", "run 2026-10-26T08:00:00Z",
			"run 2026-10-27T08:00:00Z", "run 2026-10-28T08:00:00Z", "2026-10-29T08:00:00Z",
		},
	} {
		s := record.Schedule{When: "cron 0 9 * * *", Zone: berlin, Missed: policy, State: record.ScheduleActive, NextAt: at(t, "2026-10-22T07:00:00Z")}
		var got []string
		for range 20 {
			step := schedule.Plan(s, now)
			if !step.Due.IsZero() {
				line := "run " + step.Due.UTC().Format(time.RFC3339)
				if step.Skipped > 0 {
					line += fmt.Sprintf(", %d skipped", step.Skipped)
				}
				got = append(got, line)
			}
			if s.NextAt = step.Next; s.NextAt.After(now) {
				got = append(got, s.NextAt.UTC().Format(time.RFC3339))
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}

func TestPlan(t *testing.T) {
	now := at(t, "2026-12-01T12:00:30Z")
	active := func(when string, next string) record.Schedule {
		return record.Schedule{When: when, Zone: "UTC", Missed: record.MissedOnce, State: record.ScheduleActive, NextAt: at(t, next), CreatedAt: at(t, "2026-12-01T00:00:00Z")}
	}
	changed := func(s record.Schedule, change func(*record.Schedule)) record.Schedule { change(&s); return s }
	noon, one := at(t, "2026-12-01T12:00:00Z"), at(t, "2026-12-01T13:00:00Z")
	for name, c := range map[string]struct {
		s    record.Schedule
		want record.ScheduleStep
	}{
		"due now":               {active("every 1h", "2026-12-01T12:00:00Z"), record.ScheduleStep{Due: noon, Next: one, State: record.ScheduleActive}},
		"a little late":         {changed(active("every 1h", "2026-12-01T12:00:00Z"), func(s *record.Schedule) { s.Missed = record.MissedSkip }), record.ScheduleStep{Due: noon, Next: one, State: record.ScheduleActive}},
		"once and for all":      {active("at 2026-12-01 12:00", "2026-12-01T12:00:00Z"), record.ScheduleStep{Due: noon, State: record.ScheduleDone}},
		"once, and missed":      {changed(active("at 2026-12-01 11:00", "2026-12-01T11:00:00Z"), func(s *record.Schedule) { s.Missed = record.MissedSkip }), record.ScheduleStep{State: record.ScheduleDone, Skipped: 1, Reason: "its time passed while nobody was there to run it"}},
		"asked for":             {changed(active("every 1h", "2026-12-01T13:00:00Z"), func(s *record.Schedule) { s.Asked, s.State = true, record.SchedulePaused }), record.ScheduleStep{Due: now, Next: one, State: record.SchedulePaused}},
		"it failed just now":    {changed(active("every 1m", "2026-12-01T12:00:00Z"), func(s *record.Schedule) { s.Failures, s.LastAt = 2, noon }), record.ScheduleStep{Next: noon.Add(4 * time.Minute), State: record.ScheduleActive}},
		"it failed long ago":    {changed(active("every 1h", "2026-12-01T12:00:00Z"), func(s *record.Schedule) { s.Failures, s.LastAt = 2, noon.Add(-time.Hour) }), record.ScheduleStep{Due: noon, Next: one, State: record.ScheduleActive}},
		"it fails all the time": {changed(active("every 1h", "2026-12-01T12:00:00Z"), func(s *record.Schedule) { s.Failures = 5 }), record.ScheduleStep{State: record.SchedulePaused, Reason: "it failed 5 times in a row"}},
	} {
		if diff := cmp.Diff(c.want, schedule.Plan(c.s, now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	many := changed(active("every 1m", "2026-11-01T00:00:00Z"), func(s *record.Schedule) { s.Missed = record.MissedAll })
	many.CreatedAt = many.NextAt
	step := schedule.Plan(many, now)
	if step.Due.IsZero() || step.Skipped != 12_000-24 {
		t.Errorf("a month of minutes: %+v", step)
	}
}
