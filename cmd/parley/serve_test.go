package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/provider/providertest"
	"parley/store"
	"parley/store/storetest"
)

// waitLimit is how long a test waits for something to happen.
const waitLimit = 2 * time.Minute

// output is a stream that can be waited on.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced at each write
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find waits for what matches and returns the first group.
func (o *output) find(t *testing.T, pattern string) string {
	t.Helper()
	expr, limit := regexp.MustCompile(pattern), time.After(waitLimit)
	for {
		o.mu.Lock()
		m, changed := expr.FindStringSubmatch(o.text.String()), o.changed
		o.mu.Unlock()
		if m != nil {
			return m[len(m)-1]
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("no %s in:\n%s", pattern, o)
		}
	}
}

// daemon is a running `parley serve` or `parley demo`.
type daemon struct {
	t      *testing.T
	out    *output
	log    *output
	stop   context.CancelFunc
	code   chan int
	client *http.Client
	url    string
}

func startDaemon(t *testing.T, dir string, env environment, args ...string) *daemon {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	d := &daemon{t: t, out: newOutput(), log: newOutput(), stop: stop, code: make(chan int, 1), client: &http.Client{Jar: jar}}
	go func() {
		d.code <- run(ctx, context.Background(), process{
			args: args, env: env.lookup, dir: dir, stdin: strings.NewReader(""), stdout: d.out, stderr: d.log,
		})
	}()
	t.Cleanup(stop)
	return d
}

// open waits for the printed URL and signs in.
func (d *daemon) open() {
	d.t.Helper()
	page := d.out.find(d.t, `(http://[^\s]+\?token=[^\s]+)`)
	d.url = page[:strings.IndexByte(page, '?')]
	if status, body := d.get(page); status != http.StatusOK {
		d.t.Fatalf("the page: %d %s", status, body)
	}
}

func (d *daemon) get(url string) (int, string) {
	d.t.Helper()
	res, err := d.client.Get(url)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func (d *daemon) say(id, text string) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPost, d.url+"api/messages", strings.NewReader(`{"id":"`+id+`","text":"`+text+`"}`))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", strings.TrimSuffix(d.url, "/"))
	res, err := d.client.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		d.t.Fatalf("post: %s", res.Status)
	}
}

// shows waits until a page has a text.
func (d *daemon) shows(path, text string) string {
	d.t.Helper()
	poll, limit := time.NewTicker(20*time.Millisecond), time.After(waitLimit)
	defer poll.Stop()
	for {
		_, body := d.get(d.url + path)
		if strings.Contains(body, text) {
			return body
		}
		select {
		case <-poll.C:
		case <-limit:
			d.t.Fatalf("%s does not show %q:\n%s\nlog:\n%s", path, text, body, d.log)
		}
	}
}

func (d *daemon) end() int {
	d.t.Helper()
	d.stop()
	select {
	case code := <-d.code:
		d.client.CloseIdleConnections()
		return code
	case <-time.After(waitLimit):
		d.t.Fatalf("it does not stop:\n%s", d.log)
		return 0
	}
}

func TestServe(t *testing.T) {
	srv := providertest.NewServer(t, providertest.Options{Key: "sk-the-right-key"})
	dir, env := setup(t, srv, "log: { format: json }\n")
	d := startDaemon(t, dir, env, "serve")
	d.open()
	d.shows("readyz", `"ready":true`)
	d.say("message-0001", "say Good morning")
	d.shows("api/transcript", "Good morning")
	d.shows("metrics", `parley_turns_total{state="done"} 1`)
	metrics := d.shows("metrics", `parley_deliveries_total{kind="final",state="sent"} 1`)
	for _, line := range strings.Split(strings.TrimSpace(metrics), "\n") {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "parley_") {
			t.Errorf("a metric of another name: %s", line)
		}
	}
	for _, name := range []string{`parley_events_total{account="web/main",outcome="received"} 1`, `parley_model_calls_total{model="fake/model-1",outcome="ok"} 1`,
		`parley_tokens_total{kind="output"}`, "parley_model_first_token_seconds_count 1"} {
		if !strings.Contains(metrics, name) {
			t.Errorf("no %s in:\n%s", name, metrics)
		}
	}
	page := d.out.find(t, `token=(\S+)`)
	if code := d.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, d.log)
	}
	if strings.Contains(d.log.String(), env["KEY"]) || strings.Contains(d.log.String(), page) {
		t.Errorf("a secret is in the log:\n%s", d.log)
	}

	again := startDaemon(t, dir, env, "serve")
	again.open()
	again.shows("api/transcript", "Good morning")
	if token := again.out.find(t, `token=(\S+)`); token != page {
		t.Error("the page's token has changed: every browser is signed out by a restart")
	}
	if code := again.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, again.log)
	}
}

func TestServeWithATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	dir := write(t, "http: { listen: \""+taken.Addr().String()+"\" }\nmodel: demo/demo\ndata_dir: ./data\ndatabase: { url: \"${DB}\" }\n")
	parleyIn(t, dir, environment{"DB": storetest.URL(t)}, "serve").has(t, 1, "address already in use", "set http.listen to another address")
}

// TestServeWaitsForTheDatabase: a server that is down at the start is waited for, and
// a signal ends the wait; health answers meanwhile.
func TestServeWaitsForTheDatabase(t *testing.T) {
	dir := write(t, "http: { listen: \"127.0.0.1:0\" }\nmodel: demo/demo\ndata_dir: ./data\ndatabase: { url: \"postgres://nobody:database-password@127.0.0.1:1/none\" }\n")
	d := startDaemon(t, dir, nil, "serve")
	d.log.find(t, "waiting for the database")
	server := "http://" + d.log.find(t, `http server listens.*?(127\.0\.0\.1:\d+)`)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		resp, err := http.Get(server + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || (want != http.StatusOK && !strings.Contains(string(body), `"component":"database"`)) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if code := d.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(d.log.String(), "database-password") {
		t.Errorf("the password is in the log:\n%s", d.log)
	}
}

// TestDemo: nothing set up, a private database in a folder of its own, and a port
// that is free.
func TestDemo(t *testing.T) {
	home := t.TempDir()
	t.Cleanup(func() { removePrivate(t, filepath.Join(home, ".parley", "demo")) })
	env := environment{"HOME": home, "PARLEY_CONFIG": "/ignored.yaml"}
	first := startDaemon(t, t.TempDir(), env, "demo")
	first.open()
	if !strings.Contains(first.out.String(), "This is a demo") || !strings.Contains(first.out.String(), filepath.Join(home, ".parley", "demo")) {
		t.Errorf("it does not say that it is a demo:\n%s", first.out)
	}
	second := startDaemon(t, t.TempDir(), env, "demo")
	second.open()
	if second.url == first.url {
		t.Error("two demos have one address")
	}
	first.say("message-0001", "what time is it?")
	first.shows("api/transcript", "(week ") // from the tool current_time
	for _, d := range []*daemon{first, second} {
		if code := d.end(); code != 0 {
			t.Errorf("exit code %d:\n%s", code, d.log)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".parley", "parley.yaml")); err == nil {
		t.Error("the demo wrote a configuration")
	}
}

// removePrivate removes the files of a private server, which for root are not in
// the data folder.
func removePrivate(t *testing.T, dataDir string) {
	t.Helper()
	p, err := store.StartPrivate(context.Background(), store.PrivateConfig{DataDir: dataDir}, zap.NewNop())
	if err != nil {
		t.Error(err)
		return
	}
	if err := errors.Join(p.Stop(), os.RemoveAll(p.Dir())); err != nil {
		t.Error(err)
	}
}
