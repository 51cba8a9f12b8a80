package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/goleak"

	"parley/adapters/adaptertest"
	"parley/adapters/adaptertest/fakediscord"
	"parley/gateway/chat"
)

// running is an adapter that runs, and what it handed on.
type running struct {
	t      *testing.T
	a      *Adapter
	events chan chat.Event
	states chan chat.ConnectionChanged
	ended  chan error

	mu     sync.Mutex
	refuse int // so many events are refused first
}

// runs starts an adapter on a fake and waits until it is connected.
func runs(t *testing.T, p platform, a *Adapter) *running {
	t.Helper()
	r := starts(t, a)
	p.await(t, "a connection", func() bool { return p.Link().Connected })
	return r
}

func starts(t *testing.T, a *Adapter) *running {
	t.Helper()
	r := &running{t: t, a: a, events: make(chan chat.Event, 1000), states: make(chan chat.ConnectionChanged, 1000), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- a.Run(ctx, r.sink)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *running) sink(_ context.Context, ev chat.Event) error {
	if c, ok := ev.(chat.ConnectionChanged); ok {
		r.states <- c
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse > 0 {
		r.refuse--
		return errors.New("the store is away")
	}
	r.events <- ev
	return nil
}

// next is the next event.
func (r *running) next() chat.Event {
	r.t.Helper()
	select {
	case ev := <-r.events:
		return ev
	case <-time.After(adaptertest.Patience):
		r.t.Fatal("no event came")
		return nil
	}
}

// says checks the next events: messages with these texts, in this order.
func (r *running) says(texts ...string) {
	r.t.Helper()
	for _, want := range texts {
		if m, ok := r.next().(chat.MessageReceived); !ok || m.Text != want {
			r.t.Fatalf("got %+v, want %q", m, want)
		}
	}
}

// silent checks that nothing is left, by an event that comes after all of it.
func (r *running) silent(p platform) {
	r.t.Helper()
	p.Server.Say(p.dm, alice, "the end")
	r.says("the end")
}

func (p platform) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), adaptertest.Patience)
	defer cancel()
	if err := p.Wait(ctx, ok); err != nil {
		t.Fatalf("%s: %v, link %+v", what, err, p.Link())
	}
}

// A lost connection is resumed, whatever lost it, and what was said meanwhile comes
// once and in order.
func TestResume(t *testing.T) {
	for name, lose := range map[string]func(platform){
		"socket cut":    func(p platform) { p.Cut() },
		"asked to":      func(p platform) { p.AskReconnect() },
		"unknown error": func(p platform) { p.CloseAll(4000) },
		"going away":    func(p platform) { p.CloseAll(1001) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fake(t)
			r := runs(t, p, on(t, p.Server, deps(t)))
			p.Server.Say(p.dm, alice, "one")
			r.says("one")
			lose(p)
			p.Server.Say(p.dm, alice, "two")
			p.await(t, "the connection again", func() bool { return p.Link().Resumed == 1 })
			p.Server.Say(p.dm, alice, "three")
			r.says("two", "three")
			if l := p.Link(); l.Identified != 1 || slices.Contains(l.CloseCodes, 1000) {
				t.Errorf("the session was given up: %+v", l)
			}
		})
	}
}

// A half-open socket, on which nothing comes any more and nobody says so, is found
// and its session resumed; so is one whose heartbeats are not acknowledged though
// events still come (REC-019, REC-020); and a gateway that accepts and says nothing
// holds nobody up.
func TestHalfOpen(t *testing.T) {
	for name, break_ := range map[string]func(platform){
		"half-open": func(p platform) { p.Freeze() },
		"zombie":    func(p platform) { p.Mute(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fake(t, fakediscord.WithHeartbeat(100*time.Millisecond))
			d := deps(t)
			d.Idle = 400 * time.Millisecond
			r := runs(t, p, on(t, p.Server, d))
			p.Server.Say(p.dm, alice, "one")
			r.says("one")
			break_(p)
			p.Server.Say(p.dm, alice, "two")
			p.await(t, "the connection again", func() bool { return p.Link().Resumed > 0 })
			p.Mute(false)
			r.says("two")
			if l := p.Link(); l.Identified != 1 || slices.Contains(l.CloseCodes, 1000) {
				t.Errorf("the session was given up: %+v", l)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		p := fake(t)
		p.Silence(true)
		d := deps(t)
		d.Idle = 200 * time.Millisecond
		r := starts(t, on(t, p.Server, d))
		p.await(t, "a second try", func() bool { return p.Link().Opened > 1 })
		p.Silence(false)
		p.await(t, "a connection", func() bool { return p.Link().Connected })
		r.silent(p)
	})
}

// A session that the gateway has ended is begun anew, and the new one is what is
// resumed afterwards (REC-012). What was said between the two is fetched.
func TestInvalidSession(t *testing.T) {
	old := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, old) })
	p := fake(t)
	d := deps(t)
	d.Heard = heardUntil{time.Now(), []chat.ChatID{chat.ChatID(p.dm)}}
	r := runs(t, p, on(t, p.Server, d))
	p.Server.Say(p.dm, alice, "one")
	r.says("one")
	p.InvalidNext(1)
	p.Cut()
	p.Server.Say(p.dm, alice, "two")
	p.await(t, "a new session", func() bool { return p.Link().Identified == 2 })
	for got := ""; got != "two"; {
		got = r.next().(chat.MessageReceived).Text // one is fetched again: the store knows it
	}
	p.Cut()
	p.Server.Say(p.dm, alice, "three")
	r.says("three")
	p.Invalidate()
	p.await(t, "a third session", func() bool { return p.Link().Identified == 3 })
	if l := p.Link(); l.Resumed != 1 {
		t.Errorf("the new session was not resumed: %+v", l)
	}
}

// What RESUME replays although it was had keeps its key, by which the store knows it
// (DUP-003).
func TestReplayKeepsKeys(t *testing.T) {
	p := fake(t)
	p.ReplayTwice()
	r := runs(t, p, on(t, p.Server, deps(t)))
	p.Server.Say(p.dm, alice, "one")
	first := r.next().Meta().Key
	p.Cut()
	if again := r.next().Meta().Key; again != first {
		t.Errorf("the key was %s and is %s", first, again)
	}
}

// Each close code that no second try can help ends the adapter with the next step,
// others do not; and one that takes the content intent away is done
// without it.
func TestCloseCodes(t *testing.T) {
	for code, fix := range map[int]string{4004: "Reset Token", 4010: "fewer", 4011: "fewer", 4012: "Update", 4013: "api_base"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			p := fake(t)
			r := runs(t, p, on(t, p.Server, deps(t)))
			p.RefuseNext(code)
			p.Cut()
			select {
			case err := <-r.ended:
				r.ended <- nil
				var cred *chat.CredentialError
				if !errors.As(err, &cred) || !strings.Contains(cred.Fix, fix) || cred.Account != "discord/main" {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(adaptertest.Patience):
				t.Fatalf("it goes on after %d", code)
			}
		})
	}
	t.Run("4014", func(t *testing.T) {
		t.Parallel()
		p := fake(t)
		r := runs(t, p, on(t, p.Server, deps(t)))
		p.AllowContent(false)
		p.InvalidNext(1)
		p.Cut()
		p.await(t, "a session without the intent", func() bool { l := p.Link(); return l.Connected && l.Identified == 2 })
		if got := discordgo.Intent(p.Link().Intents); got != leastIntents {
			t.Errorf("intents %b", got)
		}
		r.silent(p)
	})
}

// A token that is revoked while the adapter runs ends it.
func TestRevoked(t *testing.T) {
	p := fake(t)
	r := runs(t, p, on(t, p.Server, deps(t)))
	p.Revoke()
	p.Cut()
	var cred *chat.CredentialError
	if err := <-r.ended; !errors.As(err, &cred) {
		t.Errorf("it ended with %v", err)
	}
	r.ended <- nil
}

// While the store is away events wait in order and are lost by no reconnect; the
// link stays up meanwhile, since reading never waits (DUP-004).
func TestStoreAway(t *testing.T) {
	p := fake(t, fakediscord.WithHeartbeat(50*time.Millisecond))
	r := runs(t, p, on(t, p.Server, deps(t)))
	r.mu.Lock()
	r.refuse = 20
	r.mu.Unlock()
	var want []string
	for i := range 200 {
		want = append(want, fmt.Sprint("m", i))
		p.Server.Say(p.dm, alice, want[i])
	}
	r.says(want...)
	if l := p.Link(); l.Opened != 1 {
		t.Errorf("the link did not hold: %+v", l)
	}
}

// An event of many megabytes is read like any other (REC-003), and one that cannot be
// read is skipped.
func TestOddEvents(t *testing.T) {
	p := fake(t)
	r := runs(t, p, on(t, p.Server, deps(t)))
	p.Dispatch("GUILD_CREATE", map[string]any{"id": "300000000000000001", "name": strings.Repeat("x", 6<<20), "channels": []any{}})
	p.Dispatch("MESSAGE_CREATE", map[string]any{"id": 5, "channel_id": []int{1}})
	p.Dispatch("INTERACTION_CREATE", "what")
	p.Dispatch("SOMETHING_NEW", map[string]any{"a": 1})
	p.Dispatch("MESSAGE_CREATE", map[string]any{"id": "300000000000000002"})
	r.silent(p)
	if l := p.Link(); l.Opened != 1 {
		t.Errorf("the link did not hold: %+v", l)
	}
}

// After a restart everything that was said meanwhile is fetched, of all channels in
// the order in which it was said, and comes once although it may come over the
// gateway too (DUP-003).
func TestCatchUp(t *testing.T) {
	p := fake(t)
	guild := p.AddGuild("Guild")
	room, quiet := p.AddChannel(guild, "room", fakediscord.Text), p.AddChannel(guild, "quiet", fakediscord.Text)
	secret := p.AddChannel(guild, "secret", fakediscord.Text)
	p.Server.Say(quiet, alice, "long ago")
	began := time.Now().Add(overlap + time.Second)
	thread := p.StartThread(room, p.Server.Say(room, alice, "long ago"), "thread", fakediscord.BotID)
	p.Deny(secret, fakediscord.ReadHistory)
	// What follows is later than all that is stored, by the clock of ids.
	var want []string
	say := func(in, text string) {
		want = append(want, text)
		p.Server.Say(in, alice, text)
	}
	p.Advance(2 * (overlap + time.Second))
	for i := range 120 {
		say([]string{p.dm, room, thread}[i%3], fmt.Sprint("m", i))
	}
	p.Server.Say(secret, alice, "not for me")
	d := deps(t)
	d.Heard = heardUntil{began.Add(overlap), []chat.ChatID{chat.ChatID(p.dm), chat.ChatID(room)}}
	r := runs(t, p, on(t, p.Server, d))
	say(p.dm, "live")
	r.says(want...)
	r.silent(p)
}
