// Package terminal is the tool that runs shell commands. It guarantees:
//
//   - when a call ends, however it ends, every process that it started is gone
//     within a second: asked with SIGTERM, killed after 200 ms, looked for again
//     until none is left. Ignoring signals, leaving the process group or session,
//     and holding the output open do not help (TOL-004, TOL-005, STP-007);
//   - a command sees no secret of parley: its environment is an allow-list (SEC-002);
//   - a command cannot wait for a person: no input, no terminal (TOL-006);
//   - whatever it prints, a bounded amount is kept: the beginning and the end (TOL-003).
package terminal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/agentcore/tool/shell"
)

const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 600 * time.Second
	// outputLimit is bytes of output kept for the model.
	outputLimit = 32 << 10
)

// Deps are what the tool works with.
type Deps struct {
	// Workspace holds the working folders, which are the homes of commands too.
	Workspace tool.Workspace
	// Private are parley's own files and folders, which no command may touch.
	Private []string
	// Now is the clock for progress lines; nil: time.Now.
	Now func() time.Time
}

// input is what the model fills in.
type input struct {
	Command string `json:"command" jsonschema:"the command line, run by bash -c"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 120 if not given, at most 600"`
}

const description = `Run a shell command in this conversation's working folder and return what it printed (stdout and stderr) and its exit code.
It gets no input and no terminal, so use the non-interactive options of programs. Every process it starts is ended with it: nothing keeps running in the background. A person approves first what does more than read files here. Long output is cut in the middle; write it to a file and look at parts.`

type terminal struct {
	shell     string
	workspace tool.Workspace
	private   []string
	homes     []string
	now       func() time.Time
}

// New makes the tool `terminal`. It fails if the machine has no shell.
func New(cfg Config, deps Deps) (tool.Tool, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			return nil, errors.New("terminal: neither bash nor sh is in PATH")
		}
	}
	t := &terminal{shell: shell, workspace: deps.Workspace, private: deps.Private, homes: []string{"/root"}, now: deps.Now}
	if home, err := os.UserHomeDir(); err == nil {
		t.homes = append(t.homes, home)
	}
	if t.now == nil {
		t.now = time.Now
	}
	spec := tool.Spec{ToolSpec: llm.ToolSpec{Name: "terminal", Description: description}, Needs: tool.Exec}
	return tool.NewJudged(spec, t.judge, t.run)
}

// judge says what a command line does. Only of bash is known what it makes of one.
func (t *terminal) judge(c tool.Call, in input) tool.Judgement {
	folder, err := t.workspace.Folder(c.Conversation)
	if err != nil {
		return tool.Judgement{Needs: tool.Exec, Danger: tool.Opaque, Reason: "it runs nowhere"}
	}
	found := shell.Judge(in.Command, shell.Place{Folder: folder, Homes: t.homes, Private: t.private})
	if found.Danger == tool.Safe && filepath.Base(t.shell) != "bash" {
		found = shell.Finding{Danger: tool.Ordinary, Reason: "it runs a command"}
	}
	return tool.Judgement{Needs: tool.Exec, Danger: found.Danger, Reason: found.Reason, Pattern: in.Command}
}

func (t *terminal) run(ctx context.Context, c tool.Call, in input) (tool.Result, error) {
	if strings.TrimSpace(in.Command) == "" {
		return tool.Failure("The command is empty."), nil
	}
	if strings.ContainsRune(in.Command, 0) {
		return tool.Failure("The command contains a NUL byte."), nil
	}
	folder, err := t.workspace.Folder(c.Conversation)
	if err != nil {
		return tool.Failure("The working folder cannot be used: %v", err), nil
	}
	timeout := defaultTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Second, maxTimeout)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := newOutput(outputLimit, &progress{show: c.Progress, now: t.now})
	mark := rand.Text()
	cmd := exec.Command(t.shell, "-c", in.Command)
	cmd.Dir = folder
	cmd.Env = environment(folder, mark)
	end, err := execute(limited, cmd, mark, out)
	if err != nil {
		return tool.Failure("The command could not be started: %v", err), nil
	}
	return result(ctx, end, timeout, out), nil
}

// environment is everything that a command inherits.
func environment(folder, mark string) []string {
	path, lang := os.Getenv("PATH"), os.Getenv("LANG")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	if lang == "" {
		lang = "C.UTF-8"
	}
	// A relative folder would let a file here stand for a program.
	folders := slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return !filepath.IsAbs(d) })
	path = strings.Join(folders, string(filepath.ListSeparator))
	return []string{"PATH=" + path, "HOME=" + folder, "PWD=" + folder, "LANG=" + lang, "TERM=dumb", markName + "=" + mark}
}

// result puts the end of a command into words. It has no duration in it: the same
// command with the same output is the same result, which stall detection needs.
func result(ctx context.Context, end ending, timeout time.Duration, out *output) tool.Result {
	r := tool.Result{Failed: true}
	var note string
	switch {
	case end.cut && ctx.Err() != nil:
		r.Outcome = "interrupted"
		note = "stopped before it had finished"
	case end.cut:
		note = fmt.Sprintf("ended after %s, unfinished; if it waited for input, it cannot get any", timeout)
	case end.exit < 0:
		note = "ended by a signal: " + end.signal
	default:
		r.Failed = end.exit != 0
		note = fmt.Sprintf("exit code %d", end.exit)
	}
	if end.left > 0 && !end.cut {
		note += fmt.Sprintf("; processes left behind and ended: %d", end.left)
	}
	text := strings.TrimRight(tool.Clip(out.text(), outputLimit), "\n")
	if text == "" {
		text = "(no output)"
	}
	r.Text = text + "\n[" + note + "]"
	return r
}
