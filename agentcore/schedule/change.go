package schedule

import (
	"fmt"
	"strings"
	"time"

	"parley/store/record"
)

// Resumed is a schedule that goes on from now, whatever it missed or failed at before.
// Its error is for people.
func Resumed(s record.Schedule, now time.Time) (record.Schedule, error) {
	rule, err := Parse(s.When, s.Zone, s.CreatedAt)
	if err != nil {
		return s, err
	}
	if s.NextAt = rule.Next(now); s.NextAt.IsZero() {
		return s, fmt.Errorf("it would never be due again (%s)", s.When)
	}
	s.State, s.Reason, s.Failures = record.ScheduleActive, "", 0
	return s, nil
}

// Paused is a schedule that is due no more until it is resumed.
func Paused(s record.Schedule, why string) record.Schedule {
	s.State, s.Reason, s.NextAt, s.Asked = record.SchedulePaused, why, time.Time{}, false
	return s
}

// Describe is a schedule in a few words, in its own zone, without its title.
func Describe(s record.Schedule) string {
	text := fmt.Sprintf("%s (%s)", s.When, s.Zone)
	switch {
	case strings.HasPrefix(s.When, "at ") && s.State == record.ScheduleActive:
		text = "once, " + Local(s.NextAt, s.Zone)
	case s.State == record.SchedulePaused:
		text += ", paused"
		if s.Reason != "" {
			text += ": " + s.Reason
		}
	case !s.NextAt.IsZero():
		text += ", next " + Local(s.NextAt, s.Zone)
	}
	if s.Runs+s.Skipped > 0 {
		text += fmt.Sprintf(", run %d times", s.Runs)
	}
	if s.Skipped > 0 {
		text += fmt.Sprintf(", %d missed", s.Skipped)
	}
	if s.Failures > 0 {
		text += fmt.Sprintf(", the last %d failed", s.Failures)
	}
	return text
}

// Local is a time as a clock of a zone shows it.
func Local(t time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	return t.In(loc).Format("Mon 2006-01-02 15:04 MST")
}
