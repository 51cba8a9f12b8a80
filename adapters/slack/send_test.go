package slack

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/adaptertest/fakeslack"
	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// ready is a fake with Alice's conversation, a room, and an adapter that knows who it
// is and does not run.
func ready(t *testing.T, opts ...fakeslack.Option) (*fakeslack.Server, *Adapter, chat.Address) {
	t.Helper()
	s := newFake(t, opts...)
	channel := s.OpenIM(alice)
	s.Open(fakeslack.Room{ID: "C0ROOM", Kind: fakeslack.Channel, Name: "room"})
	a := newAdapter(t, s, s.BotToken())
	if _, err := a.me(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, a, chat.Address{Account: "slack/main", Chat: chat.ChatID(channel)}
}

func send(t *testing.T, s *fakeslack.Server, a *Adapter, to chat.Address, m chat.Outgoing) fakeslack.Message {
	t.Helper()
	id, err := a.Send(t.Context(), to, m)
	if err != nil {
		t.Fatal(err)
	}
	shown, _ := s.Message(string(to.Chat), string(id))
	for _, v := range s.Violations() {
		t.Error(v)
	}
	return shown
}

// THR-001: everything goes to the thread that it belongs to.
func TestSendKeepsTheThread(t *testing.T) {
	s, a, _ := ready(t)
	ts := s.Say("C0ROOM", alice, "hello")
	at := chat.Address{Account: "slack/main", Chat: "C0ROOM", Thread: chat.ThreadID(ts)}
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("some text"), 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, s, a, at, chat.Outgoing{Key: "1", Text: "an answer", Files: []chat.OutgoingFile{{Path: path, Name: "a.txt"}}})
	send(t, s, a, at, chat.Outgoing{Key: "2", Text: "for one", Ephemeral: true, Reply: handle{user: alice.ID, team: "T"}.encode()})
	press := chat.ButtonPressed{Origin: chat.Origin{Address: at}, Ack: alice.ID}
	if err := a.AckButton(t.Context(), press, "Not <yours> & mine"); err != nil {
		t.Fatal(err)
	}
	all := s.Messages("C0ROOM")
	if len(all) != 4 {
		t.Fatalf("%d messages", len(all))
	}
	for _, m := range all {
		if m.Thread != ts {
			t.Errorf("%q stands in %q", m.Text, m.Thread)
		}
	}
	if all[1].File == nil || string(all[1].File.Data) != "some text" {
		t.Errorf("the file is %+v", all[1].File)
	}
	if all[2].Only != alice.ID || all[3].Only != alice.ID || all[3].Text != "Not <yours> & mine" {
		t.Errorf("what one person sees: %+v", all[2:])
	}
}

// STR-028: if Slack refuses the blocks, the same text arrives without markup, when
// posting and when editing, however long it is.
func TestRefusedBlocksArePlain(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("A **long** line.\n", 600))
	for _, word := range blocksRefused {
		s, a, to := ready(t)
		s.FailNext("chat.postMessage", fakeslack.Refusal(word))
		m := send(t, s, a, to, chat.Outgoing{Key: "k", Text: "**short** & <sweet>"})
		if m.Text != "**short** & <sweet>" {
			t.Errorf("%s: %q", word, m.Text)
		}
		s.FailNext("chat.update", fakeslack.Refusal(word))
		if err := a.Edit(t.Context(), to, chat.MessageID(m.TS), chat.Outgoing{Key: "k", Text: long}); err != nil {
			t.Fatal(err)
		}
		m, _ = s.Message(string(to.Chat), m.TS)
		if got := strings.ReplaceAll(m.Text, "\n", ""); got != strings.ReplaceAll(long, "\n", "") {
			t.Errorf("%s: %d characters of %d", word, len(got), len(long))
		}
	}
}

// STR-027: "ok": false within a 200 is no success.
func TestRefusalWithin200(t *testing.T) {
	s, a, to := ready(t)
	m := send(t, s, a, to, chat.Outgoing{Key: "k", Text: "one"})
	s.FailNext("chat.update", fakeslack.Refusal("ratelimited"))
	var limited *chat.RateLimitError
	if err := a.Edit(t.Context(), to, chat.MessageID(m.TS), chat.Outgoing{Key: "k", Text: "two"}); !errors.As(err, &limited) || limited.RetryAfter <= 0 {
		t.Errorf("got %v", err)
	}
}

// A method that was told to wait is left alone for every chat; another is not, and
// posting counts by channel.
func TestWaitsByMethod(t *testing.T) {
	s, a, to := ready(t)
	other := chat.Address{Account: "slack/main", Chat: "C0ROOM"}
	m := send(t, s, a, to, chat.Outgoing{Key: "1", Text: "one"})
	n := send(t, s, a, other, chat.Outgoing{Key: "2", Text: "two"})
	s.FailNext("chat.update", fakeslack.TooManyRequests(60))
	for where, id := range map[chat.Address]string{to: m.TS, other: n.TS} {
		var limited *chat.RateLimitError
		if err := a.Edit(t.Context(), where, chat.MessageID(id), chat.Outgoing{Key: "k", Text: "x"}); !errors.As(err, &limited) || limited.RetryAfter < 50*time.Second {
			t.Errorf("got %v", err)
		}
	}
	if n := s.Counts()["chat.update"]; n != 1 {
		t.Errorf("%d calls", n)
	}
	// With no edits to be had, a message that would need them is not begun.
	var limited *chat.RateLimitError
	if _, err := a.Send(t.Context(), to, chat.Outgoing{Key: "3", Text: "thr", Live: true}); !errors.As(err, &limited) {
		t.Errorf("a live message: %v", err)
	}
	send(t, s, a, to, chat.Outgoing{Key: "3", Text: "three"})
	s.FailNext("chat.postMessage", fakeslack.TooManyRequests(60))
	if _, err := a.Send(t.Context(), to, chat.Outgoing{Key: "4", Text: "four"}); !errors.As(err, &limited) {
		t.Errorf("got %v", err)
	}
	send(t, s, a, other, chat.Outgoing{Key: "5", Text: "five"})
}

// MEN-007, MKD-006: nothing that the bot says calls people, wherever it says it, and
// no link is unfolded.
func TestNobodyIsCalled(t *testing.T) {
	s, a, to := ready(t)
	text := "<!channel> <!here|x> <@U0EVE> <#C0ROOM> @here,@channel (@everyone) <!subteam^S1> `<@U0EVE>`\n```\n@here <!channel>\n```\n[@here](https://x.example/@channel)"
	m := send(t, s, a, to, chat.Outgoing{Key: "1", Text: text, Progress: []string{"⚙ echo <!channel> @here"}, Buttons: [][]chat.Button{{{Label: "<!here> @here", Data: "x"}}}})
	if err := a.Edit(t.Context(), to, chat.MessageID(m.TS), chat.Outgoing{Key: "1", Text: "again " + text}); err != nil {
		t.Fatal(err)
	}
	s.FailNext("chat.update", fakeslack.Refusal("invalid_blocks"))
	if err := a.Edit(t.Context(), to, chat.MessageID(m.TS), chat.Outgoing{Key: "1", Text: "once more " + text}); err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Violations() {
		t.Error(v)
	}
	shown, _ := s.Message(string(to.Chat), m.TS)
	if got := strings.ReplaceAll(shown.Text, apart, ""); !strings.Contains(got, "<!channel> <!here|x> <@U0EVE>") {
		t.Errorf("people read %q", got)
	}
}

// SPL-004: neither posting nor editing ever has more than Slack takes, whatever the
// text.
func TestLengths(t *testing.T) {
	s, a, to := ready(t)
	for _, text := range []string{
		strings.Repeat("&<>", 20000), strings.Repeat("😀", 13000), strings.Repeat("@here ", 4000), strings.Repeat("**b** ", 5000), strings.Repeat("x", 50000),
	} {
		for i, part := range markdown.Split(text, a.Limits()) {
			m := send(t, s, a, to, chat.Outgoing{Key: fmt.Sprint(i), Text: part, Progress: []string{strings.Repeat("p", 5000), "last"}})
			if err := a.Edit(t.Context(), to, chat.MessageID(m.TS), chat.Outgoing{Key: fmt.Sprint(i), Text: part}); err != nil {
				t.Errorf("%.10q, part %d: %v", text, i, err)
			}
			if n := utf8.RuneCountInString(m.Notice); n > noticeLimit {
				t.Errorf("%.10q: a notice of %d characters", text, n)
			}
		}
	}
}

// Find tells by the message's own metadata; what is not there was not sent.
func TestFind(t *testing.T) {
	s, a, to := ready(t)
	ts := s.Say("C0ROOM", alice, "hello")
	room := chat.Address{Account: "slack/main", Chat: "C0ROOM", Thread: chat.ThreadID(ts)}
	for _, at := range []chat.Address{to, room} {
		for i := range 450 {
			s.Post(fakeslack.Incoming{Channel: string(at.Chat), Thread: string(at.Thread), From: alice, Text: fmt.Sprint("chatter ", i)})
			if i == 200 {
				s.FailNext("chat.postMessage", fakeslack.CutAfter)
				if _, err := a.Send(t.Context(), at, chat.Outgoing{Key: "the key", Text: "answer"}); !errors.Is(err, chat.ErrAmbiguous) {
					t.Fatalf("got %v", err)
				}
			}
		}
		id, ok, err := a.Find(t.Context(), at, chat.Attempt{Key: "the key"})
		if m, _ := s.Message(string(at.Chat), string(id)); err != nil || !ok || m.Text != "answer" {
			t.Errorf("found %s %v %v: %+v", id, ok, err, m)
		}
		if id, ok, err := a.Find(t.Context(), at, chat.Attempt{Key: "another key"}); ok || err != nil {
			t.Errorf("found %s %v", id, err)
		}
	}
}

// MEN-017: what was said in the thread before the first mention can be read, the
// newest of it, without the message itself.
func TestHistory(t *testing.T) {
	s, a, to := ready(t)
	root := s.Say("C0ROOM", fakeslack.User{ID: "U0BOB", Name: "Bob"}, "Shall we &lt;deploy&gt;?")
	for i := range 3 {
		s.Post(fakeslack.Incoming{Channel: "C0ROOM", Thread: root, From: alice, Text: fmt.Sprint("reply ", i)})
	}
	at := chat.Address{Account: "slack/main", Chat: "C0ROOM", Thread: chat.ThreadID(root)}
	send(t, s, a, at, chat.Outgoing{Key: "k", Text: "I think so"})
	asked := s.Post(fakeslack.Incoming{Channel: "C0ROOM", Thread: root, From: alice, Text: "<@" + fakeslack.BotUser + "> do it"})
	s.Post(fakeslack.Incoming{Channel: "C0ROOM", Thread: root, From: alice, Text: "later"})
	quotes, err := a.History(t.Context(), at, chat.MessageID(asked), 20)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range quotes {
		got = append(got, fmt.Sprint(q.From.Name, " ", q.FromBot, " ", q.Text))
	}
	if d := cmp.Diff([]string{"Bob false Shall we <deploy>?", "Alice false reply 0", "Alice false reply 1", "Alice false reply 2", "parley true I think so"}, got); d != "" {
		t.Error(d)
	}
	if quotes, err = a.History(t.Context(), at, chat.MessageID(asked), 2); err != nil || len(quotes) != 2 || quotes[1].Text != "I think so" {
		t.Errorf("the newest two: %+v %v", quotes, err)
	}
	s.Say(string(to.Chat), alice, "first")
	s.Say(string(to.Chat), alice, "second")
	last := s.Say(string(to.Chat), alice, "third")
	if quotes, err = a.History(t.Context(), to, chat.MessageID(last), 5); err != nil || len(quotes) != 2 || quotes[0].Text != "first" {
		t.Errorf("outside of threads: %+v %v", quotes, err)
	}
}

// One reaction at a time, also over a restart; where none is possible that is nobody's
// error.
func TestReactions(t *testing.T) {
	s, a, to := ready(t)
	ts := s.Say(string(to.Chat), alice, "hello")
	for _, step := range []struct {
		r    chat.Reaction
		want []string
	}{
		{chat.ReactSeen, []string{"eyes"}}, {chat.ReactWorking, []string{"hourglass_flowing_sand"}}, {chat.ReactWorking, []string{"hourglass_flowing_sand"}},
		{chat.ReactDone, []string{"white_check_mark"}}, {chat.ReactSeen, []string{"eyes"}}, {chat.ReactNone, nil}, {chat.ReactFailed, []string{"x"}},
	} {
		if err := a.React(t.Context(), to, chat.MessageID(ts), step.r); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.want, s.Reactions(string(to.Chat), ts)); d != "" {
			t.Errorf("%s: %s", step.r, d)
		}
	}
	other := s.Say(string(to.Chat), alice, "hello")
	if err := a.React(t.Context(), to, chat.MessageID(other), chat.ReactWorking); err != nil {
		t.Fatal(err)
	}
	if err := newAdapter(t, s, s.BotToken()).React(t.Context(), to, chat.MessageID(other), chat.ReactDone); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"white_check_mark"}, s.Reactions(string(to.Chat), other)); d != "" {
		t.Error(d)
	}
	s.Remove(string(to.Chat), other)
	if err := a.React(t.Context(), to, chat.MessageID(other), chat.ReactDone); err != nil {
		t.Errorf("on a deleted message: %v", err)
	}
}

// The assistant pane: status and title in its threads, and nowhere else.
func TestStatusAndTitle(t *testing.T) {
	s, a, to := ready(t)
	pane := to
	pane.Thread = paneThread
	s.Begin(string(to.Chat), paneThread)
	root := s.Say("C0ROOM", alice, "hello")
	room := chat.Address{Account: "slack/main", Chat: "C0ROOM", Thread: chat.ThreadID(root)}
	for _, at := range []chat.Address{to, pane, room} {
		if err := a.Typing(t.Context(), at); err != nil {
			t.Error(err)
		}
		if err := a.SetTitle(t.Context(), at, strings.Repeat("long ", 100)); err != nil {
			t.Error(err)
		}
	}
	var threads []string
	for _, st := range s.Statuses() {
		threads = append(threads, st.Channel+"/"+st.Thread)
	}
	if d := cmp.Diff([]string{string(pane.Chat) + "/" + paneThread, "C0ROOM/" + root}, threads); d != "" {
		t.Error(d)
	}
	if titles := s.Titles(); len(titles) != 1 || titles[0].Thread != paneThread || !strings.HasPrefix(titles[0].Title, "long long") {
		t.Errorf("titles %+v", titles)
	}
}

// ATT-010, SEC-004: files come in with the token, which goes nowhere else.
func TestOpenFile(t *testing.T) {
	var leaked string
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked = r.Header.Get("Authorization") + "!" }))
	defer foreign.Close()
	s, in, channel := started(t)
	a := newAdapter(t, s, s.BotToken())
	s.Post(fakeslack.Incoming{Channel: channel, From: alice, File: &fakeslack.File{Name: "a b.txt", MIME: "text/plain", Data: []byte("content")}})
	m := in.next(t).(chat.MessageReceived)
	if len(m.Files) != 1 || m.Files[0].Name != "a b.txt" || m.Files[0].Size != 7 || m.Text != "" {
		t.Fatalf("got %+v", m)
	}
	r, err := a.OpenFile(t.Context(), m.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if b, err := io.ReadAll(r); err != nil || string(b) != "content" {
		t.Errorf("read %q %v", b, err)
	}
	s.Post(fakeslack.Incoming{Channel: channel, From: alice, File: &fakeslack.File{Name: "far", URL: foreign.URL + "/x"}})
	var rejected *chat.RejectedError
	if _, err := a.OpenFile(t.Context(), in.next(t).(chat.MessageReceived).Files[0]); !errors.As(err, &rejected) {
		t.Errorf("a file elsewhere: %v", err)
	}
	if leaked != "" {
		t.Errorf("somebody else was asked, with %q", leaked)
	}
}

// A file that the token may not read is the sign-in page: it is not taken for the
// file.
func TestOpenFileWithoutScope(t *testing.T) {
	s, in, channel := started(t)
	s.Post(fakeslack.Incoming{Channel: channel, From: alice, File: &fakeslack.File{Name: "page.html", MIME: "text/html", Data: []byte("<p>")}})
	f := in.next(t).(chat.MessageReceived).Files[0]
	a := newAdapter(t, s, s.BotToken())
	r, err := a.OpenFile(t.Context(), f)
	if err != nil {
		t.Fatalf("an HTML file: %v", err)
	}
	_ = r.Close()
	s.Revoke("files:read")
	if _, err = a.OpenFile(t.Context(), f); err == nil || !strings.Contains(err.Error(), "missing_scope") {
		t.Errorf("without the scope: %v", err)
	}
}

// Files that Slack would refuse are refused before anything is sent of them.
func TestSendFileRefused(t *testing.T) {
	s, a, to := ready(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, filepath.Join(t.TempDir(), "none")} {
		var rejected *chat.RejectedError
		if _, err := a.Send(t.Context(), to, chat.Outgoing{Key: "k", Files: []chat.OutgoingFile{{Path: path, Name: "x"}}}); !errors.As(err, &rejected) {
			t.Errorf("%s: %v", path, err)
		}
	}
	good := filepath.Join(t.TempDir(), "good")
	if err := os.WriteFile(good, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := chat.Outgoing{Key: "k", Files: []chat.OutgoingFile{{Path: good, Name: "x"}}}
	s.FailNext("files.completeUploadExternal", fakeslack.CutAfter)
	if _, err := a.Send(t.Context(), to, file); !errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("an upload of which nobody knows: %v", err)
	}
	if id, ok, err := a.Find(t.Context(), to, chat.Attempt{Key: "k"}); !ok || err != nil || !strings.HasPrefix(string(id), fileMessage) {
		t.Errorf("it was shown, and is not found: %s %v", id, err)
	}
	s.FailNext("files.completeUploadExternal", fakeslack.CutBefore)
	file.Key = "k2"
	if _, err := a.Send(t.Context(), to, file); !errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("another: %v", err)
	}
	if id, ok, err := a.Find(t.Context(), to, chat.Attempt{Key: "k2"}); ok || err != nil {
		t.Errorf("it was not shown, and is found: %s %v", id, err)
	}
	s.FailNext("files.getUploadURLExternal", fakeslack.CutAfter)
	if _, err := a.Send(t.Context(), to, file); err == nil || errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("an upload that was not begun: %v", err)
	}
	id, err := a.Send(t.Context(), to, file)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Edit(t.Context(), to, id, file); err != nil {
		t.Errorf("edit: %v", err)
	}
	for range 2 {
		if err := a.Delete(t.Context(), to, id); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
}
