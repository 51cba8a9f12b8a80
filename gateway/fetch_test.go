package gateway_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// attach delivers a direct message of the owner with files.
func attach(h *gatewaytest.Harness, id chat.MessageID, text string, files ...chat.File) chat.MessageID {
	h.T.Helper()
	return h.Deliver(chat.MessageReceived{Text: text, ForBot: true, Files: files, Origin: chat.Origin{
		Key: chat.EventKey("message/" + id), Message: id, Address: gatewaytest.Direct(owner), Kind: chat.Direct, From: owner, At: time.Now(),
	}})
}

// holding is a platform on which every file has that content.
func holding(content string) func(chat.File) (io.ReadCloser, error) {
	return func(chat.File) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

// What is attached lies in the conversation's folder before the turn begins, under a
// name with nothing in it but a name, also when the platform was away for a moment.
func TestAttachedFilesAreFetched(t *testing.T) {
	m := gatewaytest.NewModel(gatewaytest.Say("read it"))
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	var tries atomic.Int32
	h.Platform.Hold(func(f chat.File) (io.ReadCloser, error) {
		if tries.Add(1) == 1 {
			return nil, errors.New("away")
		}
		return holding("col1,col2\n")(f)
	})
	attach(h, "1", "what is in it?", chat.File{ID: "f", Name: "../../etc/$(rm -rf) my\n[report].csv", MIME: "text/csv"})
	h.Final(owner, "read it")
	said := gatewaytest.LastUser(&m.Requests()[0])
	_, rest, ok := strings.Cut(said, `[attached: "files/`)
	name, about, _ := strings.Cut(rest, `"`)
	if !ok || about != ", text/csv, 10 bytes]" || strings.ContainsAny(name, "/ $()[]\n") || !strings.HasSuffix(name, "report_.csv") {
		t.Fatalf("the model is told %q", said)
	}
	found, err := filepath.Glob(filepath.Join(h.Workspace, "*", "files", "*"))
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != name {
		t.Fatalf("the folder has %v, %v", found, err)
	}
	if b, err := os.ReadFile(found[0]); err != nil || string(b) != "col1,col2\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// ATT-007: what is too large is told to its sender and to the model; where there is
// nothing else, no model is asked.
func TestFilesThatCannotBeFetched(t *testing.T) {
	m := gatewaytest.NewModel(gatewaytest.Say("I see"))
	h := gatewaytest.New(t, m, gatewaytest.Options{Limits: chat.Limits{FileIn: 1 << 20}})
	h.Platform.Hold(holding(strings.Repeat("x", 1<<20+1)))
	attach(h, "1", "", chat.File{ID: "f", Name: "big.bin", Size: 2 << 20})
	h.Final(owner, "📎 I could not read “big\\.bin”: it is larger than the 1 MB that I can take in here.")
	if n := len(m.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	attach(h, "2", "and now?", chat.File{ID: "f", Name: "lies about its size.bin", Size: 5})
	h.Final(owner, "I see")
	if said := gatewaytest.LastUser(&m.Requests()[0]); !strings.Contains(said, "and now?") || !strings.Contains(said, ": it is larger than the 1 MB") {
		t.Errorf("the model is told %q", said)
	}
	if found, err := filepath.Glob(filepath.Join(h.Workspace, "*", "files", "*")); err != nil || len(found) != 0 {
		t.Errorf("the folder has %v, %v", found, err)
	}
}

// listener writes down what it is told to.
type listener func(name, audio string) (string, error)

func (l listener) Transcribe(_ context.Context, name string, audio io.Reader) (string, error) {
	b, err := io.ReadAll(audio)
	if err != nil {
		return "", err
	}
	return l(name, string(b))
}

var voice = chat.File{ID: "v", Name: "voice.ogg", MIME: "audio/ogg", Voice: true}

// ATT-003: a voice note is what the person said, marked as spoken; it is no command, and
// its bytes are in no text. One that nobody understands is told to its sender.
func TestVoiceNotes(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	said := "/stop and look"
	h := gatewaytest.New(t, m, gatewaytest.Options{Transcriber: listener(func(name, audio string) (string, error) {
		if !strings.HasSuffix(name, ".ogg") || audio != "OggS" {
			return "", errors.New("not the recording")
		}
		return said, nil
	})})
	h.Platform.Hold(holding("OggS"))
	attach(h, "1", "", voice)
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the answer", func(ps []gatewaytest.Post) bool { return len(ps) == 1 && !ps[0].Out.Live })
	if got := gatewaytest.LastUser(&m.Requests()[0]); !strings.Contains(got, "] (spoken) /stop and look\n[attached: ") || strings.Contains(got, "OggS") {
		t.Errorf("the model is told %q", got)
	}
	said = ""
	attach(h, "2", "", voice)
	h.Final(owner, "🎙 I could not understand this voice note. Please try once more, or write it.")
	if n := len(m.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// ATT-003: without a model to transcribe the sender is told what to do.
func TestVoiceNotesWithoutAListener(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{})
	h.Platform.Hold(holding("OggS"))
	attach(h, "1", "", voice)
	h.Final(owner, "🎙 I cannot listen to voice notes here: the owner has to name a model in `transcription.model`. Please write it.")
}

// A message whose file was being fetched when the process ended is fetched again and
// answered once.
func TestRestartWhileAFileIsFetched(t *testing.T) {
	o := gatewaytest.Options{Workspace: t.TempDir()}
	m := gatewaytest.NewModel(gatewaytest.Say("read it"))
	h := gatewaytest.New(t, m, o)
	begun := make(chan struct{})
	r, w := io.Pipe()
	h.Platform.Hold(func(chat.File) (io.ReadCloser, error) { close(begun); return r, nil })
	attach(h, "1", "read", chat.File{ID: "f", Name: "a.txt"})
	<-begun
	go func() { <-time.After(50 * time.Millisecond); w.CloseWithError(errors.New("cut")) }()
	h.Stop()
	o.Store, o.Platform = h.Store, gatewaytest.NewPlatform(chat.Limits{})
	o.Platform.Hold(holding("text"))
	h = gatewaytest.New(t, m, o)
	if ps := h.Final(owner, "read it"); len(ps) != 1 || len(m.Requests()) != 1 {
		t.Errorf("%d messages, %d requests", len(ps), len(m.Requests()))
	}
}

// STP-002: /stop withdraws a message whose file is being fetched.
func TestStopWhileAFileIsFetched(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{Config: func(c *gateway.Config) { c.Conversations.Busy = gateway.BusyQueue }})
	begun := make(chan struct{}, 8)
	r, w := io.Pipe()
	h.Platform.Hold(func(chat.File) (io.ReadCloser, error) { begun <- struct{}{}; return r, nil })
	attach(h, "1", "read", chat.File{ID: "f", Name: "a.txt"})
	<-begun
	h.Say(owner, "/stop")
	h.Final(owner, "Not answered any more: “read”.")
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	h.Say(owner, "next")
	h.Final(owner, "echo: next")
}
