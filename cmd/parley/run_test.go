package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// environment is a test's own; nothing of the process's leaks into it.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

// outcome is what a command left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// parley runs one command in an empty folder.
func parley(t *testing.T, env environment, args ...string) outcome {
	t.Helper()
	return parleyIn(t, t.TempDir(), env, args...)
}

func parleyIn(t *testing.T, dir string, env environment, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), context.Background(), process{
		args: args, env: env.lookup, dir: dir, stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
	})
	return outcome{code, out.String(), errs.String()}
}

// decode reads a command's JSON.
func decode[T any](t *testing.T, o outcome) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.stdout), &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, o.stdout)
	}
	return v
}

func (o outcome) has(t *testing.T, code int, parts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s", o.code, code, o.stdout, o.stderr)
	}
	for _, p := range parts {
		if !strings.Contains(o.stdout+o.stderr, p) {
			t.Errorf("no %q in\nstdout: %s\nstderr: %s", p, o.stdout, o.stderr)
		}
	}
}

// TestExitCodes also covers CFG-009: a wrong configuration has a code of its own,
// by which a service manager knows not to start again.
func TestExitCodes(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("modle: a/b\nhttp: { listen: 1 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args  []string
		code  int
		parts []string
	}{
		{nil, 0, []string{"parley demo", "serve", "doctor"}},
		{[]string{"version"}, 0, []string{"parley "}},
		{[]string{"nonsense"}, 2, []string{`unknown command "nonsense"`, "See parley --help"}},
		{[]string{"serve", "--nonsense"}, 2, []string{"unknown flag: --nonsense"}},
		{[]string{"serve", "argument"}, 2, []string{"argument"}},
		{[]string{"why"}, 2, []string{"accepts 1 arg", "See parley why --help"}},
		{[]string{"serve", "--config", wrong}, 78, []string{wrong + ":1: modle: there is no such key; did you mean model?", wrong + ":2: http.listen"}},
		{[]string{"config", "check", "--config", wrong}, 78, []string{wrong + ":1:", wrong + ":2:"}},
		{[]string{"sessions", "list", "--config", wrong}, 78, []string{wrong + ":1:"}},
		{[]string{"serve", "--config", "/nowhere.yaml"}, 78, []string{"/nowhere.yaml: cannot be read: no such file or directory"}},
		{[]string{"serve"}, 78, []string{"model: none is named"}},
	} {
		parley(t, nil, test.args...).has(t, test.code, test.parts...)
	}
}

func TestUnknownToolIsAConfigurationError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "parley.yaml"), []byte("tools: { enabled: [ termnal ] }\nmodel: demo/demo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	parleyIn(t, dir, nil, "config", "check").has(t, 78, `parley.yaml:1: tools.enabled: there is no tool "termnal"`)
	parleyIn(t, dir, nil, "doctor").has(t, 78, "FAIL  configuration", `there is no tool "termnal"`, "correct the line")
}

// CFG-009: an address of the database that cannot be one is a mistake of the
// configuration, with its line and without its password.
func TestADatabaseURLThatIsNone(t *testing.T) {
	dir := write(t, "model: demo/demo\ndatabase: { url: \"postgres://u:database-password@127.0.0.1:1/x?sslmode=bogus\" }\n")
	for _, args := range [][]string{{"config", "check"}, {"serve"}, {"doctor"}, {"sessions", "list"}} {
		o := parleyIn(t, dir, nil, args...)
		o.has(t, exitConfig, "parley.yaml:2: database.url: cannot parse")
		if strings.Contains(o.stdout+o.stderr, "database-password") {
			t.Errorf("%q prints the password: %s%s", args, o.stdout, o.stderr)
		}
	}
}

func TestConfigCheckAndShow(t *testing.T) {
	env := environment{"OPENAI_API_KEY": "sk-very-secret", "TELEGRAM_BOT_TOKEN": "1:very-secret-token", "HOME": "/home/ada"}
	parley(t, env, "config", "check").has(t, 0, "environment: fine")
	shown := parley(t, env, "config", "show")
	shown.has(t, 0, "# from: environment", "model: openai/gpt-5-mini", "api_mode: chat_completions", "token: '[secret]'")
	if strings.Contains(shown.stdout, "very-secret") {
		t.Error("config show prints a secret")
	}
	type check struct {
		OK       bool
		Problems []struct {
			Line int
			Text string
		}
	}
	if got := decode[check](t, parley(t, env, "config", "check", "--json")); !got.OK || len(got.Problems) != 0 {
		t.Errorf("check --json: %+v", got)
	}
	if got := decode[check](t, parley(t, nil, "config", "check", "--json")); got.OK || len(got.Problems) != 1 {
		t.Errorf("check --json without a model: %+v", got)
	}
	type show struct {
		Model string
		HTTP  struct{ Listen string }
	}
	if got := decode[show](t, parley(t, env, "config", "show", "--json")); got.Model != "openai/gpt-5-mini" || got.HTTP.Listen != "127.0.0.1:8080" {
		t.Errorf("show --json: %+v", got)
	}
}

// TestEveryModeIsBuiltIn: one key is enough, whatever API its provider speaks.
func TestEveryModeIsBuiltIn(t *testing.T) {
	parley(t, environment{"ANTHROPIC_API_KEY": "sk-ant-key"}, "config", "check").has(t, 0)
}
