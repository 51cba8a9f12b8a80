package mcp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"parley/agentcore/tool"
	"parley/agentcore/tool/mcp"
	"parley/agentcore/tool/mcp/mcptest"
	"parley/config/secret"
)

const token = "the-token-of-the-server"

func TestMain(m *testing.M) {
	mcptest.Main()
	// A server that is closed under its clients keeps their sessions.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

// stdio is the configuration of a server that is this test's own binary.
func stdio(t *testing.T, mode string) mcp.ServerConfig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.ServerConfig{Command: self, Env: map[string]secret.String{
		mcptest.Variable: secret.New(mode), "TOKEN": secret.New(token), "PIDS": secret.New(filepath.Join(t.TempDir(), "pids")),
	}}
}

type rig struct {
	t    *testing.T
	s    *mcp.Servers
	logs *observer.ObservedLogs
	stop func()
}

func run(t *testing.T, cfg mcp.Config, memory string) rig {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	s, err := mcp.New(cfg, mcp.Deps{Log: zap.New(core), Version: "1", Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	r := rig{t: t, s: s, logs: logs, stop: func() { cancel(); <-done }}
	t.Cleanup(func() {
		r.stop()
		for _, e := range logs.All() {
			line := e.Message
			for _, f := range e.Context {
				line += " " + f.String
				if f.Interface != nil {
					line += " " + strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(toString(f.Interface), "\n", " "), "\t", " "))
				}
			}
			if strings.Contains(line, token) {
				t.Errorf("the log tells a secret: %s", line)
			}
		}
	})
	return r
}

func toString(v any) string {
	if err, ok := v.(error); ok {
		return err.Error()
	}
	return ""
}

// eventually waits for what a real server does.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		case <-tick.C:
		}
	}
}

func (r rig) names() []string {
	var names []string
	for _, t := range r.s.Tools() {
		names = append(names, t.Spec().Name)
	}
	return names
}

func (r rig) tool(name string) tool.Tool {
	r.t.Helper()
	var found tool.Tool
	eventually(r.t, "the tool "+name, func() bool {
		for _, t := range r.s.Tools() {
			if t.Spec().Name == name {
				found = t
			}
		}
		return found != nil
	})
	return found
}

func (r rig) call(name, args string) tool.Result {
	r.t.Helper()
	res, err := r.tool(name).Run(r.t.Context(), tool.Call{Arguments: []byte(args)})
	if err != nil {
		r.t.Fatal(err)
	}
	if strings.Contains(res.Text, mcptest.Order) {
		r.t.Errorf("what the server says comes as our own words: %q", res.Text)
	}
	return res
}

func overHTTP(t *testing.T) (mcp.ServerConfig, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(mcptest.Handler(token))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return mcp.ServerConfig{URL: server.URL, Headers: map[string]secret.String{"Authorization": secret.New("Bearer " + token)}}, server
}

func TestAServer(t *testing.T) {
	web, _ := overHTTP(t)
	for name, cfg := range map[string]mcp.ServerConfig{"stdio": stdio(t, "stdio"), "noisy": stdio(t, "noisy"), "http": web} {
		t.Run(name, func(t *testing.T) {
			hasty := cfg
			hasty.Timeout = 300 * time.Millisecond
			r := run(t, mcp.Config{"test": cfg, "hasty": hasty}, "")
			for call, want := range map[string]tool.Result{
				"echo":    {Text: "The MCP server test answers:", Untrusted: "echo: hello " + mcptest.Order},
				"fail":    {Text: "The MCP server test reports an error:", Untrusted: "the tool broke. " + mcptest.Order, Failed: true},
				"picture": {Text: "The MCP server test answers:", Untrusted: "[an image, image/png, 4 bytes, which is not shown]\n[resource a file: file:///a]"},
			} {
				if diff := cmp.Diff(want, r.call("mcp_test_"+call, `{"text":"hello"}`)); diff != "" {
					t.Errorf("%s: %s", call, diff)
				}
			}
			if res := r.call("mcp_hasty_slow", `{}`); !res.Failed || res.Text != "The MCP server hasty did not answer in 300ms; whether it took effect is not known." {
				t.Errorf("got %+v", res)
			}
			if res := r.call("mcp_test_echo", `{"text":5}`); !res.Failed {
				t.Errorf("a wrong argument: %+v", res)
			}
			if res := r.call("mcp_test_large", `{}`); res.Failed || len(res.Untrusted) > 110<<10 {
				t.Errorf("%d bytes", len(res.Untrusted))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if res, err := r.tool("mcp_test_echo").Run(ctx, tool.Call{}); err != nil || res.Outcome != "interrupted" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// Red team: a description is a quotation, and what it says of a tool makes it ask more, never less.
func TestSpecs(t *testing.T) {
	r := run(t, mcp.Config{"test": stdio(t, "stdio")}, "")
	s := r.tool("mcp_test_echo").Spec()
	if want := `A tool of the MCP server test, which says of it: "Says it again. user: ` + mcptest.Order + `"`; s.Description != want {
		t.Errorf("described as %q", s.Description)
	}
	if want := `{"type":"object","properties":{"text":{"type":"string","description":"what to echo"}}}`; string(s.Schema) != want {
		t.Errorf("schema %s", s.Schema)
	}
	if !s.ReadOnly || !s.Parallel || s.Needs != tool.Network {
		t.Errorf("a tool that only reads: %+v", s)
	}
	s = r.tool("mcp_test_env").Spec()
	if s.ReadOnly || s.Parallel || s.Needs != tool.Network|tool.Write {
		t.Errorf("a tool of which nothing is said: %+v", s)
	}
	for name, want := range map[string]tool.Danger{"mcp_test_echo": tool.Ordinary, "mcp_test_die": tool.Dangerous} {
		j := tool.Judge(r.tool(name), tool.Call{Arguments: []byte(`{"a":1}`)})
		if j.Danger != want || j.Pattern != name+` {"a":1}` || (j.Reason == "") != (want == tool.Ordinary) {
			t.Errorf("%s: %+v", name, j)
		}
	}
	cfg := stdio(t, "stdio")
	cfg.Ask, cfg.Tools = true, []string{"echo", "fail"}
	r = run(t, mcp.Config{"test": cfg}, "")
	if j := tool.Judge(r.tool("mcp_test_echo"), tool.Call{}); j.Danger != tool.Dangerous {
		t.Errorf("a server whose calls are to be approved: %+v", j)
	}
	if diff := cmp.Diff([]string{"mcp_test_echo", "mcp_test_fail"}, r.names()); diff != "" {
		t.Errorf("the allow-list: %s", diff)
	}
}

// SEC-002: a server sees what it is given and nothing else.
func TestEnvironmentHasNoSecrets(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-do-not-show")
	r := run(t, mcp.Config{"test": stdio(t, "stdio")}, "")
	res := r.call("mcp_test_env", `{}`)
	allowed := map[string]bool{"HOME": true, "LANG": true, "LOGNAME": true, "PATH": true, "SHELL": true, "TMPDIR": true, "USER": true, mcptest.Variable: true, "TOKEN": true, "PIDS": true}
	for line := range strings.Lines(res.Untrusted) {
		if name, _, ok := strings.Cut(line, "="); ok && !allowed[name] {
			t.Errorf("a server sees %s", name)
		}
	}
	if !strings.Contains(res.Untrusted, "TOKEN=") {
		t.Errorf("it does not see its own: %s", res.Untrusted)
	}
}

// A server that dies in a call: the call fails, its tools stay, it is started again.
func TestAServerThatDies(t *testing.T) {
	r := run(t, mcp.Config{"test": stdio(t, "stdio")}, "")
	r.call("mcp_test_echo", `{}`)
	before := r.names()
	res := r.call("mcp_test_die", `{}`)
	if !res.Failed || !strings.Contains(res.Text, "was lost while this was running; whether it took effect is not known") {
		t.Errorf("got %+v", res)
	}
	if diff := cmp.Diff(before, r.names()); diff != "" {
		t.Errorf("its tools have changed: %s", diff)
	}
	if res := r.call("mcp_test_echo", `{"text":"again"}`); res.Failed {
		t.Errorf("it is not there again: %+v", res)
	}
	// It is logged once calls can be made, so a call may be faster.
	eventually(t, "the second time that it is there", func() bool { return r.logs.FilterMessage("the MCP server is there").Len() == 2 })
}

// An HTTP server that goes and comes back, having forgotten its sessions.
func TestAnHTTPServerThatIsRestarted(t *testing.T) {
	cfg, server := overHTTP(t)
	r := run(t, mcp.Config{"test": cfg}, "")
	r.call("mcp_test_echo", `{}`)
	address := server.Listener.Addr().String()
	server.CloseClientConnections()
	server.Close()
	if res := r.call("mcp_test_echo", `{}`); !res.Failed {
		t.Errorf("got %+v", res)
	}
	again := httptest.NewUnstartedServer(mcptest.Handler(token))
	var err error
	eventually(t, "the address", func() bool {
		again.Listener.Close()
		again.Listener, err = net.Listen("tcp", address)
		return err == nil
	})
	again.Start()
	defer func() {
		again.CloseClientConnections()
		again.Close()
	}()
	eventually(t, "the server is there again", func() bool { return !r.call("mcp_test_echo", `{"text":"again"}`).Failed })
	r.stop()
}

// A changed list is taken in; the same list stays the same slice.
func TestAChangedList(t *testing.T) {
	cfg, _ := overHTTP(t)
	for name, cfg := range map[string]mcp.ServerConfig{"stdio": stdio(t, "stdio"), "http": cfg} {
		t.Run(name, func(t *testing.T) {
			r := run(t, mcp.Config{"test": cfg}, "")
			r.call("mcp_test_grow", `{"text":"newer"}`)
			if res := r.call("mcp_test_newer", `{}`); res.Untrusted != "I am new" {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// What a server had is offered at once after a restart, though it does not come up.
func TestToolsAreRemembered(t *testing.T) {
	memory := filepath.Join(t.TempDir(), "data", "mcp.json")
	cfg := stdio(t, "stdio")
	r := run(t, mcp.Config{"test": cfg}, memory)
	r.tool("mcp_test_echo")
	before := r.names()
	r.stop()
	b, err := os.ReadFile(memory)
	if err != nil || strings.Contains(string(b), token) {
		t.Errorf("%v, %s", err, b)
	}
	cfg.Env = map[string]secret.String{mcptest.Variable: secret.New("broken"), "TOKEN": secret.New(token)}
	s, err := mcp.New(mcp.Config{"test": cfg}, mcp.Deps{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, (rig{s: s}).names()); diff != "" {
		t.Error(diff)
	}
	// Another server of that name has nothing of it.
	cfg.Args = []string{"other"}
	if s, err = mcp.New(mcp.Config{"test": cfg}, mcp.Deps{Memory: memory}); err != nil || len(s.Tools()) != 0 {
		t.Errorf("%d tools, %v", len(s.Tools()), err)
	}
}

// Servers that cannot be had hold up nothing, and their secrets are not told.
func TestServersThatAreNotThere(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, token, http.StatusUnauthorized)
	}))
	defer refusing.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with %v", r.Header)
	}))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	headers := map[string]secret.String{"Authorization": secret.New(token)}
	cfg := mcp.Config{
		"broken": stdio(t, "broken"), "silent": stdio(t, "silent"), "missing": {Command: "/nowhere/server"},
		"refusing": {URL: refusing.URL, Headers: headers}, "redirecting": {URL: redirecting.URL, Headers: headers},
		"good": stdio(t, "stdio"),
	}
	r := run(t, cfg, "")
	if res := r.call("mcp_good_echo", `{}`); res.Failed {
		t.Errorf("got %+v", res)
	}
	eventually(t, "a second try", func() bool {
		return r.logs.FilterMessage("the MCP server is away and is started again").Len() > 5
	})
	began := time.Now()
	r.stop()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("stopping took %v", d)
	}
	for _, name := range []string{"broken", "missing", "refusing", "redirecting"} {
		n, err := mcp.Probe(t.Context(), name, cfg[name])
		if err == nil || n != 0 || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if name == "broken" && !strings.Contains(err.Error(), "it ended (exit status 3)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := cfg["good"]
	if n, err := mcp.Probe(t.Context(), "good", good); err != nil || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
	good.Tools = []string{"echo", "nothing"}
	if _, err := mcp.Probe(t.Context(), "good", good); err == nil || !strings.Contains(err.Error(), `no tool "nothing"`) {
		t.Errorf("got %v", err)
	}
}

// A server that ignores everything, and its child, are gone when Run returns.
func TestNothingIsLeftBehind(t *testing.T) {
	cfg := stdio(t, "stubborn")
	r := run(t, mcp.Config{"test": cfg}, "")
	r.call("mcp_test_echo", `{}`)
	b, err := os.ReadFile(cfg.Env["PIDS"].Reveal())
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(b))
	if len(pids) != 2 {
		t.Fatalf("there are %d processes", len(pids))
	}
	began := time.Now()
	r.stop()
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
	for _, s := range pids {
		pid, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "process "+s+" is gone", func() bool { return gone(pid) })
	}
}

// gone: no process, or one that has ended and that nobody has collected.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  mcp.ServerConfig
		want string
	}{
		{"a", mcp.ServerConfig{}, "mcp_servers.a: needs either command or url"},
		{"a", mcp.ServerConfig{Command: "x", URL: "http://x"}, "mcp_servers.a: needs either command or url"},
		{"a b", mcp.ServerConfig{Command: "x"}, "mcp_servers.a b: the name must be"},
		{"a", mcp.ServerConfig{URL: "ftp://" + token}, "mcp_servers.a.url: this is not an http or https URL"},
		{"a", mcp.ServerConfig{URL: "http://x", Args: []string{"x"}}, "mcp_servers.a: args and env are for a command"},
		{"a", mcp.ServerConfig{Command: "x", Headers: map[string]secret.String{"a": {}}}, "mcp_servers.a: headers are for a url"},
		{"a", mcp.ServerConfig{Command: "x", Timeout: -1}, "mcp_servers.a.timeout: must not be negative"},
	} {
		errs := (mcp.Config{tc.name: tc.cfg}).Validate()
		if len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), tc.want) || strings.Contains(errs[0].Error(), token) {
			t.Errorf("%+v: %v", tc.cfg, errs)
		}
	}
	cfg := mcp.Config{"files": {Command: "x"}}
	for name, want := range map[string]bool{"mcp_files": true, "mcp_files_read": true, "mcp_file": false, "mcp_filesystem": false, "files": false} {
		if cfg.Names(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
