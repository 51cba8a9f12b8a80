package agentcore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/prompt"
	"parley/agentcore/spending"
	"parley/agentcore/tool"
	"parley/store/record"
)

// Deps is what an agent works with. Model, DefaultModel, Engine and Asker are
// required; a nil Notes, Searcher or Todos leaves the tools on it out.
type Deps struct {
	// Model answers; retries and fallbacks are behind it.
	Model        llm.Provider
	DefaultModel llm.ModelID
	// Facts tells windows and limits; nil: the built-in table.
	Facts  func(llm.ModelID) llm.Facts
	Engine engine.ContextEngine
	// Tools are offered beside the agent's own ones, which are added by New.
	Tools *tool.Set
	// More are tools that come and go, asked for at the beginning of each turn; nil:
	// none do. The same tools must be the same bytes each time, for the model's cache.
	More   func() []tool.Tool
	Policy tool.Policy
	// Asker answers where the request has none. DenyAsker is one that never
	// consents.
	Asker Asker
	// ApprovalTimeout and ClarifyTimeout are how long a question stands; 0: 5
	// minutes and 1 hour.
	ApprovalTimeout, ClarifyTimeout time.Duration
	// Book keeps what is spent within its limits; nil: nothing is limited.
	Book     *spending.Book
	Notes    Notes
	Searcher Searcher
	Todos    Todos
	// Recall brings back what has left the window; nil: nothing does.
	Recall Recaller
	// SendFiles offers the tool by which files leave.
	SendFiles bool
	// Sight shows pictures to models.
	Sight Sight
	// Schedules keeps work that begins by itself; nil: there is none.
	Schedules Schedules
	// Delegation bounds subagents; the zero value allows none.
	Delegation DelegationConfig
	// Skills are the owner's instructions for certain tasks.
	Skills []prompt.Skill
	// Context is the workspace's file for the system prompt.
	Context prompt.ContextFile
	// Redact masks the configuration's secrets in what tools bring back; nil: only
	// what looks like a secret is masked.
	Redact func(string) string
	// Location is the zone of the times that the model sees; nil: the machine's.
	Location *time.Location
	Log      *zap.Logger
	Now      func() time.Time
}

// Agent runs turns. It holds nothing of a conversation and is safe for
// concurrent use.
type Agent struct {
	cfg     Config
	deps    Deps
	tools   *tool.Set // for turns with a fixed budget
	growing *tool.Set // with request_more_iterations
	running sync.WaitGroup
}

// New makes an agent. It fails if a dependency is missing or a tool's name is
// taken by one of the agent's own.
func New(cfg Config, deps Deps) (*Agent, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := deps.complete(); err != nil {
		return nil, err
	}
	personality, err := prompt.ReadPersonality(cfg.Personality)
	if err != nil {
		return nil, err
	}
	cfg.Personality = personality
	a := &Agent{cfg: cfg, deps: deps}
	own, err := a.ownTools()
	if err != nil {
		return nil, err
	}
	if a.tools, err = deps.Tools.Add(own...); err != nil {
		return nil, err
	}
	more, err := moreIterations(nil)
	if err != nil {
		return nil, err
	}
	if a.growing, err = a.tools.Add(more); err != nil {
		return nil, err
	}
	a.weighTools()
	return a, nil
}

// weighTools tells the owner when the tools alone leave a conversation little room:
// every request declares them.
func (a *Agent) weighTools() {
	tokens, window := engine.PromptTokens(record.Session{}, nil, a.tools.Specs()), a.deps.Facts(a.deps.DefaultModel).ContextWindow
	if window > 0 && tokens > window/4 {
		a.deps.Log.Warn("the tools take a large part of the model's window; name those that are needed in tools.enabled",
			zap.Int("tokens", tokens), zap.Int("window", window))
	}
}

// offered are the tools that a turn begins with, and keeps to its end.
func (a *Agent) offered(base *tool.Set) *tool.Set {
	if a.deps.More == nil {
		return base
	}
	set, err := base.Add(a.deps.More()...)
	if err != nil {
		a.deps.Log.Error("tools that have come are left out", zap.Error(err))
		return base
	}
	return set
}

// complete reports what is missing and fills in the defaults.
func (d *Deps) complete() error {
	switch {
	case d.Model == nil:
		return errors.New("agentcore: a model is required")
	case d.DefaultModel == "":
		return errors.New("agentcore: a default model is required")
	case d.Engine == nil:
		return errors.New("agentcore: a context engine is required")
	case d.Asker == nil:
		return errors.New("agentcore: an asker is required: without one nobody could be asked before a dangerous call")
	}
	if d.Facts == nil {
		d.Facts = func(m llm.ModelID) llm.Facts { return llm.FactsOf(m, nil) }
	}
	if d.Redact == nil {
		d.Redact = func(text string) string { return text }
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Location == nil {
		d.Location = time.Local
	}
	if d.ApprovalTimeout == 0 {
		d.ApprovalTimeout = 5 * time.Minute
	}
	if d.ClarifyTimeout == 0 {
		d.ClarifyTimeout = time.Hour
	}
	return nil
}

// Chat answers a text in a conversation of its own and returns the final text. A
// turn that was cut off by ctx is an error that matches context.Cause(ctx).
func (a *Agent) Chat(ctx context.Context, text string) (string, error) {
	res, err := a.RunConversation(ctx, Request{Message: text})
	if err != nil {
		return "", err
	}
	if res.State == record.TurnSuspended {
		if cause := context.Cause(ctx); cause != nil {
			return "", fmt.Errorf("agentcore: the turn was cut off: %w", cause)
		}
		return "", fmt.Errorf("agentcore: the turn was cut off: %s", res.Cause)
	}
	return res.Text, nil
}

// RunConversation runs one turn to its end and says how it ended; whatever goes
// wrong on the way is an end with a text for the user. A turn that ctx or the
// journal cut off comes back as Suspended, which is not an end: Resume goes on
// with it. An error means that the request itself cannot be run.
func (a *Agent) RunConversation(ctx context.Context, req Request) (*Result, error) {
	t, err := a.turn(req)
	if err != nil {
		return nil, err
	}
	return t.run(ctx)
}

// Resume goes on with a turn that was begun, possibly by a process that died. Its
// rows say where it stood: finished tools are kept, pending ones run, started
// ones get a result that says they may have happened, and an answer that was not
// committed is asked for again (RST-005).
func (a *Agent) Resume(ctx context.Context, req Request) (*Result, error) {
	if req.Journal == nil || req.Turn.ID == "" {
		return nil, errors.New("agentcore: a turn is resumed from its journal")
	}
	req.Message = ""
	t, err := a.turn(req)
	if err != nil {
		return nil, err
	}
	t.resumed = true
	return t.run(ctx)
}

// StopProcesses ends what the tools left running for a conversation, and says how
// much it was. It returns when all of it is gone, within a second.
func (a *Agent) StopProcesses(c record.ConversationID) (n int) {
	for _, name := range a.tools.Names() {
		if t, _ := a.tools.Get(name); t != nil {
			if s, ok := t.(tool.Stopper); ok {
				n += s.Stop(c)
			}
		}
	}
	return n
}

// Wait blocks until every tool goroutine has returned, those included that a
// stopped turn did not wait for.
func (a *Agent) Wait() { a.running.Wait() }
