package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/adaptertest/fakeslack"
	"parley/gateway/chat"
)

// inbox is a sink that keeps what it is given.
type inbox struct {
	mu     sync.Mutex
	refuse int
	events chan chat.Event
	states chan chat.ConnectionChanged
}

func newInbox() *inbox {
	return &inbox{events: make(chan chat.Event, 300), states: make(chan chat.ConnectionChanged, 300)}
}

func (i *inbox) sink(_ context.Context, ev chat.Event) error {
	if c, ok := ev.(chat.ConnectionChanged); ok {
		i.states <- c
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refuse > 0 {
		i.refuse--
		return errors.New("the store is away")
	}
	i.events <- ev
	return nil
}

func (i *inbox) next(t *testing.T) chat.Event {
	t.Helper()
	select {
	case ev := <-i.events:
		return ev
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
		return nil
	}
}

// text is the text of the next event, which must be a message.
func (i *inbox) text(t *testing.T) string {
	t.Helper()
	m, ok := i.next(t).(chat.MessageReceived)
	if !ok {
		t.Fatal("no message")
	}
	return m.Text
}

// state waits for a state of the link.
func (i *inbox) state(t *testing.T, s chat.ConnectionState) chat.ConnectionChanged {
	t.Helper()
	for {
		select {
		case c := <-i.states:
			if c.State == s {
				return c
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("never %s", s)
		}
	}
}

// none: nothing more has come once Slack has everything acknowledged.
func (i *inbox) none(t *testing.T, s *fakeslack.Server) {
	t.Helper()
	await(t, s, func(s *fakeslack.Server) bool { return s.Due() == 0 })
	select {
	case ev := <-i.events:
		t.Errorf("came too: %+v", ev)
	default:
	}
}

func await(t *testing.T, s *fakeslack.Server, ok func(*fakeslack.Server) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Wait(ctx, ok); err != nil {
		t.Fatal("it did not happen")
	}
}

// run runs an adapter until the test ends.
func run(t *testing.T, a *Adapter) *inbox {
	t.Helper()
	in := newInbox()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, in.sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	in.state(t, chat.Connected)
	return in
}

// started is a fake with a running adapter and Alice's conversation.
func started(t *testing.T, opts ...fakeslack.Option) (*fakeslack.Server, *inbox, string) {
	t.Helper()
	s := newFake(t, opts...)
	channel := s.OpenIM(alice)
	s.Open(fakeslack.Room{ID: "C0ROOM", Kind: fakeslack.Channel, Name: "room"})
	return s, run(t, newAdapter(t, s, s.BotToken())), channel
}

// DUP-001, DUP-007, DUP-010: an event that was not acknowledged comes again under
// another envelope, and has the same key; one whose first delivery is a repeat is
// taken all the same.
func TestRedeliveryHasTheSameKey(t *testing.T) {
	s := newFake(t)
	channel := s.OpenIM(alice)
	a := newAdapter(t, s, s.BotToken())
	s.Say(channel, alice, "while nobody listens")
	in := run(t, a)
	first := in.next(t).Meta().Key
	s.Again(channel, strings.TrimPrefix(string(first), "message/"+channel+"/"))
	if again := in.next(t).Meta().Key; again != first {
		t.Errorf("the key was %s and is %s", first, again)
	}
	in.none(t, s)
}

// DUP-001: a mention comes as message and as app_mention: one key for both.
func TestMentionIsOneEvent(t *testing.T) {
	s, in, _ := started(t)
	ts := s.Say("C0ROOM", alice, "<@"+fakeslack.BotUser+"> hello")
	for range 2 {
		m, ok := in.next(t).(chat.MessageReceived)
		if !ok || string(m.Key) != "message/C0ROOM/"+ts || m.Text != "hello" || !m.ForBot || m.Kind != chat.Group || string(m.Address.Thread) != ts {
			t.Errorf("got %+v", m)
		}
	}
	in.none(t, s)
}

// An event is acknowledged only once it is stored, and what follows keeps its place
// behind it.
func TestStoredBeforeAcknowledged(t *testing.T) {
	s := newFake(t, fakeslack.WithRetry(time.Hour))
	channel := s.OpenIM(alice)
	a := newAdapter(t, s, s.BotToken())
	in := newInbox()
	in.refuse = 3
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, in.sink) }()
	in.state(t, chat.Connected)
	s.Say(channel, alice, "one")
	s.Say(channel, alice, "two")
	for _, want := range []string{"one", "two"} {
		if got := in.text(t); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	in.none(t, s)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What cannot be read is acknowledged by the id of its envelope, else it would come
// for ever; what follows it is not held up (REC-003).
func TestStrangeEnvelopesAreAcknowledged(t *testing.T) {
	s, in, channel := started(t)
	for typ, payload := range map[string]string{
		"events_api":        `{"event":{"type":"message","channel":"D0ALICE","ts":17,"user":{"id":1}}}`,
		"something_new":     `{"a":1}`,
		"interactive":       `{"type":"block_actions","actions":{}}`,
		"slash_commands":    `[]`,
		"events_api ":       `{"event":[]}`,
		"workflow_step":     `"text"`,
		"events_api_future": `{"event":{"type":"message","subtype":"huddle_thread"}}`,
	} {
		s.Envelope(typ, json.RawMessage(payload))
	}
	s.Envelope("events_api", json.RawMessage(fmt.Sprintf(`{"event":{"type":"message","blocks":%q}}`, strings.Repeat("x", frameLimit))))
	s.Frame(`{"type":"of_tomorrow"}`)
	s.Frame(`not JSON at all`)
	s.Say(channel, alice, "after all that")
	got := in.next(t)
	if m, ok := got.(chat.MessageReceived); !ok || m.Text != "after all that" {
		t.Errorf("got %+v", got)
	}
	// The frame that is too large ends the socket: what was not acknowledged over it
	// comes again, with its key.
	await(t, s, func(s *fakeslack.Server) bool { return s.Due() == 0 })
	for len(in.events) > 0 {
		if again := in.next(t); again.Meta().Key != got.Meta().Key {
			t.Errorf("came too: %+v", again)
		}
	}
}

// REC-007: when Slack refreshes a socket the next one is open before the old one
// ends, and what comes over either counts once.
func TestRefreshOverlaps(t *testing.T) {
	s, in, channel := started(t)
	for i, reason := range []string{"warning", "refresh_requested"} {
		s.Disconnect(reason)
		await(t, s, func(s *fakeslack.Server) bool { return s.Opened() == i+2 })
		if s.Links() < 2 {
			t.Error("the old socket was closed before the new one was open")
		}
	}
	s.Say(channel, alice, "still there?")
	if got := in.text(t); got != "still there?" {
		t.Errorf("got %q", got)
	}
	in.none(t, s)
}

// REC-010: sockets that are cut are opened again, and no message is lost; one whose
// acknowledgement was cut off comes again with its key.
func TestCutsHeal(t *testing.T) {
	s, in, channel := started(t)
	seen := map[chat.EventKey]bool{}
	for i := range 3 {
		s.Cut()
		text := fmt.Sprint("after cut ", i)
		s.Say(channel, alice, text)
		in.state(t, chat.Reconnecting)
		in.state(t, chat.Connected)
		m := in.next(t).(chat.MessageReceived)
		for seen[m.Key] {
			m = in.next(t).(chat.MessageReceived)
		}
		if seen[m.Key] = true; m.Text != text {
			t.Errorf("got %q, want %q", m.Text, text)
		}
	}
	await(t, s, func(s *fakeslack.Server) bool { return s.Due() == 0 })
	if s.Links() != 1 {
		t.Errorf("%d sockets are open", s.Links())
	}
}

// REC-020: a socket that lets nothing through while it seems to be open is given up.
func TestSilentSocketIsLeft(t *testing.T) {
	s := newFake(t, fakeslack.WithPing(20*time.Millisecond))
	channel := s.OpenIM(alice)
	in := run(t, newAdapter(t, s, s.BotToken(), func(_ *Config, d *Deps) { d.Silence = 300 * time.Millisecond }))
	s.Silence()
	s.Say(channel, alice, "can you hear me?")
	if got := in.text(t); got != "can you hear me?" {
		t.Errorf("got %q", got)
	}
	if s.Opened() < 2 {
		t.Error("the silent socket was kept")
	}
}

// REC-006: whatever keeps a socket from being opened, it is tried again for ever, and
// the gateway is told why; a wait that Slack asks for is kept.
func TestOpeningHeals(t *testing.T) {
	s := newFake(t)
	s.FailNext("auth.test", fakeslack.BadGateway, fakeslack.CutBefore)
	s.FailNext("apps.connections.open", fakeslack.BadGateway, fakeslack.Refusal("internal_error"), fakeslack.CutAfter, fakeslack.TooManyRequests(1))
	channel := s.OpenIM(alice)
	in := run(t, newAdapter(t, s, s.BotToken()))
	s.Say(channel, alice, "at last")
	if got := in.text(t); got != "at last" {
		t.Errorf("got %q", got)
	}
	calls := s.Calls("apps.connections.open")
	if len(calls) != 5 {
		t.Fatalf("%d calls", len(calls))
	}
	if d := calls[4].At.Sub(calls[3].At); d < time.Second {
		t.Errorf("Slack asked for a second and was called after %s", d)
	}
}

// A token that is refused ends the adapter with the next step, and so does an
// app-level token without its scope, which the library would try for ever.
func TestRefusedTokensEndTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		method, word, fix string
	}{
		"bot token revoked":       {"auth.test", "token_revoked", "bot_token"},
		"workspace gone":          {"auth.test", "account_inactive", "bot_token"},
		"app token revoked":       {"apps.connections.open", "invalid_auth", "app_token"},
		"app token without scope": {"apps.connections.open", "missing_scope", "connections:write"},
		"bot token as app token":  {"apps.connections.open", "not_allowed_token_type", "app_token"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake(t)
			s.FailNext(tc.method, fakeslack.Refusal(tc.word))
			err := newAdapter(t, s, s.BotToken()).Run(t.Context(), newInbox().sink)
			cred, ok := errors.AsType[*chat.CredentialError](err)
			if !ok || !strings.Contains(cred.Fix, tc.fix) || !strings.Contains(cred.Reason, tc.word) {
				t.Errorf("Run ended with %v", err)
			}
		})
	}
}

// Socket Mode that is switched off in the app is no end: it can be switched on.
func TestSocketModeSwitchedOff(t *testing.T) {
	s, in, _ := started(t)
	s.Disconnect("link_disabled")
	if c := in.state(t, chat.Reconnecting); !strings.Contains(c.Reason, "switch it on") {
		t.Errorf("the reason is %q", c.Reason)
	}
	in.state(t, chat.Connected)
}
