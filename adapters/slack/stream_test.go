package slack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/adapters/adaptertest/fakeslack"
	"parley/gateway/chat"
)

// script is one message that is being written, in a thread.
type script struct {
	t  *testing.T
	s  *fakeslack.Server
	a  *Adapter
	to chat.Address
	id chat.MessageID
}

const paneThread = "1700000000.000001"

// write begins a live message in Alice's pane.
func write(t *testing.T, s *fakeslack.Server, a *Adapter, text string) *script {
	t.Helper()
	channel := s.OpenIM(alice)
	s.Begin(channel, paneThread)
	sc := &script{t: t, s: s, a: a, to: chat.Address{Account: "slack/main", Chat: chat.ChatID(channel), Thread: paneThread}}
	var err error
	if sc.id, err = a.Send(t.Context(), sc.to, chat.Outgoing{Key: "k", Text: text, Live: true}); err != nil {
		t.Fatal(err)
	}
	return sc
}

func (sc *script) edit(m chat.Outgoing) {
	sc.t.Helper()
	m.Key = "k"
	if err := sc.a.Edit(sc.t.Context(), sc.to, sc.id, m); err != nil {
		sc.t.Fatal(err)
	}
}

// shows compares what people see of the message, which is all that they see.
func (sc *script) shows(want string) fakeslack.Message {
	sc.t.Helper()
	m, ok := sc.s.Message(string(sc.to.Chat), string(sc.id))
	if !ok || m.Text != want {
		sc.t.Errorf("shown %q, want %q", m.Text, want)
	}
	if all := sc.s.Messages(string(sc.to.Chat)); len(all) != 1 {
		sc.t.Errorf("%d messages are shown", len(all))
	}
	for _, v := range sc.s.Violations() {
		sc.t.Error(v)
	}
	return m
}

// calls are the methods that were called, without those that are of no interest.
func (sc *script) calls() string {
	var names []string
	for _, c := range sc.s.Calls("") {
		if name, ok := strings.CutPrefix(c.Method, "chat."); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// An answer in a thread is one stream, from its first words to its end; only what is
// new is sent.
func TestAnswerIsAStream(t *testing.T) {
	s := newFake(t)
	sc := write(t, s, newAdapter(t, s, s.BotToken()), "One")
	sc.edit(chat.Outgoing{Text: "One **tw", Live: true, Buttons: [][]chat.Button{{{Label: "Stop", Data: "s"}}}})
	sc.edit(chat.Outgoing{Text: "One **tw", Live: true})
	sc.edit(chat.Outgoing{Text: "One **two** <", Live: true})
	sc.edit(chat.Outgoing{Text: "One **two** <@U0EVE> three.\n", Buttons: [][]chat.Button{{{Label: "More", Data: "m"}}}})
	m := sc.shows("One two <\u200b@U0EVE> three.")
	if m.Streaming || len(m.Buttons) != 1 || m.Buttons[0][0].Label != "More" {
		t.Errorf("the end is %+v", m)
	}
	if got := sc.calls(); got != "startStream appendStream appendStream stopStream" {
		t.Errorf("calls: %s", got)
	}
	sc.edit(chat.Outgoing{Text: "One **two** <@U0EVE> three.\n"}) // a final edit that is repeated
	sc.shows("One two <\u200b@U0EVE> three.")
}

// A stream in a channel is for the one who asked, by the event's own handle; without
// it there is none (THR-001: all in the same thread).
func TestStreamInAChannel(t *testing.T) {
	s, in, _ := started(t)
	a := newAdapter(t, s, s.BotToken())
	ts := s.Say("C0ROOM", alice, "<@"+fakeslack.BotUser+"> hello")
	o := in.next(t).Meta()
	for _, reply := range []chat.ReplyHandle{o.Reply, ""} {
		id, err := a.Send(t.Context(), o.Address, chat.Outgoing{Key: "k", Text: "hello", Live: true, Reply: reply})
		if err != nil {
			t.Fatal(err)
		}
		m, _ := s.Message("C0ROOM", string(id))
		if m.Thread != ts || m.Streamed != (reply != "") {
			t.Errorf("with the handle %q: %+v", reply, m)
		}
	}
	start := s.Calls("chat.startStream")[0].Params
	if start["recipient_user_id"] != alice.ID || start["recipient_team_id"] != fakeslack.TeamID {
		t.Errorf("it is for %q of %q", start["recipient_user_id"], start["recipient_team_id"])
	}
}

// STR-001: Slack ends a stream by itself; what it did not take is edited in, and
// nothing is lost or twice there. The same for each refusal, and for a call of which
// nobody knows whether it counted.
func TestStreamThatEnds(t *testing.T) {
	for name, faults := range map[string][]*fakeslack.Fault{
		"its time is over": {fakeslack.Refusal("message_not_in_streaming_state")},
		"refused":          {fakeslack.Refusal("invalid_arguments")},
		"internal error":   {fakeslack.Refusal("internal_error")},
		"lost":             {fakeslack.CutAfter},
		"cut":              {fakeslack.CutBefore},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake(t)
			sc := write(t, s, newAdapter(t, s, s.BotToken()), "One")
			s.FailNext("chat.appendStream", faults...)
			err := sc.a.Edit(t.Context(), sc.to, sc.id, chat.Outgoing{Key: "k", Text: "One two", Live: true})
			if errors.Is(err, chat.ErrAmbiguous) || errors.Is(err, chat.ErrGone) {
				t.Errorf("an interim edit: %v", err)
			}
			sc.edit(chat.Outgoing{Text: "One two three", Live: true})
			sc.shows("One two three")
			sc.edit(chat.Outgoing{Text: "One two three four"})
			if sc.shows("One two three four").Streaming {
				t.Error("the stream is still open")
			}
		})
	}
}

// STR-001: the same when the time really is over, at an append and at the end.
func TestStreamLife(t *testing.T) {
	for _, live := range []bool{true, false} {
		s := newFake(t, fakeslack.WithStreamLife(time.Nanosecond))
		sc := write(t, s, newAdapter(t, s, s.BotToken()), "One")
		sc.edit(chat.Outgoing{Text: "One two", Live: live})
		sc.edit(chat.Outgoing{Text: "One two three"})
		sc.shows("One two three")
	}
}

// What does not continue the text ends the stream, and the message is edited from
// then on: a text that was taken back, a tool's progress.
func TestStreamThatIsTakenBack(t *testing.T) {
	s := newFake(t)
	sc := write(t, s, newAdapter(t, s, s.BotToken()), "Let me look")
	sc.edit(chat.Outgoing{Progress: []string{"💬 Let me look", "⚙ ls <@U0EVE>"}, Live: true})
	sc.shows("💬 Let me look\n⚙ ls <@U0EVE>")
	sc.edit(chat.Outgoing{Text: "Three", Progress: []string{"✓ ls"}, Live: true})
	sc.edit(chat.Outgoing{Text: "Three files."})
	sc.shows("Three files.")
	if got := sc.calls(); got != "startStream stopStream update update update" {
		t.Errorf("calls: %s", got)
	}
}

// After a restart nobody knows the stream: it is stopped and edited, whatever the
// text, and can be deleted.
func TestStreamOfAnEarlierProcess(t *testing.T) {
	s := newFake(t)
	sc := write(t, s, newAdapter(t, s, s.BotToken()), "One two thr")
	sc.a = newAdapter(t, s, s.BotToken())
	sc.edit(chat.Outgoing{Text: "One two three", Live: true})
	sc.edit(chat.Outgoing{Text: "One two three"})
	if sc.shows("One two three").Streaming {
		t.Error("the stream is still open")
	}
	if err := newAdapter(t, s, s.BotToken()).Delete(t.Context(), sc.to, sc.id); err != nil {
		t.Error(err)
	}
}

// Where Slack takes no stream, there is an ordinary message: outside of threads, over
// its rate, without the method; a stream that was refused is not tried for a while.
func TestNoStream(t *testing.T) {
	for name, fault := range map[string]*fakeslack.Fault{
		"too many":    fakeslack.TooManyRequests(60),
		"not allowed": fakeslack.Refusal("feature_not_enabled"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake(t)
			s.FailNext("chat.startStream", fault)
			a := newAdapter(t, s, s.BotToken())
			sc := write(t, s, a, "One")
			sc.edit(chat.Outgoing{Text: "One two"})
			sc.shows("One two")
			if _, err := a.Send(t.Context(), sc.to, chat.Outgoing{Key: "k2", Text: "Again", Live: true}); err != nil {
				t.Fatal(err)
			}
			if got := sc.calls(); got != "startStream postMessage update postMessage" {
				t.Errorf("calls: %s", got)
			}
		})
	}
}

// A rate limit in mid-stream is told, and the stream goes on afterwards; while Slack
// wants to wait, it is not called.
func TestStreamIsLimited(t *testing.T) {
	s := newFake(t)
	sc := write(t, s, newAdapter(t, s, s.BotToken()), "One")
	s.FailNext("chat.appendStream", fakeslack.TooManyRequests(1))
	for range 2 {
		err := sc.a.Edit(t.Context(), sc.to, sc.id, chat.Outgoing{Key: "k", Text: "One two", Live: true})
		var limited *chat.RateLimitError
		if !errors.As(err, &limited) || limited.RetryAfter <= 0 {
			t.Fatalf("got %v", err)
		}
	}
	sc.edit(chat.Outgoing{Text: "One two"})
	sc.shows("One two")
	if got := sc.calls(); got != "startStream appendStream stopStream" {
		t.Errorf("calls: %s", got)
	}
}

// STR-014: somebody deletes the message while it is written.
func TestStreamIsDeleted(t *testing.T) {
	s := newFake(t)
	sc := write(t, s, newAdapter(t, s, s.BotToken()), "One")
	s.Remove(string(sc.to.Chat), string(sc.id))
	if err := sc.a.Edit(t.Context(), sc.to, sc.id, chat.Outgoing{Key: "k", Text: "One two", Live: true}); !errors.Is(err, chat.ErrGone) {
		t.Errorf("got %v", err)
	}
}

// However a text is divided in time, what was sent of it before is a beginning of
// what is sent after, and the end is the whole.
func TestGrowingOnlyGrows(t *testing.T) {
	pieces := []string{"a", " ", "@", "<", "!", "#", "here", "channel", "everyone", "@here", "<!channel>", "<@U0EVE1>", "<#C1", "[", "]", "(", "):", "[x]:", "\n", "*", "`", "é", "😀", "\x00", "_", "1"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		r := []rune(text)
		last := ""
		for i := range r {
			now := growing(chat.Outgoing{Text: string(r[:i+1]), Live: true})
			if !strings.HasPrefix(now, last) {
				t.Fatalf("%q became %q", last, now)
			}
			last = now
		}
		if end := growing(chat.Outgoing{Text: text}); !strings.HasPrefix(end, last) || strings.TrimSpace(end) != strings.TrimSpace(inert(text)) {
			t.Fatalf("%q ended as %q", last, end)
		}
	})
}
