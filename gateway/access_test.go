package gateway

import (
	"testing"

	"parley/gateway/chat"
	"parley/store/record"
)

// ACC-002, ACC-008, MEN-006, MEN-014: one decision for everything that somebody can
// do, closed by default. Ids that stand for several people, and bots, get nothing
// whatever the lists say.
func TestWhoIsAnswered(t *testing.T) {
	const name = "test:5"
	open := AccessConfig{Allow: []string{"test:*"}, Admins: []string{name}, Groups: "all", Pairing: true}
	closed := AccessConfig{Groups: "all", Admins: []string{"test:9"}}
	member := &record.Member{ID: name, Role: record.RoleOwner}
	for what, tc := range map[string]struct {
		cfg    AccessConfig
		from   chat.User
		member *record.Member
		want   string
	}{
		"somebody allowed": {open, chat.User{ID: name}, nil, reasonOK},
		"a member":         {closed, chat.User{ID: name}, member, reasonOK},
		"a stranger":       {closed, chat.User{ID: name}, nil, reasonStranger},
		"anonymous":        {open, chat.User{ID: name, Shared: true}, member, reasonShared},
		"a bot":            {open, chat.User{ID: name, Bot: true}, member, reasonBot},
	} {
		for _, kind := range []chat.Kind{chat.Direct, chat.Group} {
			o := chat.Origin{From: tc.from, Kind: kind}
			for does, ev := range map[string]chat.Event{
				"writes": chat.MessageReceived{Origin: o, Text: "hi", ForBot: true}, "stops": chat.MessageReceived{Origin: o, Text: "/stop", ForBot: true},
				"presses": chat.ButtonPressed{Origin: o, Data: "ask:1:y"}, "edits": chat.MessageEdited{Origin: o, Text: "hi", ForBot: true},
				"invokes": chat.CommandInvoked{Origin: o, Name: "approve"}, "halts": chat.StopPressed{Origin: o}, "deletes": chat.MessageDeleted{Origin: o},
			} {
				got := access{tc.cfg}.gate(ev)(record.AccessFacts{Member: tc.member, Claimed: true})
				if got.Reason != tc.want || (got.State == record.InboxReceived) != (tc.want == reasonOK) {
					t.Errorf("%s %s in a %s chat: %s, %q, want %q", what, does, kind, got.State, got.Reason, tc.want)
				}
			}
		}
	}
}

// MEN-006, MEN-014: a bot is heard only if its own id is listed, and only when it
// addresses this one; it never commands or decides.
func TestWhichBotsAreHeard(t *testing.T) {
	a := access{AccessConfig{Allow: []string{"test:bot", "other:*"}, Groups: "all"}}
	for _, tc := range []struct {
		ev   chat.Event
		want bool
	}{
		{chat.MessageReceived{Origin: bot("test:bot"), Text: "hi", ForBot: true}, true},
		{chat.MessageReceived{Origin: bot("test:bot"), Text: "hi"}, false},
		{chat.MessageReceived{Origin: bot("test:bot"), Text: "/stop", ForBot: true}, false},
		{chat.MessageReceived{Origin: bot("other:bot"), Text: "hi", ForBot: true}, false},
		{chat.ButtonPressed{Origin: bot("test:bot"), Data: "ask:1:y"}, false},
		{chat.MessageEdited{Origin: bot("test:bot"), Text: "hi", ForBot: true}, false},
		{chat.CommandInvoked{Origin: bot("test:bot"), Name: "new"}, false},
	} {
		got := a.gate(tc.ev)(record.AccessFacts{Claimed: true})
		if (got.State == record.InboxReceived) != tc.want || (!tc.want && got.Reason != reasonBot) {
			t.Errorf("%+v: %s, %q", tc.ev, got.State, got.Reason)
		}
	}
}

func bot(id chat.Person) chat.Origin {
	return chat.Origin{From: chat.User{ID: id, Bot: true}, Kind: chat.Group}
}

// CMD-002, CMD-004: commands are found in one place, for all platforms; ordinary text
// is none.
func TestParseCommand(t *testing.T) {
	for text, want := range map[string][2]string{
		"/stop": {"stop"}, " /STOP ": {"stop"}, "!stop": {"stop"}, "!Stop\n": {"stop"},
		"/new My title\nof two lines": {"new", "My title\nof two lines"}, "/nonsense now": {"nonsense", "now"},
		"stop": {}, "stop the deploy": {}, "!important": {}, "!": {}, "/": {}, "/usr/bin/env": {}, "/etc": {"etc"}, "1/2": {},
		"please /stop": {}, "!stop-it": {}, "/stop-it": {}, "// comment": {}, "": {},
	} {
		name, args, ok := parseCommand(text)
		if name != want[0] || args != want[1] || ok != (want[0] != "") {
			t.Errorf("%q: command %q with %q", text, name, args)
		}
	}
}

// MEN-017, THR-001: in a thread of its own the bot is spoken to without being named;
// in a thread where it never was, and outside of threads, it is not.
func TestThreadsWhereTheBotTalks(t *testing.T) {
	a := access{AccessConfig{Allow: []string{"test:*"}, Groups: "mention"}}
	here := record.AccessFacts{Claimed: true, Conversation: &record.Conversation{}}
	for _, tc := range []struct {
		what     string
		threaded bool
		facts    record.AccessFacts
		want     string
	}{
		{"in its thread", true, here, reasonOK},
		{"in a thread of others", true, record.AccessFacts{Claimed: true}, reasonNotForBot},
		{"beside its conversation", false, here, reasonNotForBot},
	} {
		o := chat.Origin{From: chat.User{ID: "test:5"}, Kind: chat.Group, Threaded: tc.threaded}
		for _, ev := range []chat.Event{chat.MessageReceived{Origin: o, Text: "and then?"}, chat.MessageEdited{Origin: o, Text: "and then?"}} {
			if got := a.gate(ev)(tc.facts); got.Reason != tc.want {
				t.Errorf("%T %s: %q, want %q", ev, tc.what, got.Reason, tc.want)
			}
		}
	}
}
