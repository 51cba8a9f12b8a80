package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"parley/agentcore/provider/providertest"
)

// TestCommandThatEndsParley is SHD-001: a command of the model ends parley itself. Its
// turn is suspended; the next start tells the model that the command may have had an
// effect, does not run it again, and the person gets an answer.
func TestCommandThatEndsParley(t *testing.T) {
	w := newCrashWorld(t, buildDaemon(t), "telegram")
	file, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("shutdown: { grace: 300ms }\ntools: { terminal: { sandbox: \"off\" } }\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(t.TempDir(), "runs")
	w.model.Respond(func(r providertest.Request) providertest.Answer {
		if res := r.Results(); len(res) > 0 {
			return providertest.Answer{Text: "I was told: " + res[len(res)-1]}
		}
		return call("terminal", `{"command":"echo once >> `+runs+`; p=PPID; kill ${!p}; sleep 60"}`)
	})
	pat := w.at(7)
	first := w.start(t, "")
	pat.say(saying{text: "restart yourself"})
	select {
	case <-first.exited:
	case <-time.After(settleLimit):
		t.Fatalf("the process was not ended:\n%s", first.log)
	}
	second := w.start(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), settleLimit)
	defer cancel()
	told := regexp.MustCompile(`I was told: (?s:.*)Whether it took effect is not known`)
	if err := pat.wait(ctx, func() bool { return told.MatchString(transcript(pat.messages())) }); err != nil {
		t.Errorf("the chat shows %q:\n%s", transcript(pat.messages()), second.log)
	}
	second.stop(t)
	if b, err := os.ReadFile(runs); err != nil || string(b) != "once\n" {
		t.Errorf("the command ran %q, %v", b, err)
	}
}
