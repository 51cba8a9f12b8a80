package slack

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/adapters/adaptertest/fakeslack"
	"parley/gateway/chat"
)

// web serves an adapter's routes on loopback.
func web(t *testing.T, a *Adapter) string {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range a.Routes() {
		mux.Handle(pattern, h)
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL + "/webhook/slack/main"
}

func eventsMode(c *Config, _ *Deps) { c.Mode = modeEvents }

// Over HTTP come events, presses and commands at one address, each answered once it
// is stored; what is not stored comes again (DUP-007).
func TestEventsOverHTTP(t *testing.T) {
	s := newFake(t)
	channel := s.OpenIM(alice)
	s.Open(fakeslack.Room{ID: "C0ROOM", Kind: fakeslack.Channel, Name: "room"})
	a := newAdapter(t, s, s.BotToken(), eventsMode)
	in := run(t, a)
	if err := s.SetRequestURL(web(t, a)); err != nil {
		t.Fatal(err)
	}
	in.mu.Lock()
	in.refuse = 1
	in.mu.Unlock()
	s.Say(channel, alice, "hello")
	if got := in.text(t); got != "hello" {
		t.Errorf("got %q", got)
	}
	s.Command("C0ROOM", alice, "/new", "a title")
	if c, ok := in.next(t).(chat.CommandInvoked); !ok || c.Name != "new" || c.Args != "a title" {
		t.Errorf("got %+v", c)
	}
	id, err := a.Send(t.Context(), chat.Address{Account: "slack/main", Chat: chat.ChatID(channel)}, chat.Outgoing{
		Key: "k", Text: "?", Buttons: [][]chat.Button{{{Label: "Yes & no", Data: "y=&%"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Press(channel, string(id), "y=&%", alice)
	if p, ok := in.next(t).(chat.ButtonPressed); !ok || p.Data != "y=&%" {
		t.Errorf("got %+v", p)
	}
	await(t, s, func(s *fakeslack.Server) bool { return len(s.Acks()) >= 3 })
	if first := s.Acks()[0]; first.Attempt != 1 {
		t.Errorf("what was not stored came at attempt %d", first.Attempt)
	}
}

// Only Slack is heard: no signature, another one, an old one, a changed body; and what
// is signed but makes no sense is not sent again for ever.
func TestSignature(t *testing.T) {
	s := newFake(t)
	a := newAdapter(t, s, s.BotToken(), eventsMode)
	url := web(t, a)
	body := []byte(`{"type":"event_callback","event":{"type":"message","channel":"D0ALICE","user":"U0ALICE","ts":"1.1","text":"hi"}}`)
	post := func(sign func(http.Header), body []byte) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		sign(r.Header)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if text, _ := io.ReadAll(resp.Body); strings.Contains(string(text), s.SigningSecret()) {
			t.Error("the answer tells the secret")
		}
		return resp.StatusCode
	}
	good := func(h http.Header) { s.Sign(h, body, time.Now()) }
	if got := post(good, body); got != http.StatusServiceUnavailable {
		t.Errorf("before it runs: %d", got)
	}
	in := run(t, a)
	for name, tc := range map[string]struct {
		sign func(http.Header)
		body []byte
		want int
	}{
		"none":            {func(http.Header) {}, body, http.StatusUnauthorized},
		"another secret":  {func(h http.Header) { s.Sign(h, []byte("x"), time.Now()) }, body, http.StatusUnauthorized},
		"old":             {func(h http.Header) { s.Sign(h, body, time.Now().Add(-10*time.Minute)) }, body, http.StatusUnauthorized},
		"of the future":   {func(h http.Header) { s.Sign(h, body, time.Now().Add(10*time.Minute)) }, body, http.StatusUnauthorized},
		"changed body":    {good, append(bytes.Clone(body), ' '), http.StatusUnauthorized},
		"too large":       {good, make([]byte, requestLimit+1), http.StatusBadRequest},
		"makes no sense":  {func(h http.Header) { s.Sign(h, []byte("[1"), time.Now()) }, []byte("[1"), http.StatusOK},
		"as it should be": {good, body, http.StatusOK},
	} {
		if got := post(tc.sign, tc.body); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	if got := in.text(t); got != "hi" {
		t.Errorf("got %q", got)
	}
	select {
	case ev := <-in.events:
		t.Errorf("came too: %+v", ev)
	default:
	}
}

// Socket Mode has no address, and a mode without its secret is refused at the start.
func TestModes(t *testing.T) {
	s := newFake(t)
	if routes := newAdapter(t, s, s.BotToken()).Routes(); len(routes) != 0 {
		t.Errorf("routes %v", routes)
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no signing secret": {func(c *Config) { c.Mode, c.SigningSecret = modeEvents, DefaultConfig().SigningSecret }, "signing_secret"},
		"tokens swapped":    {func(c *Config) { c.BotToken, c.AppToken = c.AppToken, c.BotToken }, "bot_token"},
		"no such mode":      {func(c *Config) { c.Mode = "poll" }, "mode"},
		"no address":        {func(c *Config) { c.APIBase = "slack.com" }, "api_base"},
	} {
		cfg := DefaultConfig()
		good := newAdapter(t, s, s.BotToken()).cfg
		cfg.BotToken, cfg.AppToken, cfg.SigningSecret = good.BotToken, good.AppToken, good.SigningSecret
		tc.change(&cfg)
		err := errors.Join(cfg.Validate()...)
		if err == nil || !strings.Contains(err.Error(), "platforms.slack.main."+tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
