package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	// graceTime is how long a server has after its input has ended, and once more after
	// SIGTERM, before its group is killed.
	graceTime = 300 * time.Millisecond
	// messageLimit is bytes of one message of a server.
	messageLimit = 8 << 20
)

// process is a server that was started: a process group of its own, which is gone
// when end returns, and dies with parley where the kernel sees to that.
type process struct {
	cmd    *exec.Cmd
	input  *os.File
	output *io.PipeReader // only whole JSON messages
	exited chan struct{}
	reads  sync.WaitGroup
	ours   []*os.File // the ends that we read

	mu   sync.Mutex
	last string // the last line of its stderr
}

// startProcess runs a server's command. redact covers secrets in what it prints.
func startProcess(cfg ServerConfig, log *zap.Logger, redact func(string) string) (*process, error) {
	p := &process{cmd: exec.Command(cfg.Command, cfg.Args...), exited: make(chan struct{})}
	p.cmd.Env = environment(cfg)
	p.cmd.SysProcAttr = attributes()
	in, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		closeAll(in, input)
		return nil, err
	}
	complaints, stderr, err := os.Pipe()
	if err != nil {
		closeAll(in, input, out, stdout)
		return nil, err
	}
	p.input, p.ours = input, []*os.File{out, complaints}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, stdout, stderr
	err = p.start()
	closeAll(in, stdout, stderr)
	if err != nil {
		closeAll(input, out, complaints)
		return nil, err
	}
	r, w := io.Pipe()
	p.output = r
	p.reads.Go(func() { filter(out, w, log, redact) })
	p.reads.Go(func() { p.listen(complaints, log, redact) })
	return p, nil
}

// start starts the command on a thread that lives as long as it does: the kernel ties
// a child's death to the thread that made it.
func (p *process) start() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended does not matter: a server is not to end
			close(p.exited)
		}
	}()
	return <-started
}

// end closes the server's input, then asks and at last kills its group. What it has
// started stays in the group and goes with it.
func (p *process) end() {
	_ = p.input.Close()
	if !p.gone(graceTime) {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		p.gone(graceTime)
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
	closeAll(p.ours...)
	_ = p.output.Close()
	p.reads.Wait()
}

func (p *process) gone(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// environment is everything that a server inherits.
func environment(cfg ServerConfig) []string {
	var env []string
	for _, name := range []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, value := range cfg.Env {
		env = append(env, name+"="+value.Reveal())
	}
	slices.Sort(env)
	return env
}

// filter passes on what is a message. A server that prints something else, as many
// do when they start, would end the session.
func filter(from io.Reader, to *io.PipeWriter, log *zap.Logger, redact func(string) string) {
	err := eachLine(from, messageLimit, func(line []byte) error {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) {
			_, err := to.Write(append(trimmed, '\n'))
			return err
		}
		log.Debug("the server printed what is no message", zap.String("line", redact(clean(string(line), 200))))
		return nil
	})
	_ = to.CloseWithError(cmp.Or(err, io.EOF))
}

// listen logs what the server complains of.
func (p *process) listen(from io.Reader, log *zap.Logger, redact func(string) string) {
	_ = eachLine(from, 4<<10, func(line []byte) error {
		text := redact(clean(string(line), 300))
		if text != "" {
			log.Debug("the server says", zap.String("line", text))
			p.mu.Lock()
			p.last = text
			p.mu.Unlock()
		}
		return nil
	})
}

// complaint is the last thing that the server said.
func (p *process) complaint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// eachLine calls do with each line; one longer than limit is left out.
func eachLine(from io.Reader, limit int, do func([]byte) error) error {
	r := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	long := false
	for {
		chunk, err := r.ReadSlice('\n')
		if len(line)+len(chunk) > limit {
			long, line = true, line[:0]
		} else if !long {
			line = append(line, chunk...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 && !long {
			if err := do(line); err != nil {
				return err
			}
		}
		line, long = line[:0], false
		if err != nil {
			return nil // the server's end, or ours
		}
	}
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// describeExit says how a server ended, for the log and the model.
func (p *process) describeExit() string {
	if p.gone(graceTime) { // its output may end before it does
		return fmt.Sprintf("it ended (%s)", p.cmd.ProcessState)
	}
	return "its connection was lost"
}
