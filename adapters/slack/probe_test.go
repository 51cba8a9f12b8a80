package slack

import (
	"slices"
	"strings"
	"testing"

	"parley/adapters/adaptertest/fakeslack"
	"parley/config/secret"
	"parley/gateway/chat"
)

// Whatever is wrong with a set-up, doctor names it with its next step; a set-up that is
// right has nothing to say.
func TestProbe(t *testing.T) {
	full := append(slices.Clone(botScopes), "connections:write")
	for name, tc := range map[string]struct {
		scopes []string
		faults map[string]*fakeslack.Fault
		change func(*Config, *Deps)
		what   string // empty: all is well
		fix    string
	}{
		"all is well":     {scopes: full},
		"events mode":     {scopes: full, change: func(c *Config, d *Deps) { c.Mode, d.PublicURL = modeEvents, "https://p.example/" }},
		"no public URL":   {scopes: full, change: eventsMode, what: "http.public_url", fix: "http.public_url"},
		"a scope is lost": {scopes: full[1:], what: full[0], fix: "install the app again"},
		"bot token":       {scopes: full, faults: map[string]*fakeslack.Fault{"auth.test": fakeslack.Refusal("invalid_auth")}, what: "invalid_auth", fix: "https://api.slack.com/apps?new_app=1&manifest_json="},
		"app token":       {scopes: full, faults: map[string]*fakeslack.Fault{"apps.connections.open": fakeslack.Refusal("invalid_auth")}, what: "app-level token", fix: "connections:write"},
		"no app token":    {scopes: full, change: func(c *Config, _ *Deps) { c.AppToken = secret.New("") }, what: "app-level token", fix: "SLACK_APP_TOKEN"},
		"no Socket Mode":  {scopes: full, faults: map[string]*fakeslack.Fault{"apps.connections.open": fakeslack.Refusal("socket_mode_not_enabled")}, what: "Socket Mode", fix: "switch it on"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake(t, fakeslack.WithScopes(tc.scopes...))
			for method, fault := range tc.faults {
				s.FailNext(method, fault)
			}
			change := tc.change
			if change == nil {
				change = func(*Config, *Deps) {}
			}
			a := newAdapter(t, s, s.BotToken(), change)
			found, err := a.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wrong := slices.DeleteFunc(found, func(f chat.Finding) bool { return f.OK })
			if tc.what == "" && len(wrong) > 0 || tc.what != "" && len(wrong) != 1 {
				t.Fatalf("found %+v", wrong)
			}
			if tc.what != "" && (!strings.Contains(wrong[0].What, tc.what) || !strings.Contains(wrong[0].Fix, tc.fix)) {
				t.Errorf("found %+v", wrong[0])
			}
		})
	}
}

// The manifest asks for each scope that the fake, which knows what each method needs,
// was asked with; the test that the adapter calls nothing beyond is the conformance
// suite on exactly these scopes.
func TestManifestScopesSuffice(t *testing.T) {
	s := newFake(t, fakeslack.WithScopes(append(slices.Clone(botScopes), "connections:write")...))
	channel := s.OpenIM(alice)
	s.Begin(channel, paneThread)
	a := newAdapter(t, s, s.BotToken())
	at := chat.Address{Account: "slack/main", Chat: chat.ChatID(channel), Thread: paneThread}
	id, err := a.Send(t.Context(), at, chat.Outgoing{Key: "k", Text: "one", Live: true})
	if err != nil {
		t.Fatal(err)
	}
	ts := chat.MessageID(s.Say(channel, alice, "hi"))
	_, historyErr := a.History(t.Context(), at, ts, 10)
	_, _, findErr := a.Find(t.Context(), at, chat.Attempt{Key: "k"})
	for what, err := range map[string]error{
		"edit": a.Edit(t.Context(), at, id, chat.Outgoing{Key: "k", Text: "two"}), "react": a.React(t.Context(), at, ts, chat.ReactDone),
		"status": a.Typing(t.Context(), at), "title": a.SetTitle(t.Context(), at, "title"), "history": historyErr, "find": findErr,
		"delete": a.Delete(t.Context(), at, id),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if a.people.name(t.Context(), alice.ID) != "Alice" {
		t.Error("no names")
	}
}
