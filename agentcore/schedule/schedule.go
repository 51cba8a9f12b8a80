// Package schedule says when a schedule is due. It guarantees that a next due time is
// always later than the time that is asked about, and that zones are exact:
//
//   - "every" counts real time from when the schedule was made, whatever clocks do;
//   - a cron expression with a fixed hour runs once on each day that it names: a local
//     time that does not exist (the clocks go forward) at the moment they jump, one that
//     comes twice (the clocks go back) at the first (CRN-005);
//   - a cron expression whose hour begins with "*" goes by the clock as it is: the
//     repeated hour runs again, the missing one does not (CRN-001).
package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// Shortest is the least time between two due times of a schedule.
const Shortest = time.Minute

// atLayouts are how a point in time may be written; without an offset it is local.
var atLayouts = []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"}

// Rule is when something is due.
type Rule struct {
	at     time.Time
	every  time.Duration
	anchor time.Time
	cron   string
	zone   *time.Location
}

// Parse reads "at TIME", "every DURATION" or "cron EXPRESSION" in an IANA zone; made
// is when the schedule was made, from which "every" counts. Its error is for people.
func Parse(when, zone string, made time.Time) (Rule, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		return Rule{}, fmt.Errorf("there is no time zone %q; use an IANA name such as Europe/Berlin", zone)
	}
	kind, rest, _ := strings.Cut(strings.TrimSpace(when), " ")
	rest = strings.TrimSpace(rest)
	switch kind {
	case "at":
		at, err := parseAt(rest, loc)
		return Rule{at: at, zone: loc}, err
	case "every":
		d, err := time.ParseDuration(rest)
		if err != nil || d < Shortest {
			return Rule{}, fmt.Errorf("%q is not a duration of at least %s, such as 90m or 24h", rest, Shortest)
		}
		return Rule{every: d, anchor: made, zone: loc}, nil
	case "cron":
		if len(strings.Fields(rest)) != 5 || !gronx.IsValid(rest) {
			return Rule{}, fmt.Errorf("%q is not a cron expression of five fields (minute hour day month weekday)", rest)
		}
		r := Rule{cron: strings.Join(strings.Fields(rest), " "), zone: loc}
		if r.Next(made).IsZero() {
			return Rule{}, fmt.Errorf("%q is never due", rest)
		}
		return r, nil
	}
	return Rule{}, fmt.Errorf("%q is neither at, every nor cron", when)
}

func parseAt(text string, loc *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range atLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return local(t, loc), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-03-29 09:30 or 2026-03-29T09:30:00+02:00", text)
}

// Next is the first due time after a time; zero: there is none.
func (r Rule) Next(after time.Time) time.Time {
	switch {
	case r.cron != "":
		if strings.HasPrefix(strings.Fields(r.cron)[1], "*") {
			return r.byTheClock(after)
		}
		return r.byTheDay(after)
	case r.every > 0:
		n := after.Sub(r.anchor) / r.every
		next := r.anchor.Add(n * r.every)
		for !next.After(after) {
			next = next.Add(r.every)
		}
		return next
	case r.at.After(after):
		return r.at
	}
	return time.Time{}
}

// byTheDay looks for the next local time and then for its moment. Two local times can
// have one moment, and a local time one that has passed: then the next one counts.
func (r Rule) byTheDay(after time.Time) time.Time {
	wall := floating(after.In(r.zone))
	for range 200 { // more due times than a missing or repeated hour can have
		next, err := gronx.NextTickAfter(r.cron, wall, false)
		if err != nil {
			return time.Time{}
		}
		if at := local(next, r.zone); at.After(after) {
			return at
		}
		wall = next
	}
	return time.Time{}
}

// byTheClock looks for the next time within each stretch of one offset.
func (r Rule) byTheClock(after time.Time) time.Time {
	from, including := after, false
	for range 100 {
		in := from.In(r.zone)
		_, offset := in.Zone()
		_, end := in.ZoneBounds()
		next, err := gronx.NextTickAfter(r.cron, floating(in), including)
		if err != nil {
			return time.Time{}
		}
		at := next.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || at.Before(end) {
			return at.In(r.zone)
		}
		from, including = end, true
	}
	return time.Time{}
}

// floating is what a clock shows, as if it were in UTC.
func floating(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// local is the moment at which a clock shows a time: the first of two, and of a time
// that does not exist, the moment at which the clock jumps over it.
func local(wall time.Time, loc *time.Location) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, loc)
	if !floating(at).Equal(floating(wall)) {
		start, end := at.ZoneBounds()
		if !start.IsZero() && at.Sub(start) < 24*time.Hour {
			return start
		}
		return end
	}
	if start, _ := at.ZoneBounds(); !start.IsZero() {
		_, before := start.Add(-time.Second).In(loc).Zone()
		if first := floating(wall).Add(-time.Duration(before) * time.Second); first.Before(start) {
			return first.In(loc)
		}
	}
	return at
}
