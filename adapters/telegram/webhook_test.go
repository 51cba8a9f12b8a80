package telegram

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"parley/adapters/adaptertest"
	"parley/adapters/adaptertest/faketelegram"
	"parley/config/secret"
	"parley/gateway/chat"
)

// pushed makes an adapter that Telegram pushes to, and its address.
func pushed(t *testing.T, s *faketelegram.Server, token string) (*Adapter, string) {
	t.Helper()
	mux := http.NewServeMux()
	listener := httptest.NewServer(mux)
	t.Cleanup(listener.Close)
	a := behind(t, s, token, listener.URL)
	for pattern, h := range a.Routes() {
		mux.Handle(pattern, h)
	}
	return a, listener.URL + "/webhook/telegram/main"
}

func behind(t *testing.T, s *faketelegram.Server, token, publicURL string) *Adapter {
	t.Helper()
	cfg := DefaultConfig()
	cfg.APIBase, cfg.Token, cfg.Mode = s.URL(), secret.New(token), "webhook"
	h := newHTTP()
	t.Cleanup(h.CloseIdleConnections)
	a, err := New(cfg, Deps{Log: zaptest.NewLogger(t), HTTP: h, PublicURL: publicURL, Poll: 20 * time.Millisecond, Heal: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestWebhookConformance holds what is pushed to the same promises as what is
// polled: acknowledged when durable, with the same keys (DUP-004, REC-014).
func TestWebhookConformance(t *testing.T) {
	var now platform
	adaptertest.Run(t, adaptertest.Subject{
		Start: func(t *testing.T) adaptertest.Platform {
			now = fake(t)
			return now
		},
		New: func(t *testing.T, token string) chat.Adapter {
			a, _ := pushed(t, now.Server, token)
			return a
		},
		Chat:        chat.Address{Account: "telegram/main", Chat: "5"},
		Secret:      "4200000042:fake-token_of-the_test-bot",
		WrongSecret: "4200000042:a-wrong-token_of-the_test-bot",
		Count:       units,
	})
}

// Only what knows the secret is read, and nothing is taken in before Run.
func TestWebhookDoor(t *testing.T) {
	p, b := fake(t), newInbox()
	a, url := pushed(t, p.Server, p.Token())
	post := func(method, secret, body string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	update := `{"update_id":1,"message":{"message_id":7,"date":1,"chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"A"},"text":"hello"}}`
	if got := post(http.MethodPost, a.hook.secret, update); got != http.StatusServiceUnavailable {
		t.Errorf("before Run: %d", got)
	}
	run(t, a, b.sink)
	b.await(t, b.linked(chat.Connected, ""))
	for name, c := range map[string]struct {
		method, secret, body string
		want                 int
	}{
		"no secret":    {http.MethodPost, "", update, http.StatusUnauthorized},
		"wrong secret": {http.MethodPost, strings.Repeat("0", 64), update, http.StatusUnauthorized},
		"a page":       {http.MethodGet, a.hook.secret, "", http.StatusMethodNotAllowed},
		"too large":    {http.MethodPost, a.hook.secret, strings.Repeat(" ", hookBody+1), http.StatusRequestEntityTooLarge},
		"no update":    {http.MethodPost, a.hook.secret, `{"update_id":2,"message":{"message_id":"x"}}`, http.StatusOK},
	} {
		if got := post(c.method, c.secret, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := post(http.MethodPost, a.hook.secret, update); got != http.StatusOK {
		t.Errorf("an update: %d", got)
	}
	if got := b.texts(t, 1); len(got) != 1 || got[0] != "hello" {
		t.Errorf("taken in: %q", got)
	}
}

// A webhook that is as it should be is left alone, by a restart and by a second
// process; polling removes it, and keeps what waits (CFG-003, RST-006).
func TestWebhookIsSetOnce(t *testing.T) {
	p, b := fake(t), newInbox()
	a, url := pushed(t, p.Server, p.Token())
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, b.sink) }()
		b.await(t, b.linked(chat.Connected, ""))
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		b.links = nil
		b.mu.Unlock()
	}
	calls := p.Calls("setWebhook")
	if len(calls) != 1 || calls[0].Params["url"] != url || calls[0].Params["allowed_updates"] != `["message","edited_message","callback_query"]` {
		t.Errorf("setWebhook: %v", calls)
	}
	p.Say("written while nothing runs")
	run(t, on(t, p.Server, p.Token()), b.sink)
	if got := b.texts(t, 1); got[0] != "written while nothing runs" {
		t.Errorf("got %q", got)
	}
	if n := p.Counters().Calls["deleteWebhook"]; n != 1 {
		t.Errorf("deleteWebhook was called %d times", n)
	}
}

// Who else uses the bot is told (REC-004), and so is what keeps Telegram out.
func TestWebhookHeals(t *testing.T) {
	p, b := fake(t), newInbox()
	a, _ := pushed(t, p.Server, p.Token())
	refuse := make(chan struct{})
	run(t, a, func(ctx context.Context, ev chat.Event) error {
		if _, ok := ev.(chat.MessageReceived); ok {
			select {
			case <-refuse:
			default:
				return errors.New("the database is away")
			}
		}
		return b.sink(ctx, ev)
	})
	b.await(t, b.linked(chat.Connected, ""))
	p.SetWebhook("https://elsewhere.example/hook")
	b.await(t, b.linked(chat.Reconnecting, "another process took the webhook away"))
	p.Say("first")
	b.await(t, b.linked(chat.Reconnecting, "the webhook is not reached at"))
	b.await(t, b.linked(chat.Reconnecting, "503"))
	close(refuse)
	if got := b.texts(t, 1); len(got) != 1 || got[0] != "first" {
		t.Errorf("got %q", got)
	}
}

func TestWebhookProbe(t *testing.T) {
	p := fake(t)
	a, url := pushed(t, p.Server, p.Token())
	find := func(text string, ok bool) {
		t.Helper()
		fs, err := a.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := fs[len(fs)-1]
		if !strings.Contains(last.What, text) || last.OK != ok || ok == (last.Fix != "") {
			t.Errorf("the finding is %+v, want %q", last, text)
		}
	}
	find("no webhook is set yet", true)
	p.SetWebhook("https://elsewhere.example/hook")
	find("leads elsewhere", false)
	if err := a.setWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	find("updates are pushed to "+url, true)
	p.Say("nobody takes this in")
	if err := p.Wait(t.Context(), func(s *faketelegram.Server) bool { return s.Counters().Taken > 1 }); err != nil {
		t.Fatal(err)
	}
	find("Telegram cannot deliver: Wrong response from the webhook: 503", false)
}

// What Telegram could never reach is refused with the key to change.
func TestWebhookReachable(t *testing.T) {
	for url, want := range map[string]string{
		"":                            "needs http.public_url",
		"bot.example.com":             "needs a URL",
		"http://bot.example.com":      "without it use poll",
		"https://bot.example.com:444": "443, 80, 88, 8443",
		"https://bot.example.com":     "",
		"https://bot.example.com:88/": "",
	} {
		err := DefaultConfig().Reachable(url)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
	local := DefaultConfig()
	local.APIBase = "http://127.0.0.1:8081"
	if err := local.Reachable("http://10.0.0.1:8080"); err != nil {
		t.Error(err)
	}
}

// The secret tells nothing of the token.
func TestWebhookSecret(t *testing.T) {
	p := fake(t)
	a := behind(t, p.Server, p.Token(), "http://127.0.0.1:1")
	if _, tail, _ := strings.Cut(p.Token(), ":"); bytes.Contains([]byte(a.hook.secret+a.hook.url), []byte(tail)) || len(a.hook.secret) != 64 {
		t.Errorf("the secret is %q", a.hook.secret)
	}
}
