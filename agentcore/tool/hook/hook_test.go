package hook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/tool"
	"parley/store/record"
)

func hooks(t *testing.T, cfg Config) *Hooks {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	h, err := New(cfg, Deps{Dir: t.TempDir(), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var call = tool.Call{ID: "c1", Arguments: []byte(`{"command":"ls"}`), Person: "test:1", Role: record.RoleUser, Trust: record.TrustUntrusted, Turn: "t1"}

func TestBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		commands           []string
		blocked, arguments string
	}{
		"silence allows":        {[]string{"cat > /dev/null"}, "", ""},
		"allow":                 {[]string{`echo '{"decision":"allow"}'`}, "", ""},
		"block":                 {[]string{`echo '{"decision":"block","reason":"not on Sundays"}'`}, "not on Sundays", ""},
		"the first one decides": {[]string{`echo '{"decision":"block","reason":"no"}'`, `echo '{}'`}, "no", ""},
		"the second one sees":   {[]string{`echo '{"arguments":{"command":"pwd"}}'`, `grep -q '"command":"pwd"' || exit 1`}, "", `{"command":"pwd"}`},
		"it is told everything": {[]string{`grep -q '"event":"pre_tool","tool":"terminal","call":"c1","arguments":{"command":"ls"}.*"turn":"t1","person":"test:1","role":"user","trust":"untrusted"' || exit 1`}, "", ""},
		"failure":               {[]string{"exit 1"}, "a hook failed", ""},
		"no program":            {[]string{"/no/such/hook"}, "a hook failed", ""},
		"nonsense":              {[]string{"echo yes"}, "a hook failed", ""},
		"misspelt":              {[]string{`echo '{"dexision":"block"}'`}, "a hook failed", ""},
		"undecided":             {[]string{`echo '{"decision":"maybe"}'`}, "a hook failed", ""},
		"twice":                 {[]string{`echo '{}{"decision":"block"}'`}, "a hook failed", ""},
		"no object":             {[]string{`echo '{"arguments":[1]}'`}, "a hook failed", ""},
		"too much":              {[]string{`head -c 2000000 /dev/zero | tr '\0' ' '`}, "a hook failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hooks(t, Config{PreTool: tc.commands}).Before(t.Context(), "terminal", call)
			if err != nil || (tc.blocked == "") != (got.Blocked == "") || !strings.Contains(got.Blocked, tc.blocked) || string(got.Arguments) != tc.arguments {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A hook that hangs, with a child that holds its output, blocks the call in time, and
// one whose turn is stopped ends with it. Secrets are not handed to it.
func TestHookIsBounded(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-do-not-show")
	h := hooks(t, Config{PreTool: []string{"env > seen; echo $$ > pid; sleep 1000 & sleep 1000"}, Timeout: 300 * time.Millisecond})
	begun := time.Now()
	got, err := h.Before(t.Context(), "terminal", call)
	if err != nil || got.Blocked == "" || time.Since(begun) > 3*time.Second {
		t.Errorf("%+v, %v after %s", got, err, time.Since(begun))
	}
	if b, err := os.ReadFile(filepath.Join(h.Dir, "seen")); err != nil || strings.Contains(string(b), "sk-") {
		t.Errorf("%s, %v", b, err)
	}
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := h.Before(ctx, "terminal", call); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestAfter(t *testing.T) {
	result := tool.Result{Text: "secret plans"}
	for name, tc := range map[string]struct{ command, want string }{
		"silence":    {"cat > seen", "secret plans"},
		"changed":    {`echo '{"result":"plans"}'`, "plans"},
		"withheld":   {`echo '{"decision":"block","reason":"secret"}'`, "The tool ran, and its result is withheld: secret"},
		"failed":     {"exit 3", "The tool ran, and its result is withheld: a hook failed."},
		"told of it": {`grep -q '"event":"post_tool".*"result":"secret plans"' || exit 1`, "secret plans"},
	} {
		if got := hooks(t, Config{PostTool: []string{tc.command}}).After(t.Context(), "terminal", call, result); got.Text != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	framed := hooks(t, Config{PostTool: []string{`echo '{"result":"less"}'`}}).After(t.Context(), "web_fetch", call, tool.Result{Text: "a", Untrusted: "b"})
	if framed.Text != "" || framed.Untrusted != "less" {
		t.Errorf("%+v", framed)
	}
}

func TestConfig(t *testing.T) {
	if h, err := New(DefaultConfig(), Deps{}); h != nil || err != nil {
		t.Errorf("%v, %v", h, err)
	}
	if errs := (Config{PreTool: []string{" "}, Timeout: -1}).Validate(); len(errs) != 2 {
		t.Error(errs)
	}
}
