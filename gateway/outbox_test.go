package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// sending sends the file that it is told of and answers with what came of it.
func sending(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
	if last := r.Messages[len(r.Messages)-1]; last.Role == llm.ToolRole {
		say(llm.TextDelta{Text: "result: " + last.Text()})
		return nil
	}
	say(llm.ToolCallDelta{ID: "c1", Name: "send_file", Arguments: fmt.Sprintf(`{"path":%q}`, lastLine(gatewaytest.LastUser(r)))})
	return nil
}

// work is the folder of the harness's only conversation.
func work(t *testing.T, h *gatewaytest.Harness) string {
	t.Helper()
	m := h.Say(owner, "/whoami")
	eventually(t, "the conversation", func() bool {
		w, err := h.Store.Explain(t.Context(), "test/main", "", m)
		return err == nil && w.Item.State == record.InboxDone
	})
	folder := filepath.Join(h.Workspace, string(explained(t, h, m).Item.Conversation))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file leaves only by the tool for it: once, from a copy that no command can swap, and
// above the answer.
func TestSendFile(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(sending), gatewaytest.Options{Limits: chat.Limits{FileOut: 100}})
	folder := work(t, h)
	write(t, filepath.Join(folder, "the report.txt"), "numbers")
	var sent string
	h.Platform.Fail(func(op string, m chat.Outgoing) error {
		if op == "send" && len(m.Files) == 1 {
			b, err := os.ReadFile(m.Files[0].Path)
			if sent += string(b); err != nil {
				return err
			}
			if sent == "numbers" {
				write(t, filepath.Join(folder, "the report.txt"), "other numbers")
				return errTransient
			}
		}
		return nil
	})
	h.Say(owner, "the report.txt")
	ps := h.Final(owner, "result: The file is in the chat now.")
	if len(ps) != 3 || len(ps[1].Out.Files) != 1 || ps[1].Out.Files[0].Name != "the_report.txt" || ps[1].Out.Text != "" {
		t.Fatalf("the chat shows %+v", ps)
	}
	if sent != "numbersnumbers" {
		t.Errorf("sent %q", sent)
	}
	if left, err := os.ReadDir(h.Outbox); err != nil || len(left) > 0 {
		t.Errorf("the outbox still has %v, %v", left, err)
	}
}

// Nothing outside the folder is sent, nor what a chat does not take.
func TestWhatIsNotSent(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(sending), gatewaytest.Options{Limits: chat.Limits{FileOut: 10}})
	folder := work(t, h)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	if err := os.Symlink(secret, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "empty"), "")
	write(t, filepath.Join(folder, "large"), strings.Repeat("x", 11))
	for path, want := range map[string]string{
		"link": "inside the working folder", secret: "inside the working folder", "../../etc/passwd": "inside the working folder", "none": "There is no file",
		".": "no regular file", "empty": "is empty", "large": "at most 10",
	} {
		h.Say(owner, path)
		h.Platform.Await(t, gatewaytest.Direct(owner).Chat, path, func(ps []gatewaytest.Post) bool {
			last := newest(ps)
			return !last.Live && strings.HasPrefix(last.Text, "result: ") && strings.Contains(last.Text, want)
		})
		h.Say(owner, "/new")
	}
	for _, p := range h.Platform.Posts("") {
		if len(p.Out.Files) > 0 {
			t.Errorf("sent %+v", p.Out.Files)
		}
	}
}

// What the platform refuses is told to the model.
func TestRefusedFile(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(sending), gatewaytest.Options{})
	write(t, filepath.Join(work(t, h), "a.exe"), "MZ")
	h.Platform.Fail(func(op string, m chat.Outgoing) error {
		if op == "send" && len(m.Files) > 0 {
			return &chat.RejectedError{Reason: "no programs"}
		}
		return nil
	})
	h.Say(owner, "a.exe")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the answer", func(ps []gatewaytest.Post) bool {
		return strings.Contains(newest(ps).Text, "did not take the file: chat: rejected: no programs")
	})
}

// A file whose sending a dead process had announced is sent by the next one.
func TestFileIsSentAfterARestart(t *testing.T) {
	o := gatewaytest.Options{Workspace: t.TempDir()}
	h := gatewaytest.New(t, gatewaytest.NewModel(sending), o)
	write(t, filepath.Join(work(t, h), "a.txt"), "text")
	tried := make(chan struct{}, 100)
	h.Platform.Fail(func(op string, m chat.Outgoing) error {
		if op == "send" && len(m.Files) > 0 {
			tried <- struct{}{}
			return errors.New("away")
		}
		return nil
	})
	h.Say(owner, "a.txt")
	<-tried
	h.Stop()
	o.Store, o.Platform = h.Store, gatewaytest.NewPlatform(chat.Limits{})
	h = gatewaytest.New(t, gatewaytest.NewModel(sending), o)
	ps := h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "file and answer", func(ps []gatewaytest.Post) bool {
		return len(ps) > 1 && !newest(ps).Live && strings.HasPrefix(newest(ps).Text, "result: ")
	})
	files := 0
	for _, p := range ps {
		files += len(p.Out.Files)
	}
	if files != 1 {
		t.Errorf("%d files: %+v", files, ps)
	}
}
