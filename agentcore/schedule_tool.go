package agentcore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/schedule"
	"parley/agentcore/tool"
	"parley/store/record"
)

// Schedules keeps work that begins by itself; *store.DB is one.
type Schedules interface {
	// CreateSchedule fails with an error that matches record.ErrConflict if the
	// conversation has too many.
	CreateSchedule(ctx context.Context, s record.Schedule) (record.Schedule, error)
	Schedules(ctx context.Context, c record.ConversationID) ([]record.Schedule, error)
	SetSchedule(ctx context.Context, s record.Schedule) error
	DeleteSchedule(ctx context.Context, c record.ConversationID, id record.ScheduleID) error
}

const (
	scheduleName   = "schedule"
	maxTaskPrompt  = 8000 // characters
	scheduleManage = "Only the person who made this schedule, or an admin, may change it."
)

type scheduleInput struct {
	Action string            `json:"action" enum:"create,list,pause,resume,run,delete" jsonschema:"run begins one run now"`
	ID     record.ScheduleID `json:"id,omitempty" jsonschema:"the schedule's number, for all but create and list"`
	Title  string            `json:"title,omitempty" jsonschema:"create: a few words"`
	Prompt string            `json:"prompt,omitempty" jsonschema:"create: what is to be done each time, complete in itself: a run knows nothing of this conversation"`
	In     string            `json:"in,omitempty" jsonschema:"create: once, after a duration from the user's message, such as 45m or 2h30m"`
	At     string            `json:"at,omitempty" jsonschema:"create: once, at a local time such as 2026-03-29 09:30"`
	Every  string            `json:"every,omitempty" jsonschema:"create: again and again, at least 1m, such as 90m or 24h of real time"`
	Cron   string            `json:"cron,omitempty" jsonschema:"create: five fields, minute hour day month weekday, in local time; use it for times of day"`
	Zone   string            `json:"zone,omitempty" jsonschema:"create: the IANA zone of local times; leave it out for the zone of the conversation"`
	Missed string            `json:"missed,omitempty" enum:"once,skip,all" jsonschema:"create: due times that are missed while parley is down are run once (the default), not at all, or each"`
}

// scheduleTool is the tool for work that begins by itself. Without a turn it only
// declares itself.
func (a *Agent) scheduleTool(t *turn) (tool.Tool, error) {
	spec := tool.Spec{Needs: tool.ScheduleWork}
	spec.Name = scheduleName
	spec.Description = "Do something later or regularly: reminders, reports, checks. A run is a turn of its own in this chat with nobody present; what it answers is posted here. " +
		"Give exactly one of in, at, every and cron. Tell the user the number and when it is due next, as the result says."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in scheduleInput) (tool.Result, error) {
		switch {
		case t == nil:
			return tool.Failure("This works only inside a turn."), nil
		case in.Action == "create":
			return t.createSchedule(ctx, c, in)
		case in.Action == "list":
			return t.listSchedules(ctx)
		}
		return t.changeSchedule(ctx, c, in)
	})
}

// localZone is the zone of the times that the model sees, by its name.
func (a *Agent) localZone() string {
	if name := a.deps.Location.String(); name != "Local" {
		return name
	}
	return "UTC"
}

func (t *turn) createSchedule(ctx context.Context, c tool.Call, in scheduleInput) (tool.Result, error) {
	if t.row.Trust != record.TrustUser {
		return tool.Failure("Only a turn that a person has begun may make schedules."), nil
	}
	prompt := strings.TrimSpace(in.Prompt)
	if prompt == "" || len([]rune(prompt)) > maxTaskPrompt {
		return tool.Failure("A schedule needs a prompt of 1 to %d characters.", maxTaskPrompt), nil
	}
	now := t.a.deps.Now()
	when, problem := t.when(in)
	if problem != "" {
		return tool.Failure("%s", problem), nil
	}
	s := record.Schedule{
		Conversation: t.row.Conversation, Creator: c.Person, Title: cmp.Or(clipLine(in.Title, 80), clipLine(prompt, 80)), Prompt: prompt, When: when,
		Zone: cmp.Or(in.Zone, t.a.localZone()), Missed: cmp.Or(record.Missed(in.Missed), record.MissedOnce), CreatedAt: now,
	}
	rule, err := schedule.Parse(s.When, s.Zone, s.CreatedAt)
	if err != nil {
		return tool.Failure("Nothing was scheduled: %v.", err), nil
	}
	if s.NextAt = rule.Next(now); s.NextAt.IsZero() {
		return tool.Failure("Nothing was scheduled: %s (%s) has passed; it is %s.", when, s.Zone, schedule.Local(now, s.Zone)), nil
	}
	s, err = t.a.deps.Schedules.CreateSchedule(ctx, s)
	if errors.Is(err, record.ErrConflict) {
		return tool.Failure("This chat has as many schedules as it may have. Delete one first."), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: fmt.Sprintf("Schedule %d is made: %s.", s.ID, schedule.Describe(s))}, nil
}

// when reads the one time that is given. "in" counts from what the person wrote, not
// from when the model got to it (TRN-003).
func (t *turn) when(in scheduleInput) (when, problem string) {
	var given []string
	for kind, text := range map[string]string{"at": in.At, "every": in.Every, "cron": in.Cron, "in": in.In} {
		if text = strings.TrimSpace(text); text != "" {
			given = append(given, kind+" "+text)
		}
	}
	if len(given) != 1 {
		return "", "Give exactly one of in, at, every and cron."
	}
	after, relative := strings.CutPrefix(given[0], "in ")
	if !relative {
		return given[0], ""
	}
	d, err := time.ParseDuration(after)
	if err != nil || d <= 0 {
		return "", fmt.Sprintf("%q is not a duration such as 45m or 2h30m.", after)
	}
	from, now := t.a.deps.Now(), t.a.deps.Now()
	for _, m := range slices.Backward(t.rows) {
		if m.Role == llm.User && m.Kind == record.KindSaid && m.Turn == t.row.ID {
			from = m.CreatedAt
			break
		}
	}
	at := from.Add(d)
	if at.Before(now) {
		at = now // the turn took longer than that
	}
	return "at " + at.UTC().Add(time.Second).Truncate(time.Second).Format(time.RFC3339), ""
}

func (t *turn) listSchedules(ctx context.Context) (tool.Result, error) {
	list, err := t.a.deps.Schedules.Schedules(ctx, t.row.Conversation)
	if err != nil || len(list) == 0 {
		return tool.Result{Text: "There are no schedules in this chat."}, err
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%d %q: %s. Prompt: %s\n", s.ID, s.Title, schedule.Describe(s), clipLine(s.Prompt, 200))
	}
	return tool.Result{Text: b.String()}, nil
}

func (t *turn) changeSchedule(ctx context.Context, c tool.Call, in scheduleInput) (tool.Result, error) {
	list, err := t.a.deps.Schedules.Schedules(ctx, t.row.Conversation)
	if err != nil {
		return tool.Result{}, err
	}
	i := slices.IndexFunc(list, func(s record.Schedule) bool { return s.ID == in.ID })
	switch {
	case i < 0:
		return tool.Failure("This chat has no schedule %d.", in.ID), nil
	case t.row.Trust != record.TrustUser:
		return tool.Failure("Only a turn that a person has begun may change schedules."), nil
	case list[i].Creator != c.Person && !c.Role.Admin():
		return tool.Failure(scheduleManage), nil
	}
	s := list[i]
	switch in.Action {
	case "delete":
		if err := t.a.deps.Schedules.DeleteSchedule(ctx, s.Conversation, s.ID); err != nil && !errors.Is(err, record.ErrNotFound) {
			return tool.Result{}, err
		}
		return tool.Result{Text: fmt.Sprintf("Schedule %d is deleted.", s.ID)}, nil
	case "pause":
		s = schedule.Paused(s, "paused on request")
	case "run":
		s.Asked = true
	case "resume":
		if s, err = schedule.Resumed(s, t.a.deps.Now()); err != nil {
			return tool.Failure("Schedule %d cannot be resumed: %v.", s.ID, err), nil
		}
	}
	if err := t.a.deps.Schedules.SetSchedule(ctx, s); err != nil {
		return tool.Result{}, err
	}
	if s.Asked {
		return tool.Result{Text: fmt.Sprintf("Schedule %d runs once when this turn is over.", s.ID)}, nil
	}
	return tool.Result{Text: fmt.Sprintf("Schedule %d: %s.", s.ID, schedule.Describe(s))}, nil
}
