package discord

import (
	"context"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap/zaptest"

	"parley/adapters/adaptertest"
	"parley/adapters/adaptertest/fakediscord"
	"parley/config/secret"
	"parley/gateway/chat"
)

// alice is who writes in most tests.
var alice = fakediscord.User{ID: "100000000000000005", Username: "alice", Name: "Alice"}

// heardUntil is a store that has heard everything up to a moment.
type heardUntil struct {
	at    time.Time
	chats []chat.ChatID
}

func (h heardUntil) Heard(context.Context, chat.AccountID) ([]chat.MessageID, []chat.ChatID, error) {
	return []chat.MessageID{chat.MessageID(snowflake(h.at))}, h.chats, nil
}

// platform is the fake Discord as the conformance suite sees it.
type platform struct {
	*fakediscord.Server
	dm string
}

func (p platform) Say(text string) chat.MessageID {
	return chat.MessageID(p.Server.Say(p.dm, alice, text))
}

// Press waits for the gateway: a press while nobody is connected is lost to everybody.
func (p platform) Press(on chat.MessageID, data string) {
	ctx, cancel := context.WithTimeout(context.Background(), adaptertest.Patience)
	defer cancel()
	_ = p.Wait(ctx, func() bool { return p.Link().Connected })
	p.Server.Press(p.dm, string(on), data, alice)
}

func (p platform) Shown(id chat.MessageID) (string, bool) {
	m, ok := p.Message(p.dm, string(id))
	return fakediscord.Shown(m.Content), ok && !m.Deleted
}

func (p platform) Fail(f adaptertest.Failure) {
	fault := map[adaptertest.Failure]*fakediscord.Fault{
		adaptertest.RateLimited: fakediscord.TooManyRequests(3),
		adaptertest.Blocked:     fakediscord.Refusal(403, 50007, "Cannot send messages to this user"),
		adaptertest.BadGateway:  fakediscord.BadGateway,
		adaptertest.CutBefore:   fakediscord.CutBefore,
		adaptertest.CutAfter:    fakediscord.CutAfter,
		adaptertest.Refused:     fakediscord.Refusal(400, 200000, "Message was blocked by automatic moderation"),
		adaptertest.LandsLate:   fakediscord.LandsLate,
	}[f]
	left := 1
	p.Server.Fail(func(r fakediscord.Request) *fakediscord.Fault {
		if left == 0 || r.Method != http.MethodPost && r.Method != http.MethodPatch {
			return nil
		}
		left--
		return fault
	})
}

// Standing implements adaptertest.Late.
func (p platform) Standing() (n int) {
	for _, m := range p.Messages(p.dm) {
		if m.Author.ID == fakediscord.BotID {
			n++
		}
	}
	return n
}

func (p platform) Complaints() []string { return append(p.Violations(), p.Rejected()...) }

// fake starts a Discord where Alice has a direct chat with the bot.
func fake(t *testing.T, opts ...fakediscord.Option) platform {
	t.Helper()
	s := fakediscord.New(opts...)
	t.Cleanup(s.Close)
	return platform{s, s.OpenDM(alice)}
}

// deps are an adapter's, with short waits.
func deps(t *testing.T) Deps {
	t.Helper()
	tr := newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	return Deps{Log: zaptest.NewLogger(t), Transport: tr, Heal: 5 * time.Millisecond, Gather: 5 * time.Second}
}

// on makes an adapter on a fake.
func on(t *testing.T, s *fakediscord.Server, d Deps, change ...func(*Config)) *Adapter {
	t.Helper()
	cfg := DefaultConfig()
	cfg.APIBase, cfg.Token = s.URL(), secret.New(s.CurrentToken())
	for _, f := range change {
		f(&cfg)
	}
	a, err := New(cfg, d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestConformance(t *testing.T) {
	var now platform
	// The address has to be known before there is a fake: ids follow the clock.
	dm := snowflake(time.Now())
	began := time.Now()
	adaptertest.Run(t, adaptertest.Subject{
		Start: func(t *testing.T) adaptertest.Platform {
			s := fakediscord.New()
			t.Cleanup(s.Close)
			now = platform{s, s.OpenDMAs(dm, alice)}
			return now
		},
		New: func(t *testing.T, token string) chat.Adapter {
			d := deps(t)
			d.Heard = heardUntil{began, []chat.ChatID{chat.ChatID(dm)}}
			return on(t, now.Server, d, func(c *Config) { c.Token = secret.New(token) })
		},
		Chat:        chat.Address{Account: "discord/main", Chat: chat.ChatID(dm)},
		Secret:      fakediscord.Token,
		WrongSecret: "OTAwMDAwMDAwMDAwMDAwMDAx.fake-1.a-wrong-token-of-the-fake-bot-000",
		Count:       utf8.RuneCountInString,
	})
}
