package discord

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/adaptertest/fakediscord"
	"parley/gateway/chat"
)

const botName = "<@" + fakediscord.BotID + ">"

var bob = fakediscord.User{ID: "100000000000000006", Username: "bob"}

// guild is a fake with a server and a room in it.
type guild struct {
	platform
	id, room string
}

func inGuild(t *testing.T, opts ...fakediscord.Option) guild {
	t.Helper()
	g := guild{platform: fake(t, opts...)}
	g.id = g.AddGuild("Guild")
	g.room = g.AddChannel(g.id, "room", fakediscord.Text)
	return g
}

func (r *running) message() chat.MessageReceived {
	r.t.Helper()
	m, ok := r.next().(chat.MessageReceived)
	if !ok {
		r.t.Fatal("it is no message")
	}
	return m
}

// A direct message belongs to its chat, and one of a server says who spoke with which
// roles and points back at itself.
func TestDecodeMessage(t *testing.T) {
	g := inGuild(t)
	g.Join(alice.ID, "300000000000000001")
	r := runs(t, g.platform, on(t, g.Server, deps(t)))
	id := g.Server.Say(g.dm, alice, "hello")
	want := chat.Origin{
		Key: chat.EventKey("message/" + g.dm + "/" + id), Address: chat.Address{Account: "discord/main", Chat: chat.ChatID(g.dm)}, Kind: chat.Direct,
		From: chat.User{ID: chat.Person("discord:" + alice.ID), Name: "Alice"}, At: madeAt(id), Message: chat.MessageID(id),
	}
	m := r.message()
	if d := cmp.Diff(want, m.Origin); d != "" || !m.ForBot {
		t.Errorf("for the bot: %t\n%s", m.ForBot, d)
	}
	id = g.Server.Say(g.room, alice, "just chatter")
	m = r.message()
	if d := cmp.Diff([]string{"300000000000000001"}, m.Roles); d != "" || m.ForBot || m.Kind != chat.Group || m.Address.Thread != "" || m.Title != "room" {
		t.Errorf("%+v\n%s", m, d)
	}
	if m.Reply != chat.ReplyHandle("m/"+g.room+"/"+id) {
		t.Errorf("reply %q", m.Reply)
	}
}

// Whom a message is for: mentions by name and by the bot's own role (MEN-005) and
// replies to the bot count, others do not; between bots only a written mention does
// (MEN-006). The mention is taken out of the text.
func TestDecodeAddressing(t *testing.T) {
	g := inGuild(t)
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	own, err := a.Send(t.Context(), chat.Address{Account: "discord/main", Chat: chat.ChatID(g.room)}, chat.Outgoing{Key: "k", Text: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	robot := fakediscord.User{ID: "100000000000000009", Username: "robot", Bot: true}
	for _, tc := range []struct {
		name   string
		by     fakediscord.User
		text   string
		opts   []fakediscord.SayOption
		want   string
		forBot bool
	}{
		{"nobody", alice, "hello", nil, "hello", false},
		{"by name", alice, botName + " hello", nil, "hello", true},
		{"with an exclamation mark", alice, "hello <@!" + fakediscord.BotID + "> there", nil, "hello there", true},
		{"by role", alice, "<@&" + fakediscord.BotRole + "> hello", nil, "hello", true},
		{"somebody else", alice, "<@" + bob.ID + "> hello", nil, "<@" + bob.ID + "> hello", false},
		{"another role", alice, "<@&300000000000000001> hello", nil, "<@&300000000000000001> hello", false},
		{"everybody", alice, "@everyone hello", nil, "@everyone hello", false},
		{"reply", alice, "and?", []fakediscord.SayOption{fakediscord.ReplyTo(string(own))}, "and?", true},
		{"reply of a bot", robot, "and?", []fakediscord.SayOption{fakediscord.ReplyTo(string(own))}, "and?", false},
		{"a bot by name", robot, botName + " and?", nil, "and?", true},
		{"a webhook", alice, "news", []fakediscord.SayOption{fakediscord.ByWebhook("300000000000000002")}, "news", false},
	} {
		id := g.Server.Say(g.room, tc.by, tc.text, tc.opts...)
		m := r.message()
		if m.Text != tc.want || m.ForBot != tc.forBot || m.From.Bot != (tc.by.Bot || tc.name == "a webhook") || m.From.Shared != (tc.name == "a webhook") {
			t.Errorf("%s: %+v", tc.name, m)
		}
		if thread := map[bool]chat.ThreadID{true: chat.ThreadID(id)}[tc.forBot]; m.Address.Thread != thread || m.Threaded != tc.forBot {
			t.Errorf("%s: thread %q", tc.name, m.Address.Thread)
		}
	}
}

// A thread is a place of its room; in the bot's own it need not be named (CON-017),
// in others a mention counts (MEN-017). Without threads the room is the place.
func TestDecodeThreads(t *testing.T) {
	g := inGuild(t)
	r := runs(t, g.platform, on(t, g.Server, deps(t)))
	own := g.StartThread(g.room, "", "mine", fakediscord.BotID)
	other := g.StartThread(g.room, "", "theirs", alice.ID)
	for _, tc := range []struct {
		thread, text string
		forBot       bool
	}{{own, "hello", true}, {other, "hello", false}, {other, botName + "hello", true}} {
		g.Server.Say(tc.thread, alice, tc.text)
		m := r.message()
		want := chat.Address{Account: "discord/main", Chat: chat.ChatID(g.room), Thread: chat.ThreadID(tc.thread)}
		if m.Address != want || m.ForBot != tc.forBot || !m.Threaded {
			t.Errorf("%q in %s: %+v", tc.text, tc.thread, m)
		}
	}
	flat := inGuild(t)
	r = runs(t, flat.platform, on(t, flat.Server, deps(t), func(c *Config) { c.Threads = false }))
	flat.Server.Say(flat.room, alice, botName+" hello")
	if m := r.message(); m.Address.Thread != "" || !m.ForBot {
		t.Errorf("without threads: %+v", m)
	}
}

// What a message points at comes with it: the replied one, or the text of one that was
// forwarded (MEN-001); files by an id from which a new link can be had; stickers in
// words.
func TestDecodeContent(t *testing.T) {
	g := inGuild(t)
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	first := g.Server.Say(g.dm, alice, "first")
	r.message()
	g.Server.Say(g.dm, alice, "second", fakediscord.ReplyTo(first))
	if q := r.message().Quote; q == nil || q.Text != "first" || q.From.Name != "Alice" || q.FromBot || string(q.Message) != first {
		t.Errorf("quote %+v", q)
	}
	g.Server.Say(g.dm, alice, "", fakediscord.Forward(first, "what was forwarded"))
	if q := r.message().Quote; q == nil || q.Text != "what was forwarded" || !q.From.Shared {
		t.Errorf("forward %+v", q)
	}
	g.Server.Say(g.dm, alice, "", fakediscord.WithFile("a\nb.ogg", "audio/ogg", []byte("sound")), fakediscord.AsVoice())
	m := r.message()
	if len(m.Files) != 1 || m.Files[0].Name != "a b.ogg" || !m.Files[0].Voice || m.Files[0].Size != 5 {
		t.Fatalf("files %+v", m.Files)
	}
	f, err := a.OpenFile(t.Context(), m.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var b strings.Builder
	if _, err := io.Copy(&b, f); err != nil || b.String() != "sound" {
		t.Errorf("%q, %v", b.String(), err)
	}
	g.Server.Say(g.dm, alice, strings.Repeat("x", textLimit-1))
	if !r.message().AtLimit {
		t.Error("CON-003: a text near the limit may have been divided")
	}
}

// Joins, pins and the bot's own messages are no messages (MEN-012); an update that
// nobody made is no edit (MEN-008).
func TestDecodeNothing(t *testing.T) {
	g := inGuild(t)
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	g.Server.Say(g.room, alice, "", fakediscord.OfType(7))
	if _, err := a.Send(t.Context(), chat.Address{Account: "discord/main", Chat: chat.ChatID(g.dm)}, chat.Outgoing{Key: "k", Text: "own"}); err != nil {
		t.Fatal(err)
	}
	id := g.Server.Say(g.dm, alice, "https://example.com")
	r.message()
	g.Unfurl(g.dm, id)
	r.silent(g.platform)
}

// An edit names the place of the message and each version; a deletion says whose
// message it was, which Discord does not (MEN-011).
func TestDecodeChanges(t *testing.T) {
	g := inGuild(t)
	r := runs(t, g.platform, on(t, g.Server, deps(t)))
	id := g.Server.Say(g.room, alice, botName+" one")
	m := r.message()
	keys := map[chat.EventKey]bool{}
	for _, text := range []string{"two", botName + " three"} {
		g.EditAs(g.room, id, text)
		e, ok := r.next().(chat.MessageEdited)
		if !ok || e.Address != m.Address || e.Message != m.Message || keys[e.Key] || e.Text != strings.TrimPrefix(text, botName+" ") {
			t.Fatalf("%q: %+v", text, e)
		}
		keys[e.Key] = true
	}
	g.DeleteAs(g.room, id)
	d, ok := r.next().(chat.MessageDeleted)
	if !ok || d.Address != m.Address || d.Message != m.Message || d.From != m.From {
		t.Fatalf("%+v", d)
	}
}

// Without the content intent direct messages and mentions can be read, and nothing
// else is taken for an empty message; Probe says what is missing.
func TestWithoutContent(t *testing.T) {
	g := inGuild(t, fakediscord.WithoutContentIntent())
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	g.Server.Say(g.room, alice, "nobody can read this")
	g.Server.Say(g.room, alice, botName+" but this")
	r.says("but this")
	r.silent(g.platform)
	fs, err := a.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(contentFix, fs[1].Fix); d != "" {
		t.Error(d)
	}
}

// What the doctor finds, and the exact next step.
func TestProbe(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, deps(t))
	last := func() chat.Finding {
		fs, err := a.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fs[len(fs)-1]
	}
	if f := last(); f.OK || !strings.Contains(f.Fix, "https://discord.com/oauth2/authorize?client_id="+fakediscord.ApplicationID+"&permissions=309237746752&scope=bot+applications.commands") {
		t.Errorf("no server: %+v", f)
	}
	p.AddGuild("Home")
	if f := last(); !f.OK {
		t.Errorf("all is well: %+v", f)
	}
	p.Grant(fakediscord.CreateThreads, fakediscord.ReadHistory)
	if f := last(); f.OK || f.What != "in Home the bot lacks: Create Public Threads, Read Message History" || f.Fix == "" {
		t.Errorf("permissions: %+v", f)
	}
	p.Revoke()
	if f := last(); f.OK || !strings.Contains(f.Fix, "Reset Token") {
		t.Errorf("token: %+v", f)
	}
	p.Server.Fail(func(fakediscord.Request) *fakediscord.Fault { return fakediscord.BadGateway })
	if _, err := a.Probe(t.Context()); !answered(err, http.StatusBadGateway) {
		t.Errorf("%v", err)
	}
}
