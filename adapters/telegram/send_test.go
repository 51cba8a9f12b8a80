package telegram

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/adaptertest/faketelegram"
	"parley/gateway/chat"
)

const room = -1_000_000_000_100

func in(id chat.ChatID, thread chat.ThreadID) chat.Address {
	return chat.Address{Account: "telegram/main", Chat: id, Thread: thread}
}

// violations ends a test: the adapter did nothing that the API only tolerates.
func violations(t *testing.T, p platform) {
	t.Helper()
	for _, v := range p.Violations() {
		t.Error(v)
	}
}

// TOP-003, TOP-004: a topic that is not there any more is left out, once.
func TestSendToTopics(t *testing.T) {
	p := fake(t)
	c := p.Open(faketelegram.Room{ID: room, Forum: true, Topics: []int64{77}})
	a := on(t, p.Server, p.Token())
	for _, tc := range []struct {
		thread chat.ThreadID
		want   int64
	}{{"77", 77}, {"", 0}, {"99", 0}} {
		if _, err := a.Send(t.Context(), in("-1000000000100", tc.thread), chat.Outgoing{Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if m, _ := c.Last(); m.Thread != tc.want {
			t.Errorf("sent to thread %q: arrived in %d", tc.thread, m.Thread)
		}
	}
	if n := len(p.Calls("sendMessage")); n != 4 {
		t.Errorf("%d calls", n)
	}
	violations(t, p)
}

// Replies in groups, no previews on send and edit alike (MKD-006).
func TestSendReplies(t *testing.T) {
	p := fake(t)
	c := p.Open(faketelegram.Room{ID: room})
	a := on(t, p.Server, p.Token())
	_, asked := p.Send(room, person, "question")
	id, err := a.Send(t.Context(), in("-1000000000100", ""), chat.Outgoing{Text: "https://x.example", Reply: chat.ReplyHandle(asString(asked))})
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := c.Last(); m.ReplyTo != asked || !m.NoPreview {
		t.Errorf("got %+v", m)
	}
	if err := a.Edit(t.Context(), in("-1000000000100", ""), id, chat.Outgoing{Text: "https://y.example"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := c.Last(); !m.NoPreview || m.Text != "https://y.example" {
		t.Errorf("got %+v", m)
	}
	p.Remove(room, asked)
	if _, err := a.Send(t.Context(), in("-1000000000100", ""), chat.Outgoing{Text: "late", Reply: chat.ReplyHandle(asString(asked))}); err != nil {
		t.Errorf("a reply to what is gone: %v", err)
	}
	violations(t, p)
}

func asString(id int64) string { return string(chatID(id)) }

// MKD-003, MKD-009, MKD-011: refused markup is sent as it was written.
func TestSendFallsBackToPlainText(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	p.FailNext("sendMessage", faketelegram.Refusal(400, "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\""))
	id, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: "**a** < \\*b"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := p.Shown(id); text != "**a** < \\*b" {
		t.Errorf("shown %q", text)
	}
	p.FailNext("editMessageText", faketelegram.Refusal(400, "Bad Request: can't parse entities: x"))
	if err := a.Edit(t.Context(), in("5", ""), id, chat.Outgoing{Text: "_c_"}); err != nil {
		t.Fatal(err)
	}
	if text, _ := p.Shown(id); text != "_c_" {
		t.Errorf("shown %q", text)
	}
}

// MKD-011: an edit shows a text as sending it does.
func TestEditShowsWhatSendShows(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	body := func(method string) [2]string {
		calls := p.Calls(method)
		c := calls[len(calls)-1]
		return [2]string{c.Params["text"], c.Params["parse_mode"]}
	}
	edited, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: "before", Live: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"|a|bb|\n|-|-|\n|ccc|d|", "# Head\n\n- **a**\n- [b](https://x.example)", "```go\nx := 1\n```", "> quote\n\n~~gone~~"} {
		if _, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: text}); err != nil {
			t.Fatal(err)
		}
		if err := a.Edit(t.Context(), in("5", ""), edited, chat.Outgoing{Text: text}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(body("sendMessage"), body("editMessageText")); d != "" {
			t.Errorf("%q (-sent +edited):\n%s", text, d)
		}
	}
	violations(t, p)
}

// A group that became a supergroup is followed, by what changes and removes the message
// too.
func TestSendFollowsMigration(t *testing.T) {
	p, b := fake(t), newInbox()
	p.Open(faketelegram.Room{ID: -7})
	a := on(t, p.Server, p.Token())
	run(t, a, b.sink)
	p.Migrate(-7, room, person)
	id, err := a.Send(t.Context(), in("-7", ""), chat.Outgoing{Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Edit(t.Context(), in("-7", ""), id, chat.Outgoing{Text: "y"}); err != nil {
		t.Error(err)
	}
	if got := p.Chat(room).Texts(); len(got) != 1 || got[0] != "y" {
		t.Errorf("got %q", got)
	}
	if err := a.Delete(t.Context(), in("-7", ""), id); err != nil || len(p.Chat(room).Texts()) != 0 {
		t.Errorf("removed: %v, got %q", err, p.Chat(room).Texts())
	}
	b.await(t, func() bool {
		for _, ev := range b.events {
			if m, ok := ev.(chat.ChatMoved); ok && m.To == chatID(room) && m.Address.Chat == "-7" {
				return true
			}
		}
		return false
	})
}

func TestSendToWhatIsGone(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	if _, err := a.Send(t.Context(), in("404", ""), chat.Outgoing{Text: "x"}); !errors.Is(err, chat.ErrGone) {
		t.Errorf("unknown chat: %v", err)
	}
	p.Block(alicesChat, person)
	if _, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: "x"}); !errors.Is(err, chat.ErrGone) {
		t.Errorf("blocked: %v", err)
	}
	var rejected *chat.RejectedError
	p.Unblock(alicesChat, person)
	for _, m := range []chat.Outgoing{{Text: ""}, {Text: strings.Repeat("x", 4097)}, {Text: "x", Buttons: [][]chat.Button{{{Label: "b", Data: strings.Repeat("d", 65)}}}}} {
		if _, err := a.Send(t.Context(), in("5", ""), m); !errors.As(err, &rejected) {
			t.Errorf("%.10q: %v", m.Text, err)
		}
	}
}

// ATT-010: files follow their text, which is never cut to a caption.
func TestSendFiles(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	path := filepath.Join(t.TempDir(), "secret-path")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("word ", 300)
	id, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: text, Files: []chat.OutgoingFile{{Path: path, Name: "report.txt"}}})
	if err != nil {
		t.Fatal(err)
	}
	ms := p.Chat(alicesChat).Messages()
	if len(ms) != 2 || asString(ms[0].ID) != string(id) || ms[0].Text != strings.TrimSpace(text) || ms[1].File == nil || ms[1].File.Name != "report.txt" || string(ms[1].File.Data) != "content" {
		t.Errorf("got %+v", ms)
	}
	p.FailNext("sendDocument", faketelegram.CutAfter)
	if _, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: "t", Files: []chat.OutgoingFile{{Path: path, Name: "n"}}}); !errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("text sent, file unknown: %v", err)
	}
	p.FailNext("sendDocument", faketelegram.TooManyRequests(3))
	var limited *chat.RateLimitError
	if _, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Files: []chat.OutgoingFile{{Path: path, Name: "n"}}}); !errors.As(err, &limited) {
		t.Errorf("file limited: %v", err)
	}
	p.FailNext("sendDocument", faketelegram.Refusal(403, "Forbidden: user is deactivated"))
	if _, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Files: []chat.OutgoingFile{{Path: path, Name: "n"}}}); !errors.Is(err, chat.ErrGone) {
		t.Errorf("file to a person who is gone: %v", err)
	}
	violations(t, p)
}

// DEL-004: the Bot API's own 500 may have taken effect; for an edit that is no
// matter.
func TestInternalServerError(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	p.FailNext("sendMessage", faketelegram.Refusal(500, "Internal Server Error"))
	if _, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: "x"}); !errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("send: %v", err)
	}
	p.FailNext("editMessageText", faketelegram.Refusal(500, "Internal Server Error"))
	if err := a.Edit(t.Context(), in("5", ""), "1", chat.Outgoing{Text: "x"}); err == nil || errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("edit: %v", err)
	}
}

// ATT-007: what is too large says so, and the message had arrived.
func TestOpenFile(t *testing.T) {
	p, b := fake(t), newInbox()
	a := on(t, p.Server, p.Token())
	run(t, a, b.sink)
	p.Post(faketelegram.Incoming{Chat: alicesChat, From: person, Text: "small", File: &faketelegram.File{Name: "a.txt", Data: []byte("data")}})
	p.Post(faketelegram.Incoming{Chat: alicesChat, From: person, Text: "large", File: &faketelegram.File{Name: "b.bin", Size: 25 << 20}})
	b.texts(t, 2)
	small, large := b.events[0].(chat.MessageReceived).Files[0], b.events[1].(chat.MessageReceived).Files[0]
	r, err := a.OpenFile(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || string(data) != "data" {
		t.Errorf("got %q, %v", data, err)
	}
	var rejected *chat.RejectedError
	if _, err = a.OpenFile(t.Context(), large); !errors.As(err, &rejected) {
		t.Errorf("too large: %v", err)
	}
	large.Size = 0
	if _, err = a.OpenFile(t.Context(), large); !errors.As(err, &rejected) {
		t.Errorf("too large, unknown size: %v", err)
	}
}

func TestReactionsTypingCommands(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	_, id := p.Send(alicesChat, person, "hi")
	for r, want := range map[chat.Reaction][]string{chat.ReactSeen: {"👀"}, chat.ReactWorking: {"✍"}, chat.ReactDone: {"👌"}, chat.ReactFailed: {"👎"}, chat.ReactNone: nil} {
		if err := a.React(t.Context(), in("5", ""), chat.MessageID(asString(id)), r); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, p.Chat(alicesChat).Reactions(id), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q: %v", r, p.Chat(alicesChat).Reactions(id))
		}
	}
	if err := a.Typing(t.Context(), in("5", "")); err != nil || len(p.Chat(alicesChat).Actions()) != 1 {
		t.Errorf("typing: %v", err)
	}
	err := a.PublishCommands(t.Context(), []chat.CommandInfo{{Name: "stop", Description: "Stop"}, {Name: "secret", Description: "x", AdminOnly: true}})
	if d := cmp.Diff([]faketelegram.Command{{Command: "stop", Description: "Stop"}}, p.Commands()); err != nil || d != "" {
		t.Errorf("commands: %v %s", err, d)
	}
	if link, err := a.InviteLink(t.Context(), "CODE"); err != nil || link != "https://t.me/"+p.BotUsername()+"?start=CODE" {
		t.Errorf("link %q, %v", link, err)
	}
	violations(t, p)
}

// Answers that come too late disturb nobody.
func TestAckButtonTooLate(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, p.Token())
	p.FailNext("answerCallbackQuery", faketelegram.Refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid"))
	if err := a.AckButton(t.Context(), chat.ButtonPressed{Ack: "1"}, "x"); err != nil {
		t.Error(err)
	}
}

func TestProbe(t *testing.T) {
	p := fake(t)
	fs, err := on(t, p.Server, p.Token()).Probe(t.Context())
	if err != nil || len(fs) == 0 || !fs[0].OK || !strings.Contains(fs[0].What, p.BotUsername()) || fs[len(fs)-1].What != "updates are polled" {
		t.Errorf("got %+v, %v", fs, err)
	}
	p.SetWebhook("https://elsewhere.example/")
	if fs, err = on(t, p.Server, p.Token()).Probe(t.Context()); err != nil || fs[len(fs)-1].OK || !strings.Contains(fs[len(fs)-1].Fix, "removes the webhook") {
		t.Errorf("with a webhook: %+v, %v", fs, err)
	}
	for _, token := range []string{"1:wrong", "malformed"} {
		fs, err = on(t, p.Server, token).Probe(t.Context())
		if err != nil || len(fs) != 1 || fs[0].OK || !strings.Contains(fs[0].Fix, "@BotFather") {
			t.Errorf("%s: %+v, %v", token, fs, err)
		}
	}
}
