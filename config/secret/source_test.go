package secret_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/config/secret"
)

func TestSourcesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	for name, from := range map[string]secret.Source{
		"a file":    secret.File(file),
		"a command": secret.Command{Line: "cat key | tr -d '!'", Dir: dir},
	} {
		write(t, file, " sk-1!\n")
		first, err := secret.Read(t.Context(), from)
		if err != nil || strings.TrimSuffix(first.Reveal(), "!") != "sk-1" {
			t.Fatalf("%s: %q, %v", name, first.Reveal(), err)
		}
		if same, err := first.Again(t.Context()); err != nil || same != first {
			t.Errorf("%s: an unchanged secret is another one: %v", name, err)
		}
		write(t, file, "sk-2")
		next, err := first.Again(t.Context())
		if err != nil || next.Reveal() != "sk-2" || next == first {
			t.Errorf("%s: read again %q, %v", name, next.Reveal(), err)
		}
		if got := fmt.Sprintf("%v %+v %#v %s", next, next, struct{ K secret.String }{next}, from); strings.Contains(got, "sk-2") {
			t.Errorf("%s: printed as %s", name, got)
		}
	}
	if _, err := secret.New("sk-1").Again(t.Context()); !errors.Is(err, secret.ErrFixed) {
		t.Errorf("a literal: %v", err)
	}
}

// A source that fails says so without what it printed.
func TestFailingSources(t *testing.T) {
	for name, from := range map[string]secret.Source{
		"no file":   secret.File(filepath.Join(t.TempDir(), "gone")),
		"fails":     secret.Command{Line: "echo sk-1; echo sk-1 >&2; exit 3"},
		"nothing":   secret.Command{Line: "true"},
		"not there": secret.Command{Line: "no-such-program-sk"},
	} {
		s, err := secret.Read(t.Context(), from)
		if err == nil || !s.Empty() || strings.Contains(err.Error(), "sk-1") {
			t.Errorf("%s: %q, %v", name, s.Reveal(), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := secret.Read(ctx, secret.Command{Line: "echo sk-1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// A command that hangs is ended with the context, whatever it has started.
func TestHangingCommandEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pipe := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := secret.Read(ctx, secret.Command{Line: "echo >" + pipe + "; sleep 60 | cat"})
		done <- err
	}()
	if _, err := os.ReadFile(pipe); err != nil { // until it runs
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
