package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

// summarising says whether a request asks for a summary.
func summarising(r *llm.Request) bool { return strings.HasPrefix(r.System, "You write the summary") }

// standing is where the only conversation stands.
func standing(t *testing.T, db *store.DB) (record.Conversation, record.Session) {
	t.Helper()
	all, err := db.Conversations(t.Context(), 2)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d conversations, %v", len(all), err)
	}
	s, err := db.Session(t.Context(), all[0].Session)
	if err != nil {
		t.Fatal(err)
	}
	return all[0], s
}

// talk makes a conversation that is long enough to be compressed.
func talk(t *testing.T, h *gatewaytest.Harness) {
	t.Helper()
	for range 12 {
		h.Platform.AwaitReaction(t, h.Say(owner, "tell me more"), chat.ReactDone)
	}
}

// CMP-011: a failed summary costs a growing wait, also across a restart, and never
// the command; it changes nothing.
func TestFailedCompressionsWaitLongerAcrossARestart(t *testing.T) {
	db, p := storetest.New(t), gatewaytest.NewPlatform(chat.Limits{})
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if summarising(r) {
			return &llm.Error{Kind: llm.KindOverloaded, Status: 529, Message: "busy"}
		}
		return echo(ctx, r, say)
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Store: db, Platform: p})
	talk(t, h)
	_, s := standing(t, db)
	before, err := db.History(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{60 * time.Second, 300 * time.Second, 900 * time.Second} {
		if i > 0 {
			h.Stop()
			h = gatewaytest.New(t, m, gatewaytest.Options{Store: db, Platform: p})
		}
		begun := time.Now()
		posts := len(p.Posts(""))
		h.Say(owner, "/compress")
		p.Await(t, "", "a word about the failure", func(ps []gatewaytest.Post) bool {
			return len(ps) > posts && strings.Contains(ps[len(ps)-1].Out.Text, "Nothing was compressed")
		})
		_, s = standing(t, db)
		if wait := s.CoolUntil.Sub(begun); wait < want-time.Second || wait > want+time.Minute || s.FailedCompressions != i+1 {
			t.Errorf("failure %d: %d counted, waits %s, want %s", i+1, s.FailedCompressions, wait, want)
		}
	}
	after, err := db.History(t.Context(), s.ID)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Error("the transcript has changed", err, diff)
	}
}

// CMP-004: a summary that /stop ends changes nothing, costs no cooldown, and the
// conversation goes on.
func TestStoppedCompressionChangesNothing(t *testing.T) {
	db := storetest.New(t)
	begun := make(chan struct{}, 1)
	m := gatewaytest.NewModel(func(ctx context.Context, r *llm.Request, say func(llm.Event) bool) error {
		if !summarising(r) {
			return echo(ctx, r, say)
		}
		say(llm.TextDelta{Text: "## Goal\nhalf a summ"})
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	h := gatewaytest.New(t, m, gatewaytest.Options{Store: db})
	talk(t, h)
	_, s := standing(t, db)
	before, err := db.History(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	h.Say(owner, "/compress")
	<-begun
	h.Say(owner, "/stop")
	h.Platform.Await(t, "", "the end of the compression", func(ps []gatewaytest.Post) bool {
		return strings.Contains(ps[len(ps)-1].Out.Text, "nothing has changed") || strings.Contains(ps[len(ps)-2].Out.Text, "nothing has changed")
	})
	_, now := standing(t, db)
	after, err := db.History(t.Context(), now.ID)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Error("the transcript has changed", err, diff)
	}
	if diff := cmp.Diff(s, now); diff != "" {
		t.Error("the session has changed", diff)
	}
	h.Say(owner, "still there?")
	h.Final(owner, "echo: still there?")
}
