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
	cut    bool   // it was ended before it had finished
	left   int    // processes that outlived the shell
}

// running is a command with everything that it started.
type running struct {
	cmd    *exec.Cmd
	tree   *tree
	r      *os.File
	copied chan struct{}
	exited chan struct{}
}

// start runs cmd in a session of its own; its output goes to out.
func start(cmd *exec.Cmd, mark string, out io.Writer) (*running, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// One file for both keeps the order of what is printed. Stdin is left as it is;
	// nil is the null device.
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	p := &running{cmd: cmd, r: r, copied: make(chan struct{}), exited: make(chan struct{})}
	go func() {
		defer close(p.copied)
		_, _ = io.Copy(out, r) // ends at end of file or at the read deadline
	}()
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // how it ended is read from its state
	}()
	p.tree = newTree(cmd.Process.Pid, mark)
	return p, nil
}

// wait returns when the command has ended or ctx has, with its whole tree gone. It
// never waits for the output's end of file, which a process far away can hold back.
func (p *running) wait(ctx context.Context) ending {
	defer p.r.Close() // also ends the copying, which is waited for where it can be
	var end ending
	select {
	case <-p.exited:
		end.left = p.tree.end()
	case <-ctx.Done():
		end.cut = true
		p.tree.end()
		select {
		case <-p.exited:
		case <-time.After(drainTime): // the kernel does not let it go
			end.exit, end.signal = -1, "none, it cannot be ended"
			return end
		}
	}
	_ = p.r.SetReadDeadline(time.Now().Add(drainTime))
	<-p.copied
	end.exit = p.cmd.ProcessState.ExitCode()
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		end.signal = s.Signal().String()
	}
	return end
}

// execute is start and wait.
func execute(ctx context.Context, cmd *exec.Cmd, mark string, out io.Writer) (ending, error) {
	if err := ctx.Err(); err != nil {
		return ending{}, err
	}
	p, err := start(cmd, mark, out)
	if err != nil {
		return ending{}, err
	}
	return p.wait(ctx), nil
}
