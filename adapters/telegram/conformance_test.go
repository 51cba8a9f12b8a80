package telegram

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"parley/adapters/adaptertest"
	"parley/adapters/adaptertest/faketelegram"
	"parley/config/secret"
	"parley/gateway/chat"
)

const alicesChat = 5

var person = faketelegram.User{ID: alicesChat, FirstName: "Alice"}

// platform is the fake Bot API as the conformance suite sees it.
type platform struct{ *faketelegram.Server }

func (p platform) Say(text string) chat.MessageID {
	_, id := p.Send(alicesChat, person, text)
	return chat.MessageID(strconv.FormatInt(id, 10))
}

func (p platform) Press(on chat.MessageID, data string) {
	p.Server.Press(alicesChat, number(on), data, person)
}

func (p platform) Shown(id chat.MessageID) (string, bool) {
	m, ok := p.Chat(alicesChat).Message(number(id))
	return m.Text, ok && m.DeletedAt.IsZero()
}

func (p platform) Fail(f adaptertest.Failure) {
	fault := map[adaptertest.Failure]*faketelegram.Fault{
		adaptertest.RateLimited: faketelegram.TooManyRequests(3),
		adaptertest.Blocked:     faketelegram.Refusal(403, "Forbidden: bot was blocked by the user"),
		adaptertest.BadGateway:  faketelegram.BadGateway,
		adaptertest.CutBefore:   faketelegram.CutBefore,
		adaptertest.CutAfter:    faketelegram.CutAfter,
		adaptertest.Refused:     faketelegram.Refusal(400, "Bad Request: BUTTON_DATA_INVALID"),
	}[f]
	left := 1
	p.Server.Fail(func(c faketelegram.Call) *faketelegram.Fault {
		if left == 0 || c.Method != "sendMessage" && c.Method != "editMessageText" {
			return nil
		}
		left--
		return fault
	})
}

// Complaints also holds every text that had to be sent without its markup.
func (p platform) Complaints() []string {
	var list []string
	for _, v := range p.Violations() {
		list = append(list, v.String())
	}
	for _, method := range []string{"sendMessage", "editMessageText"} {
		for _, c := range p.Calls(method) {
			if c.Params["parse_mode"] == "" {
				list = append(list, fmt.Sprintf("the markup of %.60q was refused", c.Params["text"]))
			}
		}
	}
	return list
}

func number(id chat.MessageID) int64 {
	n, _ := strconv.ParseInt(string(id), 10, 64)
	return n
}

// fake starts a Bot API that knows Alice's chat.
func fake(t *testing.T, opts ...faketelegram.Option) platform {
	t.Helper()
	s := faketelegram.New(append(opts, faketelegram.RecordCalls())...)
	t.Cleanup(s.Close)
	s.Open(faketelegram.Room{ID: alicesChat})
	return platform{s}
}

// on makes an adapter on a fake, with short waits.
func on(t *testing.T, s *faketelegram.Server, token string) *Adapter {
	t.Helper()
	cfg := DefaultConfig()
	cfg.APIBase, cfg.Token = s.URL(), secret.New(token)
	h := newHTTP()
	t.Cleanup(h.CloseIdleConnections)
	a, err := New(cfg, Deps{Log: zaptest.NewLogger(t), HTTP: h, Poll: 5 * time.Second, Heal: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestConformance(t *testing.T) {
	var now platform
	adaptertest.Run(t, adaptertest.Subject{
		Start: func(t *testing.T) adaptertest.Platform {
			now = fake(t)
			return now
		},
		New:         func(t *testing.T, token string) chat.Adapter { return on(t, now.Server, token) },
		Chat:        chat.Address{Account: "telegram/main", Chat: "5"},
		Secret:      "4200000042:fake-token_of-the_test-bot",
		WrongSecret: "4200000042:a-wrong-token_of-the_test-bot",
		Count:       units,
	})
}
