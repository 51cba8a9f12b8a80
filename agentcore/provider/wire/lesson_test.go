package wire

import (
	"testing"

	"go.uber.org/zap"

	"parley/agentcore/llm"
)

// TestLessons: what a refusal teaches holds for its model, or for its conversation
// alone where the history was refused.
func TestLessons(t *testing.T) {
	l := NewLessons([]Lesson[uint]{
		{Words: []string{"signature", "thinking"}, Quirk: 1, Session: true},
		{Words: []string{"thinking"}, Quirk: 2},
	}, zap.NewNop())
	ask := func(model llm.ModelID, session string) *llm.Request {
		return &llm.Request{Model: model, CacheKey: session}
	}
	refuse := func(message string) *llm.Error { return &llm.Error{Kind: llm.KindMalformed, Message: message} }
	if !l.Learn(ask("a/m", "s1"), refuse("Invalid signature in Thinking block")) || l.Learn(ask("a/m", "s1"), refuse("invalid signature in thinking block")) {
		t.Error("a lesson is learnt once")
	}
	if !l.Learn(ask("a/m", "s1"), refuse("no thinking here")) {
		t.Error("the second lesson was not learnt")
	}
	if l.Learn(ask("a/m", "s1"), &llm.Error{Kind: llm.KindRateLimit, Message: "thinking"}) || l.Learn(ask("a/m", "s1"), refuse("something else")) {
		t.Error("learnt from something else")
	}
	for _, c := range []struct {
		req  *llm.Request
		want uint
	}{{ask("a/m", "s1"), 3}, {ask("a/m", "s2"), 2}, {ask("a/n", "s1"), 0}} {
		if got := l.Of(c.req); got != c.want {
			t.Errorf("%s in %s: %b, want %b", c.req.Model, c.req.CacheKey, got, c.want)
		}
	}
	for i := range maxSessions + 1 {
		l.Learn(ask("b/m", string(rune('a'+i))), refuse("signature thinking"))
	}
	if len(l.sessions) > maxSessions {
		t.Errorf("%d sessions are remembered", len(l.sessions))
	}
}
