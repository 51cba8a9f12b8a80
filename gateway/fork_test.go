package gateway_test

import (
	"strings"
	"testing"

	"parley/gateway/gatewaytest"
)

func TestUndoRetryAndBranch(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "one")
	h.Final(owner, "echo: one")
	h.Say(owner, "two")
	h.Final(owner, "echo: two")
	h.Say(owner, "/undo")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "undone", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "Taken back: “two”")
	})
	h.Say(owner, "three")
	h.Final(owner, "echo: three")
	last := m.Requests()[len(m.Requests())-1]
	for _, msg := range last.Messages {
		if strings.Contains(msg.Text(), "two") {
			t.Errorf("what was taken back is still sent: %q", msg.Text())
		}
	}
	if len(last.Messages) != 3 || !strings.Contains(last.Messages[0].Text(), "one") {
		t.Errorf("the history after /undo: %+v", last.Messages)
	}
	m.Answer(gatewaytest.Say("another answer"))
	h.Say(owner, "/retry")
	h.Final(owner, "another answer")
	last = m.Requests()[len(m.Requests())-1]
	if len(last.Messages) != 3 || lastLine(last.Messages[2].Text()) != "three" {
		t.Errorf("the request of /retry: %+v", last.Messages)
	}
	m.Answer(echo)
	h.Say(owner, "/branch Side")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "branched", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "branch **Side**")
	})
	h.Say(owner, "four")
	h.Final(owner, "echo: four")
	if last = m.Requests()[len(m.Requests())-1]; len(last.Messages) != 5 {
		t.Errorf("a branch has %d messages, want the whole history and one", len(last.Messages))
	}
	h.Say(owner, "/undo")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "undone in the branch", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "Taken back: “four”")
	})
	h.Say(owner, "/title")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the title", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "This session is **Side**")
	})
	h.Say(owner, "/why")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the fate of the last message", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "it is **done**")
	})
	h.Say(owner, "/undo 9")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "refused", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "Only 2 questions")
	})
}
