package schedule

import (
	"fmt"
	"time"

	"parley/store/record"
)

const (
	// late is from when on a due time counts as missed.
	late = 2 * time.Minute
	// mostMissed bounds the missed due times that are run for one after another.
	mostMissed = 24
	// mostFailures in a row pause a schedule.
	mostFailures = 5
	// longestBackoff bounds the pause after failures.
	longestBackoff = time.Hour
	// mostSteps bounds the due times that are looked at, more than a week has minutes.
	mostSteps = 12_000
)

// Plan decides about a schedule that is due at a time. It is looked at only while none
// of its runs is open, so what was due meanwhile was missed.
func Plan(s record.Schedule, now time.Time) record.ScheduleStep {
	step := record.ScheduleStep{Next: s.NextAt, State: s.State, Reason: s.Reason}
	if s.Asked {
		step.Due = now
		return step
	}
	stop := func(state record.ScheduleState, why string) record.ScheduleStep {
		return record.ScheduleStep{State: state, Reason: why, Skipped: step.Skipped}
	}
	rule, err := Parse(s.When, s.Zone, s.CreatedAt)
	if err != nil {
		return stop(record.SchedulePaused, err.Error())
	}
	if s.Failures >= mostFailures {
		return stop(record.SchedulePaused, fmt.Sprintf("it failed %d times in a row", s.Failures))
	}
	if s.Failures > 0 {
		if again := s.LastAt.Add(min(time.Minute<<s.Failures, longestBackoff)); now.Before(again) {
			step.Next = again
			return step
		}
	}
	keep := 1
	if s.Missed == record.MissedAll {
		keep = mostMissed
	}
	due, passed := []time.Time{}, 0
	for t := s.NextAt; !t.IsZero() && !t.After(now) && passed < mostSteps; t = rule.Next(t) {
		passed++
		if due = append(due, t); len(due) > keep {
			due = due[1:]
		}
	}
	step.Skipped = passed - len(due)
	if s.Missed == record.MissedSkip && len(due) > 0 && now.Sub(due[0]) > late {
		due, step.Skipped = nil, passed
	}
	step.Next = rule.Next(now)
	if len(due) > 0 {
		step.Due = due[0]
	}
	if len(due) > 1 {
		step.Next = due[1]
	}
	if step.Next.IsZero() {
		step.State = record.ScheduleDone
		if step.Due.IsZero() {
			step.Reason = "its time passed while nobody was there to run it"
		}
	}
	return step
}
