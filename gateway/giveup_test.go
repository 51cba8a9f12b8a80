package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/gateway"
	"parley/gateway/gatewaytest"
	"parley/store/record"
)

// brokenTitles is a store in which one command always fails.
type brokenTitles struct{ gateway.Store }

var errBroken = errors.New("a bug")

func (b brokenTitles) EndItems(ctx context.Context, f record.Fence, items []record.InboxItem, reason string, e record.Effect, replies []record.Delivery) (record.Conversation, error) {
	if _, ok := e.(record.SetTitle); ok {
		return record.Conversation{}, errBroken
	}
	return b.Store.EndItems(ctx, f, items, reason, e, replies)
}

// One row that cannot be handled never holds up the rest for ever.
func TestARowThatKeepsFailingIsGivenUp(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(echo), gatewaytest.Options{
		Wrap: func(s gateway.Store) gateway.Store { return brokenTitles{s} },
	})
	h.Say(owner, "/title boom")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "a word about it", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && strings.Contains(ps[0].Out.Text, "internal error")
	})
	h.Say(owner, "still there?")
	h.Final(owner, "echo: still there?")
}
