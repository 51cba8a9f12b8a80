package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// ErrFixed means that a secret has no source to be read from again.
var ErrFixed = errors.New("the secret was written out and cannot be read again")

// commandTime bounds a command that prints a secret.
const commandTime = 10 * time.Second

// Source is where a secret comes from, a File or a Command. Sources are comparable.
type Source interface {
	read(ctx context.Context) (string, error)
}

// File is the path of a file that holds a secret.
type File string

// Command is a command line for the shell that prints a secret, run in Dir. It has
// ten seconds.
type Command struct{ Line, Dir string }

// Read reads a secret from its source; space around it does not belong to it. No
// error shows what was read.
func Read(ctx context.Context, from Source) (String, error) {
	v, err := from.read(ctx)
	if err != nil {
		return String{}, err
	}
	return String{v: strings.TrimSpace(v), from: from}, nil
}

// Again reads the secret once more from its source, or fails with ErrFixed.
func (s String) Again(ctx context.Context) (String, error) {
	if s.from == nil {
		return String{}, ErrFixed
	}
	return Read(ctx, s.from)
}

func (f File) read(context.Context) (string, error) {
	b, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("cannot read the file: %w", err)
	}
	return string(b), nil
}

func (c Command) read(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", c.Line)
	cmd.Dir, cmd.Stdout, cmd.WaitDelay = c.Dir, &out, time.Second
	// What the shell has started ends with it, and nobody waits for its output.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("the command that prints the secret failed: %w", err)
	}
	if strings.TrimSpace(out.String()) == "" {
		return "", errors.New("the command that prints the secret printed nothing")
	}
	return out.String(), nil
}
