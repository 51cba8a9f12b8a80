package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/store/record"
)

// scriptDaemon is a `parley serve` that runs beside a script.
type scriptDaemon struct {
	out, log *output
	stop     context.CancelFunc
	done     chan struct{}
	code     int  // once done is closed
	checked  bool // the script looked at the code itself
	client   *http.Client
}

func (d *scriptDaemon) wait(t testing.TB) int {
	select {
	case <-d.done:
		d.client.CloseIdleConnections()
		return d.code
	case <-time.After(waitLimit):
		t.Errorf("the daemon does not stop:\n%s", tail(d.log.String(), 20))
		return -1
	}
}

func cmdParley(ts *testscript.TestScript, neg bool, args []string) {
	w := worldOf(ts)
	ctx, cancel := limited()
	defer cancel()
	w.code = run(ctx, context.Background(), process{
		args: args, env: surroundings(ts).lookup, dir: w.dir, stdin: strings.NewReader(""), stdout: ts.Stdout(), stderr: ts.Stderr(),
	})
	if (w.code != exitFine) != neg {
		ts.Fatalf("parley ended with code %d", w.code)
	}
}

func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1, "code N")
	if got := strconv.Itoa(worldOf(ts).code); got != args[0] {
		ts.Fatalf("the exit code is %s", got)
	}
}

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) <= 1, "serve [NAME]")
	w, name := worldOf(ts), optional(args, 0, "one")
	if old := w.daemons[name]; old != nil {
		select {
		case <-old.done:
		default:
			ts.Fatalf("%s runs already", name)
		}
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	ctx, stop := context.WithCancel(context.Background())
	d := &scriptDaemon{
		out: newOutput(), log: newOutput(), stop: stop, done: make(chan struct{}),
		client: &http.Client{Jar: jar, Transport: &http.Transport{}, Timeout: waitLimit},
	}
	w.daemons[name] = d
	env := surroundings(ts)
	go func() {
		defer close(d.done)
		d.code = run(ctx, context.Background(), process{
			args: []string{"serve"}, env: env.lookup, dir: w.dir, stdin: strings.NewReader(""), stdout: d.out, stderr: d.log,
		})
	}()
}

func (w *world) daemon(ts *testscript.TestScript, name string) *scriptDaemon {
	d := w.daemons[name]
	if d == nil {
		ts.Fatalf("there is no daemon %s", name)
	}
	return d
}

func cmdTerm(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) <= 1, "term [NAME]")
	w := worldOf(ts)
	d := w.daemon(ts, optional(args, 0, "one"))
	d.stop()
	if code := d.wait(w.t); code != exitFine {
		d.checked = true
		ts.Fatalf("it ended with code %d", code)
	}
}

func cmdLog(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, false, len(args) == 1 || len(args) == 2, "[!] log PATTERN [NAME]")
	awaitOutput(ts, neg, worldOf(ts).daemon(ts, optional(args, 1, "one")).log, args[0])
}

func cmdOut(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, false, len(args) == 1 || len(args) == 2, "[!] out PATTERN [NAME]")
	awaitOutput(ts, neg, worldOf(ts).daemon(ts, optional(args, 1, "one")).out, args[0])
}

// awaitOutput waits for what matches and makes its first group $match.
func awaitOutput(ts *testscript.TestScript, neg bool, o *output, pattern string) {
	want := expression(ts, pattern)
	if neg {
		if want.MatchString(o.String()) {
			ts.Fatalf("%s is in:\n%s", pattern, tail(o.String(), 40))
		}
		return
	}
	m, ok := o.await(want)
	if !ok {
		ts.Fatalf("no %s in:\n%s", pattern, tail(o.String(), 40))
	}
	setMatch(ts, m)
}

// setMatch makes the first group of a pattern that has one $match.
func setMatch(ts *testscript.TestScript, groups []string) {
	if len(groups) > 1 {
		ts.Setenv("match", groups[1])
	}
}

// await waits for what matches.
func (o *output) await(re *regexp.Regexp) (match []string, ok bool) {
	limit := time.NewTimer(waitLimit)
	defer limit.Stop()
	for {
		o.mu.Lock()
		m, changed := re.FindStringSubmatch(o.text.String()), o.changed
		o.mu.Unlock()
		if m != nil {
			return m, true
		}
		select {
		case <-changed:
		case <-limit.C:
			return nil, false
		}
	}
}

// listening finds the address of a daemon's HTTP server.
var listening = regexp.MustCompile(`"http server listens".*?"address":"([^"]+)"`)

// address is where the daemon's HTTP server is.
func (d *scriptDaemon) address(ts *testscript.TestScript) string {
	m, ok := d.log.await(listening)
	if !ok {
		ts.Fatalf("it has no HTTP server:\n%s", tail(d.log.String(), 20))
	}
	return "http://" + m[1]
}

func (d *scriptDaemon) get(url string) (status int, body string, err error) {
	res, err := d.client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func cmdGet(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) >= 2 && len(args) <= 4, "get PATH STATUS [PATTERN] [NAME]")
	d := worldOf(ts).daemon(ts, optional(args, 3, "one"))
	d.awaitPage(ts, d.address(ts)+args[0], args[1], expression(ts, optional(args, 2, "")))
}

func cmdHook(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 4 || len(args) == 5, "hook NAME STATUS SECRET BODY [DAEMON]")
	d := worldOf(ts).daemon(ts, optional(args, 4, "one"))
	ctx, cancel := limited()
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.address(ts)+"/webhook/in/"+args[0], strings.NewReader(args[3]))
	ts.Check(err)
	m := hmac.New(sha256.New, []byte(args[2]))
	_, _ = io.WriteString(m, args[3])
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
	res, err := d.client.Do(req)
	ts.Check(err)
	_ = res.Body.Close()
	if got := strconv.Itoa(res.StatusCode); got != args[1] {
		ts.Fatalf("the webhook is answered %s", got)
	}
}

// awaitPage asks until the answer is the one that is wanted.
func (d *scriptDaemon) awaitPage(ts *testscript.TestScript, url, status string, want *regexp.Regexp) {
	var got int
	var body string
	var err error
	if !eventually(func() bool {
		got, body, err = d.get(url)
		return err == nil && strconv.Itoa(got) == status && want.MatchString(body)
	}) {
		ts.Fatalf("%s: %d %v\n%s", url, got, err, body)
	}
}

// eventually asks again and again, for what nobody tells of by itself.
func eventually(ok func() bool) bool {
	tick, limit := time.NewTicker(5*time.Millisecond), time.NewTimer(waitLimit)
	defer tick.Stop()
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			return false
		}
	}
	return true
}

func cmdWeb(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2 && (args[0] == "say" || args[0] == "sees"), "web say TEXT, web sees PATTERN")
	d := worldOf(ts).daemon(ts, "one")
	m, ok := d.out.await(regexp.MustCompile(`Web chat: (\S+)`))
	if !ok {
		ts.Fatalf("no web chat:\n%s", d.out)
	}
	// The first visit signs in.
	_, _, err := d.get(m[1])
	ts.Check(err)
	base := d.address(ts)
	if args[0] == "sees" {
		d.awaitPage(ts, base+"/api/transcript", "200", expression(ts, args[1]))
		return
	}
	body, err := json.Marshal(map[string]string{"id": record.NewID(), "text": args[1]})
	ts.Check(err)
	req, err := http.NewRequest(http.MethodPost, base+"/api/messages", bytes.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", base)
	res, err := d.client.Do(req)
	ts.Check(err)
	ts.Check(res.Body.Close())
	if res.StatusCode != http.StatusAccepted {
		ts.Fatalf("the web chat answers %s", res.Status)
	}
}
