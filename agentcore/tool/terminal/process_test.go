package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agentcore/tool"
	"parley/store/record"
)

func (r rig) background(command string) tool.Result {
	r.t.Helper()
	return r.run(r.t.Context(), input{Command: command, Background: true}, nil)
}

// look uses the tool process for a session.
func (r rig) look(root record.SessionID, in processInput) tool.Result {
	r.t.Helper()
	args, err := json.Marshal(in)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := r.term.Tools()[1].Run(r.t.Context(), tool.Call{Conversation: "c1", Root: root, Arguments: args, Progress: func(string) {}})
	if err != nil {
		r.t.Fatal(err)
	}
	return told(res)
}

// readUntil reads until the output says what.
func (r rig) readUntil(id, what string) string {
	r.t.Helper()
	var all strings.Builder
	for range 20 {
		got := r.look("", processInput{Action: "read", ID: id, Wait: 5})
		all.WriteString(got.Text)
		if strings.Contains(all.String(), what) {
			return all.String()
		}
	}
	r.t.Fatalf("%q never came: %s", what, all.String())
	return ""
}

func TestBackground(t *testing.T) {
	inEach(t, func(t *testing.T, kind string) {
		r := newRigIn(t, kind)
		got := r.background("trap '' TERM; echo $$ > pids; echo ready; while read line; do echo \"got $line\"; done; echo over; sleep 1000")
		if got.Failed || !strings.Contains(got.Text, "as p1") {
			t.Fatalf("%+v", got)
		}
		if !strings.Contains(got.Text, "ready") {
			r.readUntil("p1", "ready")
		}
		if w := r.look("", processInput{Action: "write", ID: "p1", Text: "one\ntwo\n"}); !strings.Contains(w.Text, "got two") {
			r.readUntil("p1", "got two")
		}
		if l := r.look("", processInput{Action: "list"}).Text; !strings.Contains(l, "p1: running for ") || !strings.Contains(l, "echo ready") {
			t.Error(l)
		}
		if k := r.look("", processInput{Action: "kill", ID: "p1"}); !strings.Contains(k.Text, "p1 was ended") {
			t.Error(k.Text)
		}
		r.gone(1)
		if w := r.look("", processInput{Action: "write", ID: "p1", Text: "x"}); !w.Failed {
			t.Error(w.Text)
		}
		if w := r.look("", processInput{Action: "read", ID: "p9"}); !w.Failed || !strings.Contains(w.Text, "p1: was ended") {
			t.Error(w.Text)
		}
		// One that ends at once says so, and one too many is refused.
		if got := r.background("echo soon; exit 3"); !got.Failed || !strings.Contains(got.Text, "soon\n[p2 ended, exit code 3") {
			t.Errorf("%+v", got)
		}
		for range maxListed {
			r.background("exit 0")
		}
		if l := r.look("", processInput{Action: "list"}).Text; strings.Count(l, "\n")+1 > maxListed || !strings.Contains(l, fmt.Sprintf("p%d: ", maxListed+2)) || strings.Contains(l, "p1: ") {
			t.Error(l)
		}
		for range maxProcesses {
			r.background("sleep 1000")
		}
		if got := r.background("sleep 1000"); !got.Failed || !strings.Contains(got.Text, "Too many") {
			t.Errorf("%+v", got)
		}
	})
}

// STP-003, STP-007: what runs in the background is gone within a second of /stop, of a
// new session, and of the end of parley, three generations that ignore SIGTERM too.
func TestBackgroundEnds(t *testing.T) {
	tree := "trap '' TERM\necho $$ >> pids\nsetsid bash grandchild\n"
	for name, end := range map[string]func(r rig){
		"stop":        func(r rig) { r.term.Tools()[1].(tool.Stopper).Stop("c1") },
		"new session": func(r rig) { r.look("another", processInput{Action: "list"}) },
		"end":         func(r rig) { r.term.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, func(t *testing.T, kind string) {
				r := newRigIn(t, kind)
				r.script("child", tree)
				r.script("grandchild", "trap '' TERM\necho $$ >> pids\nenv -i PATH=\"$PATH\" bash greatgrandchild & wait\n")
				r.script("greatgrandchild", "trap '' TERM\necho $$ >> pids\necho ready\nwhile :; do sleep 1000; done\n")
				if got := r.background("bash child"); !strings.Contains(got.Text, "ready") {
					r.readUntil("p1", "ready")
				}
				begun := time.Now()
				end(r)
				limit := soon
				if name == "end" {
					limit = 2 * soon // the watcher's own end is waited for too
				}
				if d := time.Since(begun); d > limit {
					t.Errorf("it took %v", d)
				}
				r.gone(3)
			})
		})
	}
}

// A parley that is killed leaves no command behind: its watcher ends them.
func TestWatcherEndsWhatIsLeft(t *testing.T) { inEach(t, watched) }

func watched(t *testing.T, kind string) {
	r := newRigIn(t, kind)
	r.script("child", "trap '' TERM; echo $$ > pids; echo ready; setsid sleep 1000 & sleep 1000")
	w, err := startWatcher(r.term.sandbox.launcher, "owner-of-this-test.")
	if err != nil {
		t.Fatal(err)
	}
	left, err := r.term.sandbox.command(r.dir, []string{"bash", "child"})
	if err != nil {
		t.Fatal(err)
	}
	left.Env = environment(r.dir, "owner-of-this-test.1")
	out, err := left.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "1000")
	other.Env = []string{markName + "=another-owner.1"}
	for _, c := range []*exec.Cmd{left, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	w.close() // as when parley is gone
	_ = left.Wait()
	r.gone(1)
	if err := other.Process.Kill(); err != nil {
		t.Errorf("another parley's command was ended: %v", err)
	}
	_ = other.Wait()
}

func TestProcessIsJudged(t *testing.T) {
	r := newRig(t)
	for args, want := range map[string]tool.Danger{
		`{"action":"list"}`: tool.Ordinary, `{"action":"kill","id":"p1"}`: tool.Ordinary,
		`{"action":"write","id":"p1","text":"ls"}`: tool.Opaque, `{"action":"write","id":"p1","text":"rm -rf /"}`: tool.Forbidden,
	} {
		j := tool.Judge(r.term.Tools()[1], tool.Call{Conversation: "c1", Arguments: []byte(args)})
		if j.Danger != want || (want == tool.Ordinary) != (j.Needs == 0) {
			t.Errorf("%s: %+v", args, j)
		}
	}
}

// Output in pieces never parts a character, and what is dropped is dropped.
func TestProcessLog(t *testing.T) {
	dir := t.TempDir()
	l, err := newProcessLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("日本", readLimit/5)
	fmt.Fprint(l, text)
	var all strings.Builder
	for range 10 {
		part, left := l.next()
		all.WriteString(part)
		if left == 0 {
			break
		}
	}
	if all.String() != text {
		t.Errorf("%d bytes of %d, or parted", all.Len(), len(text))
	}
	l.close()
	if _, err := os.Stat(filepath.Join(dir, l.name)); err != nil {
		t.Error(err)
	}
}
