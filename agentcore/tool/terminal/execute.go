package terminal

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// drainTime is how long output may still arrive after the last process is gone,
// or from one that could not be ended.
const drainTime = 200 * time.Millisecond

// ending is how a command ended.
type ending struct {
	exit   int    // -1 if a signal ended it
	signal string // its name
	cut    bool   // ctx ended first
	left   int    // processes that outlived the shell
}

// execute runs cmd in a session of its own and returns when it has ended or ctx
// has, with its whole tree gone. It never waits for the output's end of file,
// which a process far away can hold back.
func execute(ctx context.Context, cmd *exec.Cmd, mark string, out io.Writer) (ending, error) {
	if err := ctx.Err(); err != nil {
		return ending{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return ending{}, err
	}
	defer r.Close() // also ends the copying, which is waited for where it can be
	// One file for both keeps the order of what is printed. Stdin is left nil,
	// which is the null device.
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return ending{}, err
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(out, r) // ends at end of file or at the read deadline
	}()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	tree := newTree(cmd.Process.Pid, mark)
	var end ending
	select {
	case <-exited:
		end.left = tree.end()
	case <-ctx.Done():
		end.cut = true
		tree.end()
		select {
		case <-exited:
		case <-time.After(drainTime): // the kernel does not let it go
			end.exit, end.signal = -1, "none, it cannot be ended"
			return end, nil
		}
	}
	_ = r.SetReadDeadline(time.Now().Add(drainTime))
	<-copied
	end.exit = cmd.ProcessState.ExitCode()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		end.signal = s.Signal().String()
	}
	return end, nil
}
