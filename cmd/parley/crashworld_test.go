package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/agentcore/provider/providertest"
	"parley/store/storetest"
)

// settleLimit is how long everything may take to be answered after the last start.
const settleLimit = 60 * time.Second

// kinds are what people write: a plain question, one that needs a tool, one that
// needs a tool and a person's consent, one that needs a subagent with a tool, one with
// an answer over several messages, and one that fills the context so that it is
// compressed.
var kinds = []string{"plain", "tool", "ask", "delegate", "long", "fill"}

// crashWorld is what surrounds the program: a platform, a model, a database, and
// people who write and press Allow. It outlives every process.
type crashWorld struct {
	bin      string
	config   string // the file
	settings string // what it says
	database string
	far      farSide
	model    *providertest.Server
	kills    int

	watching context.Context
	watchers sync.WaitGroup

	mu       sync.Mutex
	messages map[string]spot // by id, where it was said
	chats    map[int]spot
}

// buildDaemon builds the program with the kill points armed.
func buildDaemon(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "parley")
	out, err := exec.Command("go", "build", "-tags", "killpoints", "-o", bin, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func newCrashWorld(t *testing.T, bin, platform string) *crashWorld {
	t.Helper()
	w := &crashWorld{bin: bin, messages: map[string]spot{}, chats: map[int]spot{}}
	w.far = farSides[platform](farOptions{latency: 2 * time.Millisecond})
	t.Cleanup(w.far.close)
	var end context.CancelFunc
	w.watching, end = context.WithCancel(context.Background())
	t.Cleanup(func() { end(); w.watchers.Wait() })
	w.model = providertest.NewServer(t, providertest.Options{FirstToken: 20 * time.Millisecond, Rate: 4000})
	w.model.Respond(answer)
	w.config = filepath.Join(t.TempDir(), "parley.yaml")
	there := w.far.settings()
	w.database = storetest.URL(t)
	w.settings = fmt.Sprintf(`database: { url: %q }
data_dir: %q
http: { listen: "127.0.0.1:0" }
log: { level: info, format: json }
model: fake/model
providers:
  fake: { api_key: key, base_url: %q, api_mode: chat_completions }
models:
  fake/model: { context_window: 12000, max_output_tokens: 4000 }
compression: { protect_last_n: 4 }
access: { allow: [%s] }
platforms: { web: { enabled: false }, %s }
`, w.database, t.TempDir(), w.model.BaseURL(), there.everybody, there.expanded())
	w.configure(t)
	return w
}

// configure writes the settings for the processes to come.
func (w *crashWorld) configure(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(w.config, []byte(w.settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// at is the direct chat of the n-th Pat, who consents to everything there.
func (w *crashWorld) at(n int) spot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.chats[n]; p != nil {
		return p
	}
	p, err := w.far.place(fmt.Sprintf("#%d", n))
	if err != nil {
		panic(err)
	}
	w.chats[n] = p
	w.watchers.Go(func() { w.consent(p) })
	return p
}

// consent presses Allow on every card, and again where that has not changed it for a
// while: some platforms keep no press for a bot that is away.
func (w *crashWorld) consent(p spot) {
	for w.watching.Err() == nil {
		ctx, cancel := context.WithTimeout(w.watching, time.Second)
		pressed := map[string]bool{}
		_ = p.wait(ctx, func() bool { // ends with its time
			for _, m := range p.messages() {
				if m.has("Allow once") && !pressed[m.id] {
					pressed[m.id] = true
					p.press(m.id, "Allow once")
				}
			}
			return false
		})
		cancel()
	}
}

// said returns how many messages people have written.
func (w *crashWorld) said() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.messages)
}

// unanswered are the messages whose answer is not visible yet.
func (w *crashWorld) unanswered() map[string]spot {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := map[string]spot{}
	for id, p := range w.messages {
		if !shows(p, last(id)) {
			open[id] = p
		}
	}
	return open
}

// shows says whether a visible message of the bot has the text.
func shows(p spot, text string) bool {
	return slices.ContainsFunc(p.messages(), func(m shown) bool { return strings.Contains(m.text, text) })
}

// say lets the n-th Pat write a message that can be told from all others.
func (w *crashWorld) say(n int, kind string) string {
	p := w.at(n)
	w.mu.Lock()
	id := fmt.Sprintf("m%dx%d", n, len(w.messages))
	w.messages[id] = p
	w.mu.Unlock()
	p.say(saying{text: kind + " " + id})
	return id
}

// sayOneOfEachKind lets one person write each kind of message, and another fill a
// chat until it is compressed, or the process is gone.
func (w *crashWorld) sayOneOfEachKind(gone <-chan struct{}) {
	gone = within(gone)
	for i, k := range kinds[:5] {
		w.say(11+i, k)
	}
	for range 8 {
		if !w.awaitAnswer(w.say(16, "fill"), w.at(16), gone) {
			return
		}
	}
}

// saidPattern matches what was said, with its time before it; what a summary
// quotes has none.
var saidPattern = regexp.MustCompile(`(?m)^\[[^\]]*\] (plain|tool|ask|delegate|long|fill) (m\d+x\d+)`)

// answer is the model: what it says depends on the newest message only, so that a
// call that is made again gives the same text.
func answer(r providertest.Request) providertest.Answer {
	if len(r.Tools) == 0 {
		return providertest.Answer{Text: "They wrote messages and got answers."}
	}
	all := saidPattern.FindAllStringSubmatch(r.LastUser(), -1)
	if len(all) == 0 {
		return providertest.Answer{Text: "?"}
	}
	var texts []string
	for _, m := range all {
		kind, id := m[1], m[2]
		if len(r.Results()) == 0 {
			switch kind {
			case "tool":
				return call("current_time", "{}")
			case "delegate":
				return call("delegate_task", `{"tasks":[{"goal":"tool `+id+`"}]}`)
			case "ask":
				return call("terminal", `{"command":"touch f; echo `+id+`"}`)
			}
		}
		texts = append(texts, final(kind, id))
	}
	return providertest.Answer{Text: strings.Join(texts, "\n\n")}
}

func call(name, arguments string) providertest.Answer {
	return providertest.Answer{Calls: []providertest.Call{{Name: name, Arguments: arguments}}}
}

// final is the complete answer to a message.
func final(kind, id string) string {
	words := map[string]int{"long": 900, "fill": 700}[kind]
	return "begin " + id + " " + providertest.Words(max(words, 20)) + " " + last(id)
}

// last is the last word of the answer to a message.
func last(id string) string { return "end-" + id + "." }

// awaitAnswer returns when the answer's last word is visible in a message that is
// no longer being written to, or done is closed.
func (w *crashWorld) awaitAnswer(id string, p spot, done <-chan struct{}) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p.wait(ctx, func() bool { return shows(p, last(id)) }) == nil
}

// within is a channel that is closed with done, or when nothing has settled for too long.
func within(done <-chan struct{}) <-chan struct{} {
	over := make(chan struct{})
	limit := time.NewTimer(settleLimit)
	go func() {
		defer close(over)
		defer limit.Stop()
		select {
		case <-done:
		case <-limit.C:
		}
	}()
	return over
}

// settle waits until every message is answered.
func (w *crashWorld) settle(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	limit := time.AfterFunc(settleLimit, func() { close(done) })
	defer limit.Stop()
	w.mu.Lock()
	messages := maps.Clone(w.messages)
	w.mu.Unlock()
	for id, p := range messages {
		if !w.awaitAnswer(id, p, done) {
			t.Errorf("no answer to %s within %s", id, settleLimit)
		}
	}
}

// victim is one process of the program.
type victim struct {
	cmd    *exec.Cmd
	log    *bytes.Buffer
	exited chan struct{}
}

// start starts a process, with a kill point armed if point is not empty.
func (w *crashWorld) start(t *testing.T, point string) *victim {
	t.Helper()
	d := &victim{cmd: exec.Command(w.bin, "serve", "--config", w.config), log: &bytes.Buffer{}, exited: make(chan struct{})}
	d.cmd.Env = append(os.Environ(), "PARLEY_KILL_AT="+point)
	d.cmd.Stdout, d.cmd.Stderr = io.Discard, d.log
	d.cmd.WaitDelay = time.Second // a command of the terminal tool may hold the pipe
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.cmd.Wait(); close(d.exited) }()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.exited
		if t.Failed() && os.Getenv("PARLEY_CRASH_LOG") != "" {
			t.Logf("log of process %d:\n%s", d.cmd.Process.Pid, d.log)
		}
	})
	return d
}

// died waits for the armed kill point to kill the process.
func (d *victim) died(t *testing.T) bool {
	t.Helper()
	select {
	case <-d.exited:
		var status syscall.WaitStatus
		if s, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
			status = s
		}
		return status.Signaled() && status.Signal() == syscall.SIGKILL
	case <-time.After(settleLimit):
		return false
	}
}

// killAfter kills the process after it has run for a while.
func (d *victim) killAfter(t *testing.T, after time.Duration) {
	t.Helper()
	select {
	case <-time.After(after):
	case <-d.exited:
		t.Fatalf("the process ended by itself:\n%s", d.log)
	}
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-d.exited
}

// stop ends the process as a service manager does.
func (d *victim) stop(t *testing.T) {
	t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
	case <-time.After(30 * time.Second):
		t.Errorf("the process did not stop:\n%s", d.log)
	}
}
