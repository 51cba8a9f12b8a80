package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"parley/config"
	"parley/config/secret"
)

// signalled waits for a context to end.
func signalled(t *testing.T, what string, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(waitLimit):
		t.Fatalf("%s did not end", what)
	}
}

func TestSignals(t *testing.T) {
	kill := func(s syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	asked := make(chan struct{}, 1)
	who := &interrupts{}
	code := withSignals(who, func(ctx, hurry context.Context) int {
		end := who.to(func() bool { asked <- struct{}{}; return true })
		kill(syscall.SIGINT)
		<-asked
		if ctx.Err() != nil {
			t.Error("an interrupt that was taken ends the program")
		}
		end()
		kill(syscall.SIGINT)
		signalled(t, "the first signal", ctx)
		if hurry.Err() != nil {
			t.Error("the first signal hurries")
		}
		kill(syscall.SIGTERM)
		signalled(t, "the second signal", hurry)
		return 7
	})
	if code != 7 {
		t.Errorf("exit code %d", code)
	}
}

func TestPageToken(t *testing.T) {
	token := func(c *config.Config) string {
		t.Helper()
		s, err := pageToken(c)
		if err != nil || len(s.Reveal()) < 20 {
			t.Fatalf("token of %d characters, %v", len(s.Reveal()), err)
		}
		return s.Reveal()
	}
	kept := config.Default()
	kept.DataDir = filepath.Join(t.TempDir(), "new", "data")
	first := token(kept)
	if token(kept) != first {
		t.Error("the token is not kept")
	}
	if info, err := os.Stat(filepath.Join(kept.DataDir, "web-token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info, err)
	}
	// Replicas behind one address share the admin token and need no disk.
	a, b := config.Default(), config.Default()
	a.DataDir, b.DataDir = "/proc/none", "/proc/other"
	a.HTTP.AdminToken, b.HTTP.AdminToken = secret.New("the same"), secret.New("the same")
	if token(a) != token(b) {
		t.Error("replicas have different tokens")
	}
	if token(a) == a.HTTP.AdminToken.Reveal() {
		t.Error("the page's token is the admin's")
	}
	a.HTTP.AdminToken = secret.String{}
	token(a)
}
