package agentcore

import (
	"context"
	"fmt"
	"time"

	"parley/agentcore/tool"
)

// ownTools makes the agent-level tools for which the dependencies are there.
// Those that work on a turn are only declared here, see turn.resolve.
func (a *Agent) ownTools() ([]tool.Tool, error) {
	makers := []func() (tool.Tool, error){a.currentTime, func() (tool.Tool, error) { return clarify(nil) }}
	if a.deps.Notes != nil {
		makers = append(makers, a.memoryTool)
	}
	if a.deps.Searcher != nil {
		makers = append(makers, func() (tool.Tool, error) { return a.sessionSearch(nil) })
	}
	if a.deps.Todos != nil {
		makers = append(makers, a.todo)
	}
	if a.deps.Schedules != nil {
		makers = append(makers, func() (tool.Tool, error) { return a.scheduleTool(nil) })
	}
	if a.deps.Delegation.MaxDepth > 0 {
		makers = append(makers, func() (tool.Tool, error) { return a.delegate(nil) })
	}
	if a.deps.SendFiles {
		makers = append(makers, func() (tool.Tool, error) { return sendFile(nil) })
	}
	if len(a.deps.Skills) > 0 {
		makers = append(makers, a.skillTool)
	}
	tools := make([]tool.Tool, 0, len(makers))
	for _, make := range makers {
		t, err := make()
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

type currentTimeInput struct {
	Zone string `json:"zone,omitempty" jsonschema:"an IANA zone such as Europe/Berlin; leave it out for the zone of the conversation"`
}

// currentTime tells the time, which the cached prompt cannot (TRN-003).
func (a *Agent) currentTime() (tool.Tool, error) {
	spec := tool.Spec{Parallel: true, ReadOnly: true, Waits: true}
	spec.Name = "current_time"
	spec.Description = "The date and time now, with weekday and zone. Each message of the user carries the time it was sent; call this when you need the present moment or another zone."
	return tool.New(spec, func(_ context.Context, _ tool.Call, in currentTimeInput) (tool.Result, error) {
		loc := a.deps.Location
		if in.Zone != "" {
			l, err := time.LoadLocation(in.Zone)
			if err != nil {
				return tool.Failure("There is no zone %q. Use an IANA name such as Asia/Tokyo.", in.Zone), nil
			}
			loc = l
		}
		now := a.deps.Now().In(loc)
		_, week := now.ISOWeek()
		return tool.Result{Text: fmt.Sprintf("%s (week %d)", now.Format("Monday, 2 January 2006, 15:04:05 -07:00"), week)}, nil
	})
}
