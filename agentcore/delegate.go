package agentcore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

const delegateName = "delegate_task"

const (
	// maxTask bounds a task with what belongs to it, and taskResult what comes back of
	// it, in bytes.
	maxTask    = 20_000
	taskResult = 16_000
)

// DelegationConfig is `delegation:`, the bounds of subagents.
type DelegationConfig struct {
	// MaxIterations bounds the model calls of one subagent, MaxConcurrent how many an
	// agent has at a time.
	MaxIterations int `yaml:"max_iterations"`
	MaxConcurrent int `yaml:"max_concurrent"`
	// MaxDepth is how deep subagents may have subagents; 1: only the agent itself has
	// some, 0: there are none.
	MaxDepth int `yaml:"max_depth"`
}

// DefaultDelegation is what holds where the file says nothing.
func DefaultDelegation() DelegationConfig {
	return DelegationConfig{MaxIterations: 50, MaxConcurrent: 3, MaxDepth: 1}
}

// Validate reports every wrong value with its key and what is allowed.
func (c DelegationConfig) Validate() []error {
	if c.MaxIterations < 1 || c.MaxConcurrent < 1 || c.MaxDepth < 0 {
		return []error{errors.New("delegation: max_iterations and max_concurrent must be at least 1, max_depth at least 0")}
	}
	return nil
}

type delegatedTask struct {
	Goal    string   `json:"goal" jsonschema:"what is to be brought back, complete in itself: the subagent knows nothing of this conversation"`
	Context string   `json:"context,omitempty" jsonschema:"what it has to know: names, paths, decisions, what was tried already"`
	Tools   []string `json:"tools,omitempty" jsonschema:"the names of the tools it may use; leave it out for all that a subagent can have"`
}

type delegateInput struct {
	Tasks []delegatedTask `json:"tasks" jsonschema:"one or more independent tasks; they run beside each other"`
}

// delegate is the tool that gives work to subagents. Without a turn it only declares
// itself. A call that a crash broke off goes on where its subagents were.
func (a *Agent) delegate(t *turn) (tool.Tool, error) {
	c := a.deps.Delegation
	spec := tool.Spec{Needs: tool.Spawn, Waits: true, Resumes: true}
	spec.Name = delegateName
	spec.Description = fmt.Sprintf("Give tasks to subagents, each with a context of its own, and wait for what they bring back. Use it for work that would fill this conversation with "+
		"intermediate results (research, reading much, trying things out) and for independent parts that can be done at once; do small things yourself. A subagent sees only its goal "+
		"and context, cannot ask anybody, has at most %d model calls, and only its last message comes back: say what that must contain. At most %d tasks a call.", c.MaxIterations, c.MaxConcurrent)
	return tool.New(spec, func(ctx context.Context, call tool.Call, in delegateInput) (tool.Result, error) {
		if t == nil {
			return tool.Failure("This works only inside a turn."), nil
		}
		return t.delegate(ctx, call, in.Tasks)
	})
}

// delegate runs the tasks beside each other and tells their results in order.
func (t *turn) delegate(ctx context.Context, c tool.Call, tasks []delegatedTask) (tool.Result, error) {
	if problem := t.unfit(tasks); problem != "" {
		return tool.Failure("Nothing was started: %s", problem), nil
	}
	ends := make([]taskEnd, len(tasks))
	var running sync.WaitGroup
	for i := range tasks {
		running.Go(func() { ends[i] = t.task(ctx, c, i, tasks[i]) })
	}
	running.Wait()
	var b strings.Builder
	failed := 0
	for i, e := range ends {
		if e.err != nil {
			return tool.Result{}, e.err
		}
		if e.failed {
			failed++
		}
		if len(ends) > 1 {
			fmt.Fprintf(&b, "## Task %d: %s\n", i+1, clipLine(tasks[i].Goal, 120))
		}
		b.WriteString(tool.Clip(e.text, min(taskResult, resultLimit/len(ends)-200)) + "\n\n")
	}
	return tool.Result{Text: strings.TrimSpace(b.String()), Failed: failed == len(ends)}, nil
}

// unfit says why tasks cannot be started; all of them or none are.
func (t *turn) unfit(tasks []delegatedTask) string {
	most := t.a.deps.Delegation.MaxConcurrent
	switch {
	case len(tasks) == 0:
		return "there is no task."
	case len(tasks) > most:
		return fmt.Sprintf("%d tasks are more than the %d that may run at a time. Send %d now and the others afterwards.", len(tasks), most, most)
	}
	offered := t.forSubagents().Names()
	for i, task := range tasks {
		if strings.TrimSpace(task.Goal) == "" {
			return fmt.Sprintf("task %d has no goal.", i+1)
		}
		if n := len(task.Goal) + len(task.Context); n > maxTask {
			return fmt.Sprintf("task %d has %d bytes, at most %d fit. Put the material into a file and name it.", i+1, n, maxTask)
		}
		for _, name := range task.Tools {
			if !slices.Contains(offered, name) {
				return fmt.Sprintf("task %d names the tool %q; a subagent can have %s.", i+1, name, strings.Join(offered, ", "))
			}
		}
	}
	return ""
}

// forSubagents are the turn's tools without those that speak to people, outlast the
// task or are about the conversation, which stay with the agent that talks to them.
func (t *turn) forSubagents() *tool.Set {
	return t.tools.Only(func(s tool.Spec) bool {
		switch {
		case s.Name == delegateName:
			return t.req.depth+1 < t.a.deps.Delegation.MaxDepth
		case s.Name == memoryName || s.Name == moreIterationsName || s.Interactive:
			return false
		}
		return s.Needs&(tool.SendFiles|tool.ScheduleWork|tool.Configure) == 0
	})
}

// taskEnd is what became of a task; err means that the turn cannot go on.
type taskEnd struct {
	text   string
	failed bool
	err    error
}

// task runs one subagent to its end, from where it was left if it was begun before.
// It is the door of the subagent: a panic is a result.
func (t *turn) task(ctx context.Context, c tool.Call, i int, task delegatedTask) (end taskEnd) {
	defer func() {
		if r := recover(); r != nil {
			ref := reference()
			t.log.Error("subagent panicked", zap.String("reference", ref), zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			end = taskEnd{text: "The subagent failed with an internal error (reference " + ref + ").", failed: true}
		}
	}()
	sink := &taskSink{t: t, call: llm.ToolCall{ID: c.ID, Name: delegateName}, task: i, goal: clipLine(task.Goal, 60)}
	d, j, err := t.req.Journal.Delegate(ctx, record.Delegation{
		Parent: t.row.ID, CallID: c.ID, Task: i, Title: clipLine(task.Goal, 120), Turn: t.childRow(),
		Message: record.Message{
			Role: llm.User, Content: taskText(task), Importance: history.Importance(llm.User, task.Goal), CreatedAt: t.a.deps.Now(),
		},
	})
	if err != nil {
		return taskEnd{err: err}
	}
	if d.Turn.State.Ended() {
		sink.end(d.Turn.State)
		return ended(d.Turn.State, d.Text)
	}
	child, err := t.child(d, j, task, sink)
	if err != nil {
		return taskEnd{err: err}
	}
	res, err := child.run(ctx)
	switch {
	case err != nil:
		return taskEnd{err: err}
	case res.State == record.TurnSuspended:
		return taskEnd{err: errors.Join(errSubagent, res.Err)}
	}
	sink.end(res.State)
	return ended(res.State, res.Text)
}

// errSubagent is a subagent that was cut off, and its turn with it.
var errSubagent = errors.New("agentcore: a subagent was cut off")

// childRow is what a subagent's turn begins with: the person, the trust and the place
// of the turn that it works for, and at most as many model calls as that may have.
func (t *turn) childRow() record.Turn {
	n := min(t.a.deps.Delegation.MaxIterations, max(t.row.Budget.Initial, t.row.Budget.Cap))
	return record.Turn{
		Conversation: t.row.Conversation, Budget: record.Budget{Initial: n, Cap: n}, Person: t.row.Person, Trust: t.row.Trust,
		Address: t.row.Address, Reply: t.row.Reply, Source: t.row.Source,
	}
}

// child makes the run of a subagent.
func (t *turn) child(d record.Delegated, j Journal, task delegatedTask, sink *taskSink) (*turn, error) {
	child, err := t.a.turn(Request{
		Turn: d.Turn, Conversation: t.req.Conversation, Journal: j, Sink: sink, Role: t.req.Role, Kind: t.req.Kind, depth: t.req.depth + 1,
		Asker: taskAsker{asker: t.req.Asker, child: d.Turn.ID, goal: sink.goal},
	})
	if err != nil {
		return nil, err
	}
	child.resumed = !d.New
	child.tools = t.forSubagents().Only(func(s tool.Spec) bool { return len(task.Tools) == 0 || slices.Contains(task.Tools, s.Name) })
	return child, nil
}

func taskText(task delegatedTask) string {
	text := strings.TrimSpace(task.Goal)
	if c := strings.TrimSpace(task.Context); c != "" {
		text += "\n\nWhat you have to know:\n" + c
	}
	return text
}

// ended puts the end of a subagent into words: there is always some (SUB-003).
func ended(s record.TurnState, text string) taskEnd {
	text = strings.TrimSpace(text)
	silent := text == ""
	if silent {
		text = "(It said nothing.)"
	}
	switch s {
	case record.TurnExhausted:
		return taskEnd{text: "The subagent used up its model calls before it was done. Its last words:\n" + text}
	case record.TurnFailed:
		return taskEnd{text: "The subagent failed: " + text, failed: true}
	case record.TurnInterrupted:
		return taskEnd{text: "The subagent was stopped before it was done. Its last words:\n" + text, failed: true}
	default:
		return taskEnd{text: text, failed: silent}
	}
}

// taskSink shows what a subagent does as one line of its parent's call.
type taskSink struct {
	t    *turn
	call llm.ToolCall
	task int
	goal string
}

// Emit implements Sink.
func (s *taskSink) Emit(ev Event) {
	switch ev := ev.(type) {
	case ToolStarted:
		s.say(ev.Summary)
	case SubagentProgress:
		if ev.State == "" {
			s.say(ev.Goal + " · " + ev.Line)
		}
	case Thinking:
		if ev.On {
			s.say("thinking")
		}
	case Status:
		if ev.Visible && ev.Text != "" {
			s.say(ev.Text)
		}
	}
}

func (s *taskSink) say(line string) {
	s.t.report(SubagentProgress{Call: s.call, Task: s.task, Goal: s.goal, Line: clipLine(line, 120)})
}

func (s *taskSink) end(state record.TurnState) {
	s.t.report(SubagentProgress{Call: s.call, Task: s.task, Goal: s.goal, State: state})
}

// taskAsker asks what a subagent asks in its parent's name, and says who wants to
// know. The ids of calls are unique in a session only.
type taskAsker struct {
	asker Asker
	child record.TurnID
	goal  string
}

// Ask implements Asker.
func (a taskAsker) Ask(ctx context.Context, q record.Approval) (record.Approval, error) {
	q.CallID = string(a.child) + "/" + q.CallID
	q.Question = "A subagent asks, whose task is `" + strings.ReplaceAll(a.goal, "`", "'") + "`:\n\n" + q.Question
	return a.asker.Ask(ctx, q)
}
