// Package hook lets the owner's own programs watch every tool call. It guarantees:
//
//   - a call that a pre_tool command refuses does not run, and neither does one on
//     which a command fails, answers nonsense or takes too long;
//   - arguments that a command changes are what is judged, shown to people and run;
//   - a result that a post_tool command refuses, or fails on, is withheld;
//   - a command and all that it started is gone after its time.
//
// A command runs in a shell, in the folder of the configuration file, with a clean
// environment. It gets one JSON object on its standard input and answers with one, or
// with nothing, which allows.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/tool"
)

// answerLimit bounds what a command may answer, in bytes.
const answerLimit = 1 << 20

// Deps are what hooks work with.
type Deps struct {
	// Dir is the folder in which the commands run.
	Dir string
	Log *zap.Logger
}

// Hooks runs the commands of a Config.
type Hooks struct {
	cfg Config
	Deps
}

var _ tool.Hook = (*Hooks)(nil)

// New makes the hooks; nil if there are none.
func New(cfg Config, deps Deps) (*Hooks, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	if len(cfg.PreTool)+len(cfg.PostTool) == 0 {
		return nil, nil
	}
	return &Hooks{cfg, deps}, nil
}

// question is what a command is told.
type question struct {
	Event        string          `json:"event"` // pre_tool or post_tool
	Tool         string          `json:"tool"`
	Call         string          `json:"call"`
	Arguments    json.RawMessage `json:"arguments"`
	Conversation string          `json:"conversation"`
	Session      string          `json:"session"`
	Turn         string          `json:"turn"`
	Person       string          `json:"person"`
	Role         string          `json:"role"`
	Trust        string          `json:"trust"`
	Result       string          `json:"result,omitempty"`
	Failed       bool            `json:"failed,omitempty"`
}

// answer is what it may say.
type answer struct {
	Decision  string          `json:"decision"` // allow, or block; empty: allow
	Reason    string          `json:"reason"`
	Arguments json.RawMessage `json:"arguments"`
	Result    *string         `json:"result"`
}

func ask(event, name string, c tool.Call) question {
	return question{
		Event: event, Tool: name, Call: c.ID, Arguments: c.Arguments, Conversation: string(c.Conversation), Session: string(c.Session),
		Turn: string(c.Turn), Person: string(c.Person), Role: string(c.Role), Trust: string(c.Trust),
	}
}

// Before implements tool.Hook. Each command gets what the one before it has made of
// the arguments.
func (h *Hooks) Before(ctx context.Context, name string, c tool.Call) (tool.Change, error) {
	var change tool.Change
	for _, command := range h.cfg.PreTool {
		a, err := h.run(ctx, command, ask("pre_tool", name, c))
		switch {
		case ctx.Err() != nil:
			return change, context.Cause(ctx)
		case err != nil:
			h.Log.Error("a pre_tool hook failed; the call is blocked", zap.String("command", command), zap.String("tool", name), zap.Error(err))
			return tool.Change{Blocked: "a hook failed, which blocks"}, nil
		case a.Decision == "block":
			return tool.Change{Blocked: cmp.Or(a.Reason, "a hook gave no reason")}, nil
		case a.Arguments != nil:
			c.Arguments, change.Arguments = a.Arguments, a.Arguments
		}
	}
	return change, nil
}

// After implements tool.Hook.
func (h *Hooks) After(ctx context.Context, name string, c tool.Call, r tool.Result) tool.Result {
	for _, command := range h.cfg.PostTool {
		q := ask("post_tool", name, c)
		q.Result, q.Failed = r.Text, r.Failed
		if r.Untrusted != "" {
			q.Result = strings.TrimLeft(r.Text+"\n"+r.Untrusted, "\n")
		}
		a, err := h.run(ctx, command, q)
		switch {
		case err != nil:
			h.Log.Error("a post_tool hook failed; the result is withheld", zap.String("command", command), zap.String("tool", name), zap.Error(err))
			return tool.Failure("The tool ran, and its result is withheld: a hook failed.")
		case a.Decision == "block":
			return tool.Failure("The tool ran, and its result is withheld: %s", cmp.Or(a.Reason, "a hook gave no reason"))
		case a.Result != nil && r.Untrusted != "":
			r.Text, r.Untrusted = "", *a.Result // what others wrote stays framed
		case a.Result != nil:
			r.Text = *a.Result
		}
	}
	return r
}

// run asks one command.
func (h *Hooks) run(ctx context.Context, command string, q question) (a answer, err error) {
	in, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Stdin = h.Dir, bytes.NewReader(in)
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child that left the group may hold the output
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{&out}, &limited{&said}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %s", h.cfg.Timeout)
		}
		return a, fmt.Errorf("%w: %s", err, tool.Clip(strings.TrimSpace(said.String()), 500))
	}
	if len(bytes.TrimSpace(out.Bytes())) == 0 {
		return a, nil
	}
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fmt.Errorf("its answer is no JSON object of decision, reason, arguments, result: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, errors.New("its answer is more than one JSON object")
	}
	if a.Decision != "" && a.Decision != "allow" && a.Decision != "block" {
		return a, fmt.Errorf("its decision %q is neither allow nor block", a.Decision)
	}
	if a.Arguments != nil && !bytes.HasPrefix(a.Arguments, []byte("{")) {
		return a, errors.New("its arguments are no JSON object")
	}
	return a, nil
}

// limited is a buffer that fails when it is full.
type limited struct{ b *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > answerLimit {
		return 0, errors.New("hook: the answer is too long")
	}
	return l.b.Write(p)
}
