package gateway_test

import (
	"context"
	"sync/atomic"
	"testing"

	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// namer is a Titler that waits until it may answer.
type namer struct {
	asked chan string
	may   chan string
	calls atomic.Int32
}

func (n *namer) Title(ctx context.Context, p record.Payer, question, answer string) (string, error) {
	n.calls.Add(1)
	n.asked <- string(p.Person) + ": " + question + " / " + answer
	select {
	case title := <-n.may:
		return title, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// A session is named by its first question and answer, once, without holding anything
// up; what a person called it stays.
func TestSessionsAreNamedAfterTheFirstAnswer(t *testing.T) {
	n := &namer{asked: make(chan string, 9), may: make(chan string, 9)}
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{Titler: n})
	h.Say(owner, "first")
	h.Final(owner, "echo: first")
	if got := <-n.asked; got != "test:1: first / echo: first" {
		t.Errorf("named by %q", got)
	}
	h.Say(owner, "second") // while the name is being thought of
	h.Final(owner, "echo: second")
	n.may <- "A fine name"
	eventually(t, "the name", func() bool { _, s := standing(t, h.Store); return s.Title == "A fine name" })
	h.Say(owner, "third")
	h.Final(owner, "echo: third")

	h.Say(owner, "/new")
	h.Final(owner, "✨ A new session. The one before is kept: `/resume` goes back to it.")
	h.Say(owner, "fourth")
	h.Final(owner, "echo: fourth")
	<-n.asked
	h.Say(owner, "/title Mine")
	h.Final(owner, "This session is now **Mine**.")
	n.may <- "Not mine"
	h.Say(owner, "fifth")
	h.Final(owner, "echo: fifth")
	h.Stop()
	if _, s := standing(t, h.Store); s.Title != "Mine" || n.calls.Load() != 2 {
		t.Errorf("%q after %d calls", s.Title, n.calls.Load())
	}
}
