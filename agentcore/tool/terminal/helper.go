package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// helperWord is the first argument of a process that parley starts of itself.
const helperWord = "__tool"

// Helper is the whole program if it was started as a helper of this package: the one
// that puts itself into the sandbox and becomes a command, or the one that outlives
// parley to end its commands. args are without the program's name; ran says whether
// it was one.
func Helper(args []string) (code int, ran bool) {
	if len(args) < 3 || args[0] != helperWord {
		return 0, false
	}
	switch args[1] {
	case "sandbox":
		err := becomeInSandbox(args[2], args[3:])
		fmt.Fprintln(os.Stderr, "parley: the command was not run:", err)
		return 126, true
	case "watch":
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with parley
		everything := &tree{root: -1, mark: args[2]}
		everything.end()
		return 0, true
	}
	return 2, true
}

// becomeInSandbox returns only with an error: without the sandbox nothing runs.
func becomeInSandbox(text string, args []string) error {
	var r rules
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	if len(args) == 0 {
		return exec.ErrNotFound
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if err := restrict(r); err != nil {
		return fmt.Errorf("the sandbox: %w", err)
	}
	return syscall.Exec(path, args, os.Environ())
}

// watcher is the process that ends all marked commands when parley is gone, however
// it went.
type watcher struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startWatcher(launcher, mark string) (*watcher, error) {
	cmd := exec.CommandContext(context.Background(), launcher, helperWord, "watch", mark)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &watcher{cmd, stdin}, cmd.Start()
}

func (w *watcher) close() {
	_ = w.stdin.Close()
	_ = w.cmd.Wait()
}
