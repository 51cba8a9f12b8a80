package main

import (
	"context"
	"strings"
	"testing"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/storetest"
)

// conversation is a database in which somebody has talked to the bot.
func conversation(t *testing.T) (env environment, h *gatewaytest.Harness, asked chat.MessageID) {
	t.Helper()
	url := storetest.URL(t)
	model := gatewaytest.NewModel(func(_ context.Context, _ *llm.Request, say func(llm.Event) bool) error {
		say(llm.TextDelta{Text: "Forty-two."})
		return nil
	})
	h = gatewaytest.New(t, model, gatewaytest.Options{Store: storetest.Open(t, url)})
	asked = h.Say(gatewaytest.Owner, "What is the answer?")
	h.Final(gatewaytest.Owner, "Forty-two.")
	return environment{"PARLEY_DATABASE_URL": url}, h, asked
}

func TestSessions(t *testing.T) {
	env, h, _ := conversation(t)
	h.Say(gatewaytest.Owner, "/new")
	h.Say(gatewaytest.Owner, "And the question?")
	h.Final(gatewaytest.Owner, "Forty-two.")
	h.Stop()
	list := parley(t, env, "sessions", "list", "--json")
	rows := decode[[]sessionRow](t, list)
	if list.code != 0 || len(rows) != 2 || !rows[0].Current || rows[1].Current || rows[0].Reason != "new" {
		t.Fatalf("sessions: %+v", rows)
	}
	parley(t, env, "sessions", "list").has(t, 0, "SESSION", "* "+rows[0].ID, "  "+rows[1].ID, "What is the answer?")
	parley(t, env, "sessions", "show", rows[1].ID).has(t, 0, "What is the answer?", "Forty-two.", "Olga")
	parley(t, env, "sessions", "tree", rows[1].ID).has(t, 0, rows[1].ID)
	parley(t, env, "sessions", "export", rows[1].ID).has(t, 0, "# ", "## assistant", "Forty-two.")
	got := decode[exportedSession](t, parley(t, env, "sessions", "export", rows[1].ID, "--json"))
	if len(got.Messages) != 2 || got.Messages[0].From != string(gatewaytest.Owner.ID) || got.Messages[1].Content != "Forty-two." || got.Messages[1].Seq <= got.Messages[0].Seq {
		t.Errorf("export: %+v", got.Messages)
	}
	for i, current := range []bool{true, false} {
		if got := decode[exportedSession](t, parley(t, env, "sessions", "show", rows[i].ID, "--json")); got.Current != current {
			t.Errorf("session %d is current: %v", i, got.Current)
		}
	}
	parley(t, env, "sessions", "show", "nonsense").has(t, 1, "there is no session nonsense")
}

func TestWhy(t *testing.T) {
	env, h, asked := conversation(t)
	h.Stop()
	parley(t, env, "why", string(asked)).has(t, 0, "it is done", "Its turn is done")
	got := decode[explanation](t, parley(t, env, "why", string(asked), "--json"))
	if got.State != "done" || got.Turn == nil || got.Turn.State != "done" || len(got.Deliveries) != 1 || got.Deliveries[0].State != "sent" {
		t.Errorf("why --json: %+v", got)
	}
	parley(t, env, "why", "no-such").has(t, 1, "no message no-such came in")
}

// TestPairing lets a stranger in from the command line: what they wrote before is
// answered by the daemon that runs.
func TestPairing(t *testing.T) {
	env, h, _ := conversation(t)
	stranger := chat.User{ID: "test:99", Name: "Sam\x1b[2J"}
	h.Say(stranger, "May I?")
	type list struct {
		Requests []struct{ Code, Person string }
		Members  []struct{ Person, Role string }
	}
	got := decode[list](t, parley(t, env, "pairing", "list", "--json"))
	if len(got.Requests) != 1 || got.Requests[0].Person != "test:99" {
		t.Fatalf("requests: %+v", got)
	}
	o := parley(t, env, "pairing", "list")
	o.has(t, 0, "test:99", "asks", got.Requests[0].Code)
	if strings.Contains(o.stdout, "\x1b") {
		t.Error("a name can write to the terminal")
	}
	parley(t, env, "pairing", "approve", strings.ToLower(got.Requests[0].Code)).has(t, 0, "test:99", "may talk to the bot")
	h.Final(stranger, "Forty-two.")
	parley(t, env, "pairing", "approve", got.Requests[0].Code).has(t, 1, "is allowed")
	parley(t, env, "pairing", "approve", "NONE").has(t, 1, "there is no request NONE")
	parley(t, env, "pairing", "revoke", "test:99").has(t, 0, "is a stranger now")
	parley(t, env, "pairing", "revoke", "test:99").has(t, 1, "nobody is known as test:99")
}

func TestMigrate(t *testing.T) {
	env := environment{"PARLEY_DATABASE_URL": storetest.URL(t)}
	parley(t, env, "migrate").has(t, 0, "The schema is up to date")
	if got := decode[struct{ From, To int64 }](t, parley(t, env, "migrate", "--json")); got.From != got.To || got.To < 1 {
		t.Errorf("%+v", got)
	}
}
