package slack

import (
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap/zaptest"

	"parley/adapters/adaptertest"
	"parley/adapters/adaptertest/fakeslack"
	"parley/config/secret"
	"parley/gateway/chat"
)

var alice = fakeslack.User{ID: "U0ALICE", Name: "Alice"}

// platform is the fake workspace as the conformance suite sees it: Alice's direct
// conversation, in a thread of the assistant pane or outside of threads.
type platform struct {
	*fakeslack.Server
	channel, thread string
}

func (p platform) Say(text string) chat.MessageID {
	return chat.MessageID(p.Post(fakeslack.Incoming{Channel: p.channel, Thread: p.thread, From: alice, Text: text}))
}

func (p platform) Press(on chat.MessageID, data string) {
	p.Server.Press(p.channel, string(on), data, alice)
}

func (p platform) Shown(id chat.MessageID) (string, bool) {
	m, ok := p.Message(p.channel, string(id))
	return m.Text, ok && m.DeletedAt.IsZero()
}

func (p platform) Fail(f adaptertest.Failure) {
	fault := map[adaptertest.Failure]*fakeslack.Fault{
		adaptertest.RateLimited: fakeslack.TooManyRequests(3),
		adaptertest.Blocked:     fakeslack.Refusal("channel_not_found"),
		adaptertest.BadGateway:  fakeslack.BadGateway,
		adaptertest.CutBefore:   fakeslack.CutBefore,
		adaptertest.CutAfter:    fakeslack.CutAfter,
		adaptertest.Refused:     fakeslack.Refusal("invalid_attachments"),
		adaptertest.LandsLate:   fakeslack.LandsLate,
	}[f]
	left := 1
	p.Server.Fail(func(c fakeslack.Call) *fakeslack.Fault {
		if left == 0 || c.Method != "chat.postMessage" && c.Method != "chat.update" {
			return nil
		}
		left--
		return fault
	})
}

// Standing implements adaptertest.Late.
func (p platform) Standing() (n int) {
	for _, m := range p.Messages(p.channel) {
		if m.DeletedAt.IsZero() {
			n++
		}
	}
	return n
}

// Complaints also holds every text that had to be sent without its markup.
func (p platform) Complaints() []string {
	var list []string
	for _, v := range p.Violations() {
		list = append(list, v.String())
	}
	return list
}

// newAdapter makes an adapter on a fake. Its socket is impatient, its waits short.
func newAdapter(t *testing.T, s *fakeslack.Server, bot string, change ...func(*Config, *Deps)) *Adapter {
	t.Helper()
	cfg := DefaultConfig()
	cfg.APIBase, cfg.BotToken, cfg.AppToken, cfg.SigningSecret = s.URL(), secret.New(bot), secret.New(s.AppToken()), secret.New(s.SigningSecret())
	h := newHTTP()
	t.Cleanup(h.CloseIdleConnections)
	deps := Deps{Log: zaptest.NewLogger(t), HTTP: h, Heal: 10 * time.Millisecond}
	for _, f := range change {
		f(&cfg, &deps)
	}
	a, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newFake(t *testing.T, opts ...fakeslack.Option) *fakeslack.Server {
	t.Helper()
	s := fakeslack.New(append([]fakeslack.Option{fakeslack.RecordCalls(), fakeslack.WithRetry(100 * time.Millisecond)}, opts...)...)
	t.Cleanup(s.Close)
	return s
}

// TestConformance runs the suite outside of threads, where answers are edited, and
// in a thread, where they are streams.
func TestConformance(t *testing.T) {
	for name, pane := range map[string]bool{"direct messages": false, "assistant pane": true} {
		t.Run(name, func(t *testing.T) {
			const begun = "1700000000.000001"
			var fake *fakeslack.Server
			thread := ""
			if pane {
				thread = begun
			}
			adaptertest.Run(t, adaptertest.Subject{
				New: func(t *testing.T, bot string) chat.Adapter { return newAdapter(t, fake, bot) },
				Start: func(t *testing.T) adaptertest.Platform {
					fake = newFake(t)
					channel := fake.OpenIM(alice)
					if pane {
						fake.Begin(channel, begun)
					}
					return platform{fake, channel, thread}
				},
				Chat:        chat.Address{Account: "slack/main", Chat: "D0ALICE", Thread: chat.ThreadID(thread)},
				Secret:      "xoxb-4200000042-fake-token-of-the-bot",
				WrongSecret: "xoxb-4200000042-some-other-long-token",
				Count:       utf8.RuneCountInString,
			})
		})
	}
}
