package gateway_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

// person makes people whom the gateway of these tests allows.
func person(i int) chat.User {
	return chat.User{ID: chat.Person(fmt.Sprintf("test:%d", 1000+i)), Name: fmt.Sprint("Person ", i)}
}

func everybody(c *gateway.Config) {
	c.Access.Allow = append(c.Access.Allow, "test:*")
	c.Shutdown.Grace = 10 * time.Millisecond
}

// SHD-007: a panic costs one turn, which is told, and nothing else.
func TestPanicCostsOneTurn(t *testing.T) {
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if strings.Contains(gatewaytest.LastUser(r), "break") {
			panic("index out of range")
		}
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "break")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "a word about it", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && strings.Contains(ps[0].Out.Text, "internal error") && strings.Contains(ps[0].Out.Text, "reference") && !strings.Contains(ps[0].Out.Text, "index")
	})
	h.Say(user, "somebody else")
	h.Final(user, "echo: somebody else")
	m.Answer(echo)
	h.Say(owner, "go on")
	h.Final(owner, "echo: go on")
}

// PGS-008: a pool of two connections serves any number of conversations that wait for
// their model.
func TestWaitingHoldsNoConnection(t *testing.T) {
	db, err := store.Open(t.Context(), store.OpenConfig{URL: storetest.URL(t), MaxConns: 2, Heartbeat: 50 * time.Millisecond}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if strings.Contains(gatewaytest.LastUser(r), "hang") {
			return silent(ctx, r, say)
		}
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Store: db, Config: everybody})
	for i := range 10 {
		h.Say(person(i), "hang")
	}
	awaitRequests(t, m, 10)
	h.Say(owner, "hello")
	h.Final(owner, "echo: hello")
}

// RES-001: idle conversations leave no goroutine behind, and work again when they are
// needed.
func TestIdleConversationsLeaveNothing(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{Config: func(c *gateway.Config) {
		everybody(c)
		c.Conversations.IdleTimeout = 50 * time.Millisecond
	}})
	h.Say(owner, "warm up")
	h.Final(owner, "echo: warm up")
	before := runtime.NumGoroutine()
	for round := range 2 {
		const people = 30
		for i := range people {
			h.Say(person(i), fmt.Sprint("round ", round))
		}
		for i := range people {
			h.Final(person(i), fmt.Sprint("echo: round ", round))
		}
		eventually(t, "the goroutines' end", func() bool { return runtime.NumGoroutine() <= before+people/5 })
	}
}

// KEY-004: the next message goes on where the session was, also after a restart.
func TestSessionOutlivesARestart(t *testing.T) {
	db, p, m := storetest.New(t), gatewaytest.NewPlatform(chat.Limits{}), gatewaytest.NewModel(echo)
	for i, text := range []string{"hi", "what did I say?", "and before?"} {
		h := gatewaytest.New(t, m, gatewaytest.Options{Store: db, Platform: p})
		h.Say(owner, text)
		h.Final(owner, "echo: "+text)
		h.Stop()
		if r := m.Requests()[i]; len(r.Messages) != 2*i+1 || lastLine(r.Messages[0].Text()) != "hi" {
			t.Errorf("request %d has %d messages: %+v", i, len(r.Messages), r.Messages)
		}
	}
}

// REC-014, RST-008: a message that was stored by a process which then died is answered
// without any other event.
func TestWorkOfADeadProcessIsFound(t *testing.T) {
	url := storetest.URL(t)
	dead, err := store.Open(t.Context(), store.OpenConfig{URL: url, Heartbeat: 50 * time.Millisecond}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{Store: storetest.Open(t, url)})
	replica, err := dead.Register(t.Context(), "dead", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dead.Receive(t.Context(), record.ReceiveRequest{
		Replica: replica, Scope: chat.ScopeThread, Model: gatewaytest.DefaultModel, Event: message("1", "anybody there?", nil),
	}, func(record.AccessFacts) record.Verdict { return record.Verdict{State: record.InboxReceived} })
	dead.Close()
	if err != nil {
		t.Fatal(err)
	}
	h.Final(owner, "echo: anybody there?")
}

// CON-010: a message interrupts although nothing of the running answer can be shown.
func TestInterruptDoesNotNeedDelivery(t *testing.T) {
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if strings.Contains(gatewaytest.LastUser(r), "now me") {
			return echo(ctx, r, say)
		}
		say(llm.TextDelta{Text: "working"})
		return silent(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	var refused atomic.Int32
	h.Platform.Fail(func(string, chat.Outgoing) error { refused.Add(1); return errTransient })
	id := h.SayIn("room", user, "work")
	eventually(t, "a failed delivery", func() bool { return refused.Load() > 0 })
	h.SayIn("room", owner, "now me")
	awaitRequests(t, m, 2)
	if s := explained(t, h, id).Turn.State; s != record.TurnInterrupted {
		t.Errorf("the first turn is %s", s)
	}
	h.Platform.Fail(nil)
	h.Platform.Await(t, "room", "the second answer", func(ps []gatewaytest.Post) bool {
		return len(ps) > 0 && ps[len(ps)-1].Out.Text == "echo: now me"
	})
}
