package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentcore"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// lay puts a file of that age into a conversation's files.
func lay(t *testing.T, folder, name string, size int64, age time.Duration) {
	t.Helper()
	name = filepath.Join(folder, "files", name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, name, "")
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(folder, "files"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		_, rest, _ := strings.Cut(e.Name(), "-")
		names = append(names, rest)
	}
	slices.Sort(names)
	return names
}

// What people send does not fill the disk: the oldest copies go, by number and by size,
// but none that still waits to be answered, and nothing that tools have put there. The
// model is told of a picture that is gone (ATT-011).
func TestOldCopiesGo(t *testing.T) {
	m := gatewaytest.NewModel(gatewaytest.Say("I see"))
	h := gatewaytest.New(t, m, gatewaytest.Options{Agent: func(_ *agentcore.Config, d *agentcore.Deps) {
		d.Facts = func(llm.ModelID) llm.Facts {
			return llm.Facts{ContextWindow: gatewaytest.Window, MaxOutput: 1000, Vision: true}
		}
	}})
	folder := work(t, h)
	h.Platform.Hold(holding(gray(t)))
	said := 0
	ask := func(files ...chat.File) llm.Request {
		t.Helper()
		said++
		n := len(m.Requests())
		attach(h, chat.MessageID(fmt.Sprint("m", said)), "what is it?", files...)
		eventually(t, "an answer", func() bool {
			ps := h.Platform.Posts(gatewaytest.Direct(owner).Chat)
			return len(ps) > 0 && len(m.Requests()) == n+1 && !ps[len(ps)-1].Out.Live && ps[len(ps)-1].Out.Text == "I see"
		})
		return m.Requests()[n]
	}
	_ = ask(chat.File{ID: "f", Name: "first.png", MIME: "image/png"})
	first, err := filepath.Glob(filepath.Join(folder, "files", "*-first.png"))
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	lay(t, folder, filepath.Base(first[0]), 10, 300*time.Hour)
	for i := range 205 {
		lay(t, folder, fmt.Sprintf("%08x-%03d.csv", i, i), 10, time.Duration(i+1)*time.Hour)
	}
	lay(t, folder, "made by a tool.csv", 10, 999*time.Hour)
	lay(t, folder, ".part-LEFTBYACRASH", 10, 0)
	r := ask(chat.File{ID: "f", Name: "second.png", MIME: "image/png"})
	left := filesIn(t, folder)
	if n := len(left); n != 201 || !slices.Contains(left, "second.png") || !slices.Contains(left, "198.csv") || slices.Contains(left, "199.csv") || slices.Contains(left, "LEFTBYACRASH") {
		t.Errorf("%d files are left: %v", n, left)
	}
	if _, err := os.Stat(filepath.Join(folder, "files", "made by a tool.csv")); err != nil {
		t.Error(err)
	}
	if text := fmt.Sprint(r.Messages); !strings.Contains(text, "first.png") || !strings.Contains(text, "cannot be shown: it is damaged, or no longer kept.") {
		t.Errorf("the model is told %s", text)
	}
	// Two of 600 MB are too much together; the file of the message itself stays.
	lay(t, folder, "ffffffff-big.bin", 600<<20, -time.Hour)
	lay(t, folder, "fffffffe-older.bin", 600<<20, -time.Minute)
	_ = ask(chat.File{ID: "f", Name: "third.png", MIME: "image/png"})
	if left := filesIn(t, folder); !slices.Equal(left, []string{"", "big.bin", "third.png"}) {
		t.Errorf("left are %v", left)
	}
}

// What a process that died has left in the outbox goes at a later start.
func TestOutboxIsCleared(t *testing.T) {
	space := t.TempDir()
	old, young := filepath.Join(space, ".outbox", "old"), filepath.Join(space, ".outbox", "young")
	for name, age := range map[string]time.Duration{old: 8 * 24 * time.Hour, young: 6 * 24 * time.Hour} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(name, "file"), "content")
		if err := os.Chtimes(name, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{Workspace: space})
	eventually(t, "the old one is gone", func() bool { _, err := os.Stat(old); return os.IsNotExist(err) })
	if _, err := os.Stat(filepath.Join(young, "file")); err != nil {
		t.Error(err)
	}
}
