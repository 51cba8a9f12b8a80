package discord

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/adaptertest/fakediscord"
	"parley/gateway/chat"
)

func (g guild) at(thread string) chat.Address {
	return chat.Address{Account: "discord/main", Chat: chat.ChatID(g.room), Thread: chat.ThreadID(thread)}
}

func (p platform) direct() chat.Address {
	return chat.Address{Account: "discord/main", Chat: chat.ChatID(p.dm)}
}

// clean fails if the fake had something to say against the calls.
func (p platform) clean(t *testing.T) {
	t.Helper()
	for _, c := range p.Complaints() {
		t.Error(c)
	}
}

func send(t *testing.T, a *Adapter, to chat.Address, m chat.Outgoing) chat.MessageID {
	t.Helper()
	id, err := a.Send(t.Context(), to, m)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (p platform) shows(t *testing.T, channel string, want ...string) {
	t.Helper()
	var got []string
	for _, m := range p.Messages(channel) {
		if m.Author.ID == fakediscord.BotID {
			got = append(got, fakediscord.Shown(m.Content))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the bot's messages (-want +got):\n%s", d)
	}
}

// A message that is sent again under its key is made once, whatever became of the
// first answer (DEL-004); one that says something else by then is brought up to date,
// and one that somebody removed is made anew (STR-014).
func TestSendOnce(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, deps(t))
	p.FailNext("POST", "/messages", fakediscord.CutAfter)
	if _, err := a.Send(t.Context(), p.direct(), chat.Outgoing{Key: "k", Text: "part"}); !errors.Is(err, chat.ErrAmbiguous) {
		t.Fatal(err)
	}
	now := time.Now()
	if _, ok, err := a.Find(t.Context(), p.direct(), chat.Attempt{Key: "k", First: now.Add(-nonceLife / 2), Last: now}); ok || err != nil {
		t.Errorf("found %t, %v", ok, err)
	}
	id := send(t, a, p.direct(), chat.Outgoing{Key: "k", Text: "the whole"})
	p.shows(t, p.dm, "the whole")
	p.DeleteAs(p.dm, string(id))
	send(t, a, p.direct(), chat.Outgoing{Key: "k", Text: "the whole and more"})
	p.shows(t, p.dm, "the whole and more")
	if _, _, err := a.Find(t.Context(), p.direct(), chat.Attempt{Key: "k", First: now.Add(-2 * nonceLife), Last: now}); !errors.Is(err, chat.ErrAmbiguous) {
		t.Errorf("after the nonce's life: %v", err)
	}
	p.clean(t)
}

// The thread of a mention is made when the first answer comes, named after what was
// said, and once; where the bot may make none the answer is a reply in the room, and
// can be edited there.
func TestSendOpensThread(t *testing.T) {
	g := inGuild(t)
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	first := g.Server.Say(g.room, alice, botName+" what is\nthis?")
	m := r.message()
	if err := a.Typing(t.Context(), m.Address); err != nil || g.Typed(g.room) != 1 {
		t.Errorf("typing in a thread that is not there: %v", err)
	}
	for _, text := range []string{"one", "two"} {
		send(t, a, m.Address, chat.Outgoing{Key: text, Text: text, Reply: m.Reply})
	}
	g.shows(t, first, "one", "two")
	if th, _ := g.Thread(first); th.Name != "what is this?" || th.Parent != g.room {
		t.Errorf("thread %+v", th)
	}
	if err := a.SetTitle(t.Context(), m.Address, "A title"); err != nil {
		t.Error(err)
	}
	if th, _ := g.Thread(first); th.Name != "A title" {
		t.Errorf("thread %+v", th)
	}
	again, err := a.OpenThread(t.Context(), g.at(""), chat.MessageID(first), "x")
	if err != nil || again != m.Address {
		t.Errorf("opened again: %v, %v", again, err)
	}
	g.Deny(g.room, fakediscord.CreateThreads)
	second := g.Server.Say(g.room, alice, botName+" and this?")
	m = r.message()
	id := send(t, a, m.Address, chat.Outgoing{Key: "three", Text: "three", Reply: m.Reply})
	if err := a.Edit(t.Context(), m.Address, id, chat.Outgoing{Key: "three", Text: "changed"}); err != nil {
		t.Error(err)
	}
	g.shows(t, g.room, "changed")
	if all := g.Messages(g.room); all[len(all)-1].Reference != second {
		t.Errorf("it replies to %q", all[len(all)-1].Reference)
	}
	g.Server.Say(g.room, alice, botName+" now?")
	if m = r.message(); m.Address.Thread != "" {
		t.Error("another thread is tried")
	}
	g.clean(t)
}

// Whatever the model writes mentions nobody, when sent and when edited (MEN-007).
func TestMentionsNobody(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, deps(t))
	text := "@everyone @here <@100000000000000005> <@&300000000000000001> <#300000000000000001> </a:1> <t:1> <:x:1> `@everyone`"
	id := send(t, a, p.direct(), chat.Outgoing{Key: "k", Text: text, Progress: []string{text}})
	if err := a.Edit(t.Context(), p.direct(), id, chat.Outgoing{Key: "k", Text: text}); err != nil {
		t.Fatal(err)
	}
	if shown, _ := p.Shown(id); strings.ReplaceAll(shown, gap, "") != strings.ReplaceAll(text, "`", "") {
		t.Errorf("shown %q", shown)
	}
	p.clean(t)
}

// A bucket that is used up by its headers is not tried: a refusal would count against
// the bot (STR-013). One for all calls says so.
func TestRateLimits(t *testing.T) {
	p := fake(t, fakediscord.WithLimits(fakediscord.RealLimits()))
	a := on(t, p.Server, deps(t))
	var limited *chat.RateLimitError
	for i := range 6 {
		_, err := a.Send(t.Context(), p.direct(), chat.Outgoing{Key: string(rune('a' + i)), Text: "x"})
		if i < 5 && err != nil || i == 5 && (!errors.As(err, &limited) || limited.Account || limited.RetryAfter > 5*time.Second) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if p.Limited() != 0 {
		t.Error("a call was made that was sure to be refused")
	}
	for name, f := range map[string]*fakediscord.Fault{"global": {Status: 429, RetryAfter: 1, Global: true}, "cloudflare": fakediscord.Cloudflare} {
		a := on(t, p.Server, deps(t))
		p.FailNext("POST", "/typing", f)
		for range 2 {
			if err := a.Typing(t.Context(), p.direct()); !errors.As(err, &limited) || !limited.Account {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A command is acknowledged once it is durable and answered in its own response, once;
// what more there is to say are ordinary messages, and so is everything after the
// token's life.
func TestCommand(t *testing.T) {
	g := inGuild(t)
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	id := g.Invoke(g.room, "model", "fake/x", alice)
	c, ok := r.next().(chat.CommandInvoked)
	if !ok || c.Name != "model" || c.Args != "fake/x" || c.From.ID != chat.Person("discord:"+alice.ID) || c.Address != g.at("") || c.Key == "" {
		t.Fatalf("%+v", c)
	}
	g.await(t, "the acknowledgement", func() bool { return g.Answered(id).Answered })
	first := send(t, a, c.Address, chat.Outgoing{Key: "k1", Text: "one", Reply: c.Reply})
	again := send(t, a, c.Address, chat.Outgoing{Key: "k1", Text: "one", Reply: c.Reply})
	if first != again || g.Answered(id).Kind != 5 || g.Answered(id).Text != "one" {
		t.Errorf("%s and %s, %+v", first, again, g.Answered(id))
	}
	send(t, a, c.Address, chat.Outgoing{Key: "k2", Text: "two", Reply: c.Reply})
	if err := a.Edit(t.Context(), c.Address, first, chat.Outgoing{Key: "k1", Text: "one more"}); err != nil {
		t.Error(err)
	}
	g.shows(t, g.room, "one more", "two")
	old := handle{fakediscord.ApplicationID, snowflake(time.Now().Add(-tokenLife)), "token"}
	send(t, a, c.Address, chat.Outgoing{Key: "k3", Text: "late", Reply: old.reply()})
	all := g.Messages(g.room)
	if last := all[len(all)-1]; last.Content != "late" || last.Webhook != "" {
		t.Errorf("after the token's life: %+v", last)
	}
	g.clean(t)
}

// While the store is away nothing is acknowledged; a refusal is seen by one person
// only; a press is taken note of when nobody has anything to say (APR-001).
func TestAcknowledgements(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, deps(t))
	a.ackAfter = 50 * time.Millisecond
	r := runs(t, p, a)
	id := send(t, a, p.direct(), chat.Outgoing{Key: "k", Text: "Yes?", Buttons: [][]chat.Button{{{Label: "Yes", Data: "y"}}}})
	quiet := p.Server.Press(p.dm, string(id), "y", alice)
	r.next()
	p.await(t, "an answer", func() bool { return p.Answered(quiet).Answered })
	if got := p.Answered(quiet); got.Kind != 6 {
		t.Errorf("%+v", got)
	}
	a.ackAfter = time.Minute
	loud := p.Server.Press(p.dm, string(id), "y", alice)
	press := r.next().(chat.ButtonPressed)
	for range 2 {
		if err := a.AckButton(t.Context(), press, "not you"); err != nil {
			t.Error(err)
		}
	}
	if got := p.Answered(loud); got.Kind != 4 || !got.Hidden || got.Text != "not you" {
		t.Errorf("%+v", got)
	}
	r.mu.Lock()
	r.refuse = 3
	r.mu.Unlock()
	p.Invoke(p.dm, "help", "", bob)
	c := r.next().(chat.CommandInvoked)
	whispered := send(t, a, c.Address, chat.Outgoing{Key: "w", Text: "only for you", Reply: c.Reply, Ephemeral: true})
	if err := a.Edit(t.Context(), c.Address, whispered, chat.Outgoing{Text: "x"}); !errors.Is(err, chat.ErrGone) {
		t.Errorf("edit of what only one person sees: %v", err)
	}
	p.clean(t)
}

// The menu is registered when it has changed, and only then.
func TestPublishCommands(t *testing.T) {
	p := fake(t)
	a := on(t, p.Server, deps(t))
	menu := []chat.CommandInfo{{Name: "new", Args: "[title]", Description: "begin"}, {Name: "stop", Description: strings.Repeat("x", 200)}}
	for range 2 {
		if err := a.PublishCommands(t.Context(), menu); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.Calls("PUT", "/commands")); n != 1 || len(p.Commands()) != 2 || len(p.Commands()[0].Options) != 1 {
		t.Errorf("registered %d times: %+v", n, p.Commands())
	}
	if err := a.PublishCommands(t.Context(), menu[:1]); err != nil || len(p.Commands()) != 1 {
		t.Errorf("%v: %+v", err, p.Commands())
	}
	p.clean(t)
}

// The reaction is one at a time; files go out with the text; what was said before can
// be read, the message that a thread was begun on first.
func TestOrnaments(t *testing.T) {
	g := inGuild(t)
	a := on(t, g.Server, deps(t))
	r := runs(t, g.platform, a)
	id := g.Server.Say(g.room, alice, botName+" go")
	m := r.message()
	for i, re := range []chat.Reaction{chat.ReactSeen, chat.ReactWorking, chat.ReactDone} {
		if i == 1 { // a session that was resumed tells it again
			g.Server.Again(g.room, id)
			r.message()
		}
		if err := a.React(t.Context(), m.Address, m.Message, re); err != nil {
			t.Fatal(err)
		}
		if got, _ := g.Message(g.room, id); !slices.Equal(got.Reactions, []string{reactions[re]}) {
			t.Errorf("%s: %q", re, got.Reactions)
		}
	}
	if n := len(g.Calls("GET", "/messages/")); n != 0 {
		t.Errorf("Discord was asked %d times what the bot itself knows", n)
	}
	a.recent = recent{} // another process
	if err := a.React(t.Context(), m.Address, m.Message, chat.ReactFailed); err != nil {
		t.Fatal(err)
	}
	if got, _ := g.Message(g.room, id); !slices.Equal(got.Reactions, []string{reactions[chat.ReactFailed]}) {
		t.Errorf("after a restart: %q", got.Reactions)
	}
	path := filepath.Join(t.TempDir(), "f.txt")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, a, m.Address, chat.Outgoing{Key: "f", Text: "here", Files: []chat.OutgoingFile{{Path: path, Name: "f.txt"}}})
	if sent := g.Messages(id); len(sent) != 1 || len(sent[0].Attachments) != 1 || sent[0].Attachments[0].Filename != "f.txt" || sent[0].Content != "here" {
		t.Errorf("%+v", sent)
	}
	last := g.Server.Say(id, alice, "last")
	quotes, err := a.History(t.Context(), m.Address, chat.MessageID(last), 10)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, q := range quotes {
		texts = append(texts, q.Text)
	}
	if d := cmp.Diff([]string{"go", "here"}, texts); d != "" || !quotes[1].FromBot {
		t.Errorf("%+v\n%s", quotes, d)
	}
	g.clean(t)
}
