package record

import (
	"time"

	"parley/gateway/chat"
)

// ScheduleID is short enough for people to type.
type ScheduleID int64

// Schedule is work that begins by itself at certain times, in the conversation that
// it was made in.
type Schedule struct {
	ID           ScheduleID
	Conversation ConversationID
	// Creator is whose rights it has, checked at each run.
	Creator chat.Person
	Title   string
	Prompt  string
	// When is "at TIME", "every DURATION" or "cron EXPRESSION", read in the IANA zone
	// Zone; see package schedule.
	When   string
	Zone   string
	Missed Missed
	State  ScheduleState
	// Reason says why it is not active.
	Reason string
	// NextAt is when it is due next; zero: never again by itself.
	NextAt time.Time
	// Asked says that somebody wants it to run once now.
	Asked bool
	// LastAt is when it last began, Failures how many runs failed in a row since.
	LastAt   time.Time
	Failures int
	// Runs and Skipped count due times.
	Runs, Skipped int
	CreatedAt     time.Time
}

// Missed is what becomes of due times at which nobody was there to run them.
type Missed string

// The policies. All is bounded to the newest ones.
const (
	MissedSkip Missed = "skip"
	MissedOnce Missed = "once"
	MissedAll  Missed = "all"
)

// ScheduleState is where a schedule stands.
type ScheduleState string

// The states. A schedule that is done is never due again.
const (
	ScheduleActive ScheduleState = "active"
	SchedulePaused ScheduleState = "paused"
	ScheduleDone   ScheduleState = "done"
)

// ScheduleStep is what becomes of a schedule that is looked at because it is due.
type ScheduleStep struct {
	// Due is the due time to run for now; zero: there is none to run.
	Due time.Time
	// Next, State and Reason are the schedule's from now on.
	Next   time.Time
	State  ScheduleState
	Reason string
	// Skipped counts the due times that are given up.
	Skipped int
}
