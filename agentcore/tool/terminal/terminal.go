// Package terminal is the tool that runs shell commands. It guarantees:
//
//   - when a call ends, however it ends, every process that it started is gone
//     within a second: asked with SIGTERM, killed after 200 ms, looked for again
//     until none is left. Ignoring signals, leaving the process group or session,
//     and holding the output open do not help (TOL-004, TOL-005, STP-007);
//   - a command sees no secret of parley: its environment is an allow-list (SEC-002);
//   - a command cannot wait for a person: no input, no terminal (TOL-006);
//   - whatever it prints, a bounded amount is kept in memory, the beginning and the
//     end; the whole of it is in a file of the working folder (TOL-003);
//   - a command in the background ends with its conversation's session, with /stop,
//     and with parley, however parley ends;
//   - where the machine can, commands run in a sandbox: they write their working
//     folder only, and see neither people's homes nor parley's own files.
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

// Deps are what the tools work with.
type Deps struct {
	// Workspace holds the working folders, which are the homes of commands too.
	Workspace tool.Workspace
	// Private are parley's own files and folders, which no command may touch.
	Private []string
	// Launcher is the program that is started for the sandbox and for watching: one
	// that begins with Helper, usually parley itself. Empty: there is no Landlock, and
	// commands may outlive a parley that is killed.
	Launcher string
	// Now is the clock for progress lines; nil: time.Now.
	Now func() time.Time
}

// input is what the model fills in.
type input struct {
	Command string `json:"command" jsonschema:"the command line, run by bash -c"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 120 if not given, at most 600"`
	// Background commands go on after the call.
	Background bool `json:"background,omitempty" jsonschema:"true: it keeps running (a server, a watcher); use the tool process to read, write or kill it"`
}

const description = `Run a shell command in this conversation's working folder and return what it printed (stdout and stderr) and its exit code.
It gets no input and no terminal, so use the non-interactive options of programs. Every process it starts is ended with it; what must keep running is started with background. A person approves first what does more than read files here. Long output is cut in the middle; the result says in which file the whole of it is.`

// Terminal makes the tools that run commands, and ends what they left running.
type Terminal struct {
	shell     string
	workspace tool.Workspace
	private   []string
	homes     []string
	sandbox   sandbox
	owner     string // begins the mark of every command of this process
	now       func() time.Time
	tools     []tool.Tool
	processes processes
}

// New makes the tools `terminal` and `process`. It fails if the machine has no
// shell, or not the sandbox that is asked for. Close ends what runs in the background.
func New(cfg Config, deps Deps) (*Terminal, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			return nil, errors.New("terminal: neither bash nor sh is in PATH")
		}
	}
	t := &Terminal{shell: shell, workspace: deps.Workspace, private: deps.Private, homes: homes(), owner: rand.Text() + ".", now: deps.Now}
	if t.now == nil {
		t.now = time.Now
	}
	if t.sandbox, err = newSandbox(cfg, deps.Launcher, slices.Concat(t.homes, t.private)); err != nil {
		return nil, err
	}
	spec := tool.Spec{ToolSpec: llm.ToolSpec{Name: "terminal", Description: description}, Needs: tool.Exec}
	run, err := tool.NewJudged(spec, t.judge, t.run)
	if err != nil {
		return nil, err
	}
	look, err := t.processTool()
	if err != nil {
		return nil, err
	}
	t.tools = []tool.Tool{run, look}
	return t, nil
}

// Tools are the tools.
func (t *Terminal) Tools() []tool.Tool { return slices.Clone(t.tools) }

// Sandbox says what commands run in.
func (t *Terminal) Sandbox() string { return t.sandbox.String() }

// homes are people's home folders: this account's and those beside it.
func homes() []string {
	out := []string{"/root"}
	add := func(dir string) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && dir != "/" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(home)
	}
	for _, base := range []string{"/home", "/Users"} {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			add(filepath.Join(base, e.Name()))
		}
	}
	return out
}

// judge says what a command line does. Only of bash is known what it makes of one.
func (t *Terminal) judge(c tool.Call, in input) tool.Judgement {
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

func (t *Terminal) run(ctx context.Context, c tool.Call, in input) (tool.Result, error) {
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
	cmd, mark, err := t.command(folder, in.Command)
	if err != nil {
		return tool.Failure("The command could not be started: %v", err), nil
	}
	if in.Background {
		return t.begin(ctx, c, in.Command, cmd, mark), nil
	}
	timeout := defaultTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Second, maxTimeout)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := newOutput(outputLimit, folder, &progress{show: c.Progress, now: t.now})
	end, err := execute(limited, cmd, mark, out)
	if err != nil {
		return tool.Failure("The command could not be started: %v", err), nil
	}
	return result(ctx, end, timeout, out), nil
}

// command makes the process of a command line, marked and in the sandbox.
func (t *Terminal) command(folder, line string) (*exec.Cmd, string, error) {
	if err := t.processes.watch(t.sandbox.launcher, t.owner); err != nil {
		return nil, "", err
	}
	scratch := filepath.Join(folder, scratchFolder)
	if err := os.Mkdir(scratch, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, "", err
	}
	sweep(folder, t.now())
	mark := t.owner + rand.Text()
	cmd, err := t.sandbox.command(folder, []string{t.shell, "-c", line})
	if err != nil {
		return nil, "", err
	}
	cmd.Env = environment(folder, mark)
	return cmd, mark, nil
}

// environment is everything that a command inherits.
func environment(folder, mark string) []string {
	lang := os.Getenv("LANG")
	if lang == "" {
		lang = "C.UTF-8"
	}
	path := strings.Join(searchPath(), string(filepath.ListSeparator))
	return []string{
		"PATH=" + path, "HOME=" + folder, "PWD=" + folder, "TMPDIR=" + filepath.Join(folder, scratchFolder), "LANG=" + lang, "TERM=dumb", markName + "=" + mark,
	}
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
	switch file, whole := out.keep(); {
	case file != "" && whole:
		note += paging("the whole output", out.total, file)
	case file != "":
		note += paging("the first part of the output", out.spool.written, file)
	}
	r.Untrusted = strings.TrimRight(tool.Clip(out.text(), outputLimit), "\n")
	if r.Untrusted == "" {
		note = "no output; " + note
	}
	r.Text = "[" + note + "]"
	return r
}

// paging says how to look at what was left out. It uses programs that only read.
func paging(what string, bytes int, file string) string {
	return fmt.Sprintf("; %s, %d bytes, is in %s: see parts with `tail -n +LINE %s | head -n 200` or `tail -c +BYTE %s | head -c 20000`, find with `grep -n`", what, bytes, file, file, file)
}
