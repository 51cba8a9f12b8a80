package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/adaptertest/fakeslack"
	"parley/gateway/chat"
)

// decodeEvent hands an inner event, with ' for ", to the adapter.
func decodeEvent(t *testing.T, a *Adapter, event string) []chat.Event {
	t.Helper()
	evs, err := a.events(t.Context(), kindEvents, json.RawMessage(`{"event":`+strings.ReplaceAll(event, "'", `"`)+`}`))
	if err != nil {
		t.Fatalf("%s: %v", event, err)
	}
	return evs
}

// ATT-001: what carries something makes a message, from whichever field; the
// platform's own notes make none.
func TestDecodeSubtypes(t *testing.T) {
	_, a, _ := ready(t)
	for event, want := range map[string]string{
		`'text':'plain'`: "plain",
		`'subtype':'file_share','text':'look','files':[{'id':'F1','name':'a'}]`:                      "look+a",
		`'subtype':'file_share','text':'','files':[{'id':'F1','title':'b'}]`:                         "+b",
		`'text':'','files':[{'id':'F1','mode':'tombstone'}]`:                                         "none",
		`'subtype':'thread_broadcast','text':'to all','thread_ts':'1.0'`:                             "to all",
		`'subtype':'me_message','text':'waves'`:                                                      "waves",
		`'text':'','blocks':[{'type':'section','text':{'type':'mrkdwn','text':'in a &amp; block'}}]`: "in a & block",
		`'text':'','blocks':[{'type':'rich_text','elements':[{'type':'rich_text_section','elements':[{'type':'text','text':'a <b> '},{'type':'user','user_id':'U0ALICE'},{'type':'link','url':'https://x.example'}]}]}]`: "a <b> @Alicehttps://x.example",
		`'text':'','blocks':[17,{'type':'context','elements':{}},{'type':'section','text':{'type':'plain_text','text':'odd'}}]`:                                                                                          "odd",
		`'text':'','attachments':[{'fallback':'of old'}]`: "of old",
		`'text':''`: "none",
		`'subtype':'channel_join','text':'has joined'`:     "none",
		`'subtype':'channel_topic','text':'set the topic'`: "none",
		`'subtype':'assistant_app_thread','text':'New'`:    "none",
		`'subtype':'huddle_thread','text':'A huddle'`:      "none",
	} {
		evs := decodeEvent(t, a, `{'type':'message','channel':'D0ALICE','channel_type':'im','user':'U0ALICE','ts':'5.000006',`+event+`}`)
		got := "none"
		if len(evs) == 1 {
			m := evs[0].(chat.MessageReceived)
			got = m.Text
			for _, f := range m.Files {
				got += "+" + f.Name
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", event, got, want)
		}
	}
}

// MKD-001: tokens first, then exactly three entities in one pass; what was typed
// makes no mention.
func TestDecodeText(t *testing.T) {
	s, a, _ := ready(t)
	s.AddUser(fakeslack.User{ID: "U0BOB", Name: "Bob\nthe <builder>"})
	for text, want := range map[string]struct {
		text      string
		mentioned bool
	}{
		"#include &lt;stdio.h&gt; a &amp;&amp; b":            {"#include <stdio.h> a && b", false},
		"&amp;lt; &quot; &#39;":                              {"&lt; &quot; &#39;", false},
		"&lt;@U0PARLEYBOT&gt; hi":                            {"<@U0PARLEYBOT> hi", false},
		"<@U0PARLEYBOT> hi":                                  {"hi", true},
		"<@U0PARLEYBOT>":                                     {"", true},
		"hi <@U0PARLEYBOT> there":                            {"hi there", true},
		"ask <@U0PARLEYBOT|parley>, please":                  {"ask , please", true},
		"<@U0BOB> and <@U0NONE> in <#C1|general>":            {"@Bob the <builder> and @U0NONE in #general", false},
		"<!here> <!subteam^S1|@devs> <!date^1^{date}|today>": {"@here @devs today", false},
		"<https://x.example/?a=1&amp;b=2|label> <https://y.example> <http://z.example|z.example> <mailto:a@b.example|a@b.example>": {
			"label (https://x.example/?a=1&b=2) https://y.example z.example a@b.example", false},
		"<@U0PARLEYBOT> !stop": {"!stop", true},
	} {
		got := a.said(t.Context(), &message{Text: text})
		if got.text != want.text || got.mentioned != want.mentioned {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// THR-003, MEN-014, ACC-002: where a message belongs, who wrote it, and whether it is
// for the bot.
func TestDecodeOrigins(t *testing.T) {
	s, a, _ := ready(t)
	s.AddUser(fakeslack.User{ID: "W0EVE", Name: "Eve", Team: "T0OTHER"})
	base := chat.MessageReceived{Text: "x", Origin: chat.Origin{Address: chat.Address{Account: "slack/main", Chat: "C1"}, Kind: chat.Group, Message: "5.000006"}}
	alice := chat.User{ID: "slack:U0ALICE", Name: "Alice"}
	for event, change := range map[string]func(*chat.MessageReceived){
		`'channel':'C1','channel_type':'channel','user':'U0ALICE'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Thread = alice, "5.000006"
		},
		`'channel':'C1','channel_type':'group','user':'U0ALICE','thread_ts':'4.0'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Thread, m.Threaded = alice, "4.0", true
		},
		`'channel':'C1','channel_type':'channel','user':'U0ALICE','thread_ts':'5.000006'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Thread = alice, "5.000006"
		},
		`'channel':'D1','channel_type':'im','user':'U0ALICE'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Chat, m.Kind, m.ForBot = alice, "D1", chat.Direct, true
		},
		`'channel':'D1','channel_type':'im','user':'U0ALICE','thread_ts':'4.0'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Chat, m.Address.Thread, m.Kind, m.ForBot = alice, "D1", "4.0", chat.Direct, true
		},
		`'channel':'G1','channel_type':'mpim','user':'W0EVE','user_team':'T0OTHER'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Chat, m.Address.Thread = chat.User{ID: "slack:W0EVE", Name: "Eve"}, "G1", "5.000006"
		},
		`'channel':'C1','channel_type':'channel','bot_id':'B9','subtype':'bot_message'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Thread = chat.User{ID: "slack:B9", Bot: true}, "5.000006"
		},
		`'channel':'C1','channel_type':'channel','bot_id':'B9','user':'U0NONE'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Thread = chat.User{ID: "slack:U0NONE", Bot: true}, "5.000006"
		},
		`'channel':'C1','channel_type':'channel'`: func(m *chat.MessageReceived) {
			m.From, m.Address.Thread = chat.User{ID: "slack:unknown", Shared: true}, "5.000006"
		},
		`'channel':'C1','channel_type':'channel','user':'U0PARLEYBOT','bot_id':'B0PARLEYBOT'`: nil,
		`'channel':'C1','channel_type':'channel','bot_id':'B0PARLEYBOT'`:                      nil,
		`'channel':'','user':'U0ALICE'`:                                                       nil,
	} {
		evs := decodeEvent(t, a, `{'type':'message','text':'x','ts':'5.000006',`+event+`}`)
		if change == nil {
			if len(evs) != 0 {
				t.Errorf("%s: %+v", event, evs)
			}
			continue
		}
		want := base
		change(&want)
		if len(evs) != 1 {
			t.Errorf("%s: %d events", event, len(evs))
			continue
		}
		got := evs[0].(chat.MessageReceived)
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(chat.Origin{}, "Key", "At", "Reply")); d != "" {
			t.Errorf("%s: %s", event, d)
		}
		if want := fmt.Sprintf("message/%s/5.000006", got.Address.Chat); string(got.Key) != want {
			t.Errorf("key %s, want %s", got.Key, want)
		}
	}
}

// MEN-002, MEN-003, MEN-011, MEN-015: an edit is one if the text changed, or if a
// mention was added, which makes it one for the bot.
func TestDecodeEdits(t *testing.T) {
	s, in, channel := started(t)
	ts := s.Say(channel, alice, "recepies")
	in.next(t)
	s.Edit(channel, ts, "recepies") // a link was unfolded
	s.Edit(channel, ts, "recipes")
	e, ok := in.next(t).(chat.MessageEdited)
	if !ok || e.Text != "recipes" || string(e.Message) != ts || !e.ForBot || e.Key == "" {
		t.Errorf("got %+v", e)
	}
	ts = s.Say("C0ROOM", alice, "hello")
	in.next(t)
	s.Edit("C0ROOM", ts, "<@"+fakeslack.BotUser+"> hello")
	first := in.next(t).(chat.MessageEdited)
	if !first.ForBot || first.Text != "hello" || string(first.Address.Thread) != ts {
		t.Errorf("got %+v", first)
	}
	s.Edit("C0ROOM", ts, "<@"+fakeslack.BotUser+"> hello!")
	if second := in.next(t).(chat.MessageEdited); second.Key == first.Key || second.Text != "hello!" {
		t.Errorf("got %+v", second)
	}
	in.none(t, s)
}

// A deletion names its message; the bot's own edits and deletions are no events.
func TestDecodeDeletions(t *testing.T) {
	s, in, channel := started(t)
	a := newAdapter(t, s, s.BotToken())
	ts := s.Say(channel, alice, "oh no")
	to := in.next(t).Meta().Address
	id, err := a.Send(t.Context(), to, chat.Outgoing{Key: "k", Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Edit(t.Context(), to, id, chat.Outgoing{Key: "k", Text: "two"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(t.Context(), to, id); err != nil {
		t.Fatal(err)
	}
	s.Remove(channel, ts)
	d, ok := in.next(t).(chat.MessageDeleted)
	if !ok || string(d.Message) != ts || d.Address != to || d.From.ID != "slack:U0ALICE" {
		t.Errorf("got %+v", d)
	}
	in.none(t, s)
}

// MEN-001: what somebody forwards is a quote, with who said it.
func TestDecodeQuote(t *testing.T) {
	_, a, _ := ready(t)
	evs := decodeEvent(t, a, `{'type':'message','channel':'D0ALICE','user':'U0ALICE','ts':'5.1','text':'and this?','attachments':[
		{'is_msg_unfurl':true,'text':'an unfolded link'},{'is_share':true,'author_id':'U0PARLEYBOT','author_name':'parley','ts':'4.1','text':'I &lt;said&gt; so'}]}`)
	want := &chat.Quote{Message: "4.1", From: chat.User{ID: "slack:U0PARLEYBOT", Name: "parley"}, Text: "I <said> so", FromBot: true}
	if d := cmp.Diff(want, evs[0].(chat.MessageReceived).Quote); d != "" {
		t.Error(d)
	}
}

// A voice note stands for typed text.
func TestDecodeVoice(t *testing.T) {
	_, a, _ := ready(t)
	evs := decodeEvent(t, a, `{'type':'message','subtype':'file_share','channel':'D0ALICE','user':'U0ALICE','ts':'5.1','text':'','files':[
		{'id':'F1','name':'audio.m4a','mimetype':'audio/mp4','size':9,'subtype':'slack_audio'}]}`)
	want := []chat.File{{ID: "F1", Name: "audio.m4a", MIME: "audio/mp4", Size: 9, Voice: true}}
	if d := cmp.Diff(want, evs[0].(chat.MessageReceived).Files); d != "" {
		t.Error(d)
	}
}

// CMD-002: slash commands come with an answer that only their giver sees; the app's
// own one takes the others by name, for those that Slack keeps to itself.
func TestCommands(t *testing.T) {
	s, in, channel := started(t)
	a := newAdapter(t, s, s.BotToken())
	s.Open(fakeslack.Room{ID: "C0FOREIGN", Kind: fakeslack.Private, Out: true})
	for _, tc := range []struct {
		channel, command, text string
		name, args             string
	}{
		{channel, "/stop", "", "stop", ""}, {"C0ROOM", "/new", " a &amp; b ", "new", "a & b"}, {"C0ROOM", "/parley", "status", "status", ""},
		{channel, "/parley", "!Resume 2", "resume", "2"}, {"C0FOREIGN", "/parley", "", "help", ""},
	} {
		s.Command(tc.channel, alice, tc.command, tc.text)
		c, ok := in.next(t).(chat.CommandInvoked)
		if !ok || c.Name != tc.name || c.Args != tc.args || c.From.ID != "slack:U0ALICE" || string(c.Address.Chat) != tc.channel || c.Address.Thread != "" || c.Key == "" {
			t.Errorf("%s: %+v", tc.command, c)
			continue
		}
		before := len(s.Messages(tc.channel))
		if _, err := a.Send(t.Context(), c.Address, chat.Outgoing{Key: "k", Text: "**done**", Reply: c.Reply}); err != nil {
			t.Errorf("answer: %v", err)
		}
		all := s.Messages(tc.channel)
		if len(all) != before+1 || all[before].Text != "done" || (all[before].Only == alice.ID) != (tc.channel != channel) {
			t.Errorf("%s is answered with %+v", tc.command, all[before:])
		}
	}
	in.none(t, s)
}

// A command that cannot be answered in its own way any more is answered as a message.
func TestCommandAnsweredTooOften(t *testing.T) {
	s, in, _ := started(t)
	a := newAdapter(t, s, s.BotToken())
	s.Command("C0ROOM", alice, "/status", "")
	c := in.next(t).Meta()
	for i := range 7 {
		if _, err := a.Send(t.Context(), c.Address, chat.Outgoing{Key: fmt.Sprint(i), Text: fmt.Sprint(i), Reply: c.Reply}); err != nil {
			t.Fatal(err)
		}
	}
	open := 0
	for _, m := range s.Messages("C0ROOM") {
		if m.Only == "" {
			open++
		}
	}
	if open != 2 {
		t.Errorf("%d of 7 answers are messages", open)
	}
}

// A press names its message, its thread and who pressed.
func TestPress(t *testing.T) {
	s, in, _ := started(t)
	a := newAdapter(t, s, s.BotToken())
	s.Say("C0ROOM", alice, "go")
	at := in.next(t).Meta().Address
	id, err := a.Send(t.Context(), at, chat.Outgoing{Key: "k", Text: "Run it?", Buttons: [][]chat.Button{{{Label: "Yes", Data: "y"}, {Label: "No", Data: "n"}}}})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[chat.EventKey]bool{}
	for range 2 {
		s.Press("C0ROOM", string(id), "n", fakeslack.User{ID: "U0EVE", Name: "Eve"})
		p, ok := in.next(t).(chat.ButtonPressed)
		if !ok || p.Data != "n" || p.Message != id || p.Address != at || p.From.ID != "slack:U0EVE" || p.Kind != chat.Group {
			t.Errorf("got %+v", p)
		}
		keys[p.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("two presses have the keys %v", keys)
	}
}

// Slack's own stop control stops, and the session's state is set: else it would show
// as busy for an hour.
func TestStopControl(t *testing.T) {
	s, in, channel := started(t)
	s.Begin(channel, paneThread)
	s.PressStop(channel, paneThread, alice)
	p, ok := in.next(t).(chat.StopPressed)
	if !ok || string(p.Address.Chat) != channel || p.Address.Thread != paneThread || p.From.ID != "slack:U0ALICE" || p.Key == "" {
		t.Errorf("got %+v", p)
	}
	if all := s.Sessions(); len(all) != 1 || all[0].Thread != paneThread || all[0].Status != "active" {
		t.Errorf("the session: %+v", all)
	}
}

// A new thread of the assistant pane is met with suggestions, at most four.
func TestAssistantPane(t *testing.T) {
	s, in, _ := started(t)
	channel, thread := s.StartAssistant(alice)
	await(t, s, func(s *fakeslack.Server) bool { return len(s.Suggested()) == 1 })
	if p := s.Suggested()[0]; p.Channel != channel || p.Thread != thread || len(p.Prompts) == 0 {
		t.Errorf("got %+v", p)
	}
	s.Raw(map[string]any{"type": "app_home_opened", "tab": "messages", "user": alice.ID, "channel": channel, "event_ts": "1.1"})
	await(t, s, func(s *fakeslack.Server) bool { return len(s.Suggested()) == 2 })
	in.none(t, s)
}
