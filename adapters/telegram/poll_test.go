package telegram

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"parley/adapters/adaptertest/faketelegram"
	"parley/config/secret"
	"parley/gateway/chat"
)

// inbox is a sink that keeps everything.
type inbox struct {
	mu     sync.Mutex
	events []chat.Event
	links  []chat.ConnectionChanged
	more   chan struct{}
}

func newInbox() *inbox { return &inbox{more: make(chan struct{}, 1000)} }

func (b *inbox) sink(_ context.Context, ev chat.Event) error {
	b.mu.Lock()
	if link, ok := ev.(chat.ConnectionChanged); ok {
		b.links = append(b.links, link)
	} else {
		b.events = append(b.events, ev)
	}
	b.mu.Unlock()
	b.more <- struct{}{}
	return nil
}

// texts waits for n messages and returns their texts.
func (b *inbox) texts(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	b.await(t, func() bool {
		out = nil
		for _, ev := range b.events {
			if m, ok := ev.(chat.MessageReceived); ok {
				out = append(out, m.Text)
			}
		}
		return len(out) >= n
	})
	return out
}

// await waits until ok, which is called under the lock after each event.
func (b *inbox) await(t *testing.T, ok func() bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		b.mu.Lock()
		done := ok()
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-b.more:
		case <-timeout:
			t.Fatalf("it did not happen; links %+v", b.links)
		}
	}
}

func (b *inbox) linked(state chat.ConnectionState, reason string) func() bool {
	return func() bool {
		for _, l := range b.links {
			if l.State == state && strings.Contains(l.Reason, reason) {
				return true
			}
		}
		return false
	}
}

func run(t *testing.T, a *Adapter, sink chat.Sink) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// One update that cannot be read holds up nothing.
func TestPollSkipsWhatCannotBeRead(t *testing.T) {
	p, b := fake(t), newInbox()
	p.Say("before")
	p.Raw(`{"message":{"message_id":77,"date":"not a number","chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"A"},"text":{"x":1}}}`)
	p.Raw(`{"message":{"message_id":78,"date":1,"chat":{"id":5,"type":"private"},"text":"nobody sent this"}}`)
	p.Say("after")
	run(t, on(t, p.Server, p.Token()), b.sink)
	if got := b.texts(t, 2); got[0] != "before" || got[1] != "after" {
		t.Errorf("got %q", got)
	}
	if err := p.Wait(t.Context(), func(s *faketelegram.Server) bool { return s.Counters().Pending == 0 }); err != nil {
		t.Error("not all was confirmed")
	}
}

// REC-004, REC-005, REC-006, REC-017: everything but a refused token heals, and
// what was sent meanwhile arrives once.
func TestPollHeals(t *testing.T) {
	p, b := fake(t), newInbox()
	p.FailNext("getMe", faketelegram.BadGateway, faketelegram.CutBefore)
	p.FailNext("getUpdates", faketelegram.Refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"),
		faketelegram.BadGateway, faketelegram.CutBefore, faketelegram.CutAfter, faketelegram.Refusal(500, "Internal Server Error"),
		faketelegram.TooManyRequests(1))
	p.Say("hello")
	run(t, on(t, p.Server, p.Token()), b.sink)
	if got := b.texts(t, 1); got[0] != "hello" {
		t.Errorf("got %q", got)
	}
	b.await(t, b.linked(chat.Reconnecting, "another process polls this bot"))
	b.await(t, b.linked(chat.Connected, ""))
	if n := p.Counters().Calls["getUpdates"]; n < 7 {
		t.Errorf("%d polls", n)
	}
}

// A poll that is never answered ends by itself (REC-005).
func TestPollThatHangsEnds(t *testing.T) {
	p, b := fake(t), newInbox()
	a := on(t, p.Server, p.Token())
	a.poll, a.grace = time.Second, 50*time.Millisecond
	p.FailNext("getUpdates", faketelegram.HangBefore)
	p.Say("hello")
	run(t, a, b.sink)
	b.texts(t, 1)
	b.await(t, b.linked(chat.Reconnecting, "deadline"))
}

// REC-017: a conflict that lasts makes the waits grow, is told once, and ends with the
// first poll that is answered.
func TestLastingConflictIsNoStorm(t *testing.T) {
	p, b := fake(t), newInbox()
	const conflicts, heal = 8, 5 * time.Millisecond
	left := conflicts
	var last time.Time
	var gap time.Duration
	p.Server.Fail(func(c faketelegram.Call) *faketelegram.Fault {
		if c.Method != "getUpdates" || left == 0 {
			return nil
		}
		left--
		now := time.Now()
		gap, last = now.Sub(last), now
		return faketelegram.Refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
	})
	p.Say("hello")
	run(t, on(t, p.Server, p.Token()), b.sink)
	b.texts(t, 1)
	b.await(t, b.linked(chat.Connected, ""))
	if gap < 20*heal {
		t.Errorf("after %d conflicts it waited %s, not longer than after the first", conflicts, gap)
	}
	told := 0
	for _, l := range b.links {
		if l.State == chat.Reconnecting {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times: %+v", told, b.links)
	}
}

// REC-010: connections that drop leave one loop behind: each message comes once.
func TestDropsDoNotMultiply(t *testing.T) {
	p, b := fake(t), newInbox()
	run(t, on(t, p.Server, p.Token()), b.sink)
	for i := range 5 {
		p.FailNext("getUpdates", faketelegram.CutBefore, faketelegram.CutAfter)
		p.Say(fmt.Sprint(i))
		b.texts(t, i+1)
	}
	p.Say("last")
	if got := b.texts(t, 6); strings.Join(got, " ") != "0 1 2 3 4 last" {
		t.Errorf("got %q", got)
	}
	if n := p.Counters().Calls["getMe"]; n != 1 {
		t.Errorf("%d sessions, want one", n)
	}
}

// CFG-002: a narrow list of updates that the server remembers of another program is
// replaced: buttons arrive.
func TestPollAsksForButtons(t *testing.T) {
	p, b := fake(t), newInbox()
	p.RememberAllowed("message")
	a := on(t, p.Server, p.Token())
	run(t, a, b.sink)
	id, err := a.Send(t.Context(), in("5", ""), chat.Outgoing{Text: "May I?", Buttons: [][]chat.Button{{{Label: "Yes", Data: "y"}}}})
	if err != nil {
		t.Fatal(err)
	}
	b.await(t, b.linked(chat.Connected, ""))
	p.Press(id, "y")
	b.await(t, func() bool {
		for _, ev := range b.events {
			if press, ok := ev.(chat.ButtonPressed); ok && press.Data == "y" {
				return true
			}
		}
		return false
	})
}

// A webhook that somebody set is removed, and nothing that waits is dropped.
func TestPollRemovesWebhook(t *testing.T) {
	p, b := fake(t), newInbox()
	p.Say("early")
	p.SetWebhook("http://127.0.0.1:1/hook")
	run(t, on(t, p.Server, p.Token()), b.sink)
	if got := b.texts(t, 1); got[0] != "early" {
		t.Errorf("got %q", got)
	}
	b.await(t, b.linked(chat.Reconnecting, "webhook"))
	for _, c := range p.Calls("deleteWebhook") {
		if c.Params["drop_pending_updates"] != "" {
			t.Error("pending updates were dropped")
		}
	}
}

func TestPollEndsWithARevokedToken(t *testing.T) {
	p, b := fake(t), newInbox()
	p.FailNext("getUpdates", nil, faketelegram.Unauthorized)
	err := on(t, p.Server, p.Token()).Run(t.Context(), b.sink)
	var cred *chat.CredentialError
	if !errors.As(err, &cred) || !strings.Contains(cred.Fix, "@BotFather") || !strings.Contains(cred.Fix, "platforms.telegram.main.token") {
		t.Errorf("Run: %v", err)
	}
}

// SEC-004: the token is in no log and no error, whatever goes wrong.
func TestTokenNeverShows(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	p := fake(t)
	cfg := DefaultConfig()
	cfg.APIBase, cfg.Token = p.URL(), secret.New(p.Token())
	h := newHTTP()
	t.Cleanup(h.CloseIdleConnections)
	a, err := New(cfg, Deps{Log: zap.New(core), HTTP: h, Poll: time.Second, Heal: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	to := chat.Address{Account: "telegram/main", Chat: "5"}
	for _, f := range []*faketelegram.Fault{
		faketelegram.CutBefore, faketelegram.CutAfter, faketelegram.BadGateway, faketelegram.Unauthorized, faketelegram.TooManyRequests(1),
		faketelegram.Refusal(404, "Not Found"), {Status: 200, Body: "<html>"}, faketelegram.HangBefore,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		p.Server.Fail(func(faketelegram.Call) *faketelegram.Fault { return f })
		_, err := a.Send(ctx, to, chat.Outgoing{Text: "x", Files: []chat.OutgoingFile{{Path: "poll_test.go", Name: "n"}}})
		_, link := a.InviteLink(ctx, "code")
		_, open := a.OpenFile(ctx, chat.File{ID: "x"})
		_, file := a.Send(ctx, to, chat.Outgoing{Files: []chat.OutgoingFile{{Path: "poll_test.go", Name: "n"}}})
		errs = append(errs, err, a.Edit(ctx, to, "1", chat.Outgoing{Text: "x"}), a.React(ctx, to, "1", chat.ReactSeen), link, open, file, a.Run(ctx, newInbox().sink))
		cancel()
	}
	_, key, _ := strings.Cut(p.Token(), ":")
	for _, err := range errs {
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, key) {
			t.Errorf("the token shows in %q", strings.ReplaceAll(text, key, "…"))
		}
	}
	for _, l := range logs.All() {
		if text := fmt.Sprint(l.Message, l.ContextMap()); strings.Contains(text, key) {
			t.Errorf("the token shows in the log: %q", strings.ReplaceAll(text, key, "…"))
		}
	}
}

// What was never sent is no unknown outcome.
func TestUnreachableIsPlain(t *testing.T) {
	cfg := DefaultConfig()
	cfg.APIBase, cfg.Token = "http://127.0.0.1:1", secret.New("1:x")
	a, err := New(cfg, Deps{Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Send(t.Context(), chat.Address{Chat: "5"}, chat.Outgoing{Text: "x"})
	if err == nil || errors.Is(err, chat.ErrAmbiguous) || errors.Is(err, chat.ErrGone) {
		t.Errorf("Send: %v", err)
	}
}
