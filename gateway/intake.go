package gateway

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

// noteLimit bounds best-effort calls: typing, reactions, acknowledgements.
const noteLimit = 5 * time.Second

// sink returns the account's way in. It returns once the event is durable, or
// refused for good.
func (g *Gateway) sink(a *account) chat.Sink {
	return func(ctx context.Context, ev chat.Event) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = g.panicked("intake", r)
			}
		}()
		switch ev := ev.(type) { // what the platform itself reports
		case chat.ConnectionChanged:
			a.connection(ev.State, ev.Reason)
			g.log.Info("connection", zap.String("account", string(a.id)), zap.String("state", string(ev.State)), zap.String("reason", ev.Reason))
			return nil
		case chat.ChatMoved:
			g.log.Info("a chat has moved", zap.String("account", string(a.id)), zap.String("from", string(ev.Address.Chat)), zap.String("to", string(ev.To)))
			return g.store.MoveChat(ctx, a.id, ev.Address.Chat, ev.To)
		}
		r, err := g.take(ctx, ev)
		if err != nil {
			return err
		}
		if r.Verdict.Pair {
			return g.requestPairing(ctx, a, ev.Meta(), r)
		}
		if r.Verdict.State == record.InboxRefused && !r.Verdict.Count {
			g.refused(ctx, a, ev, r)
		}
		return nil
	}
}

// take stores one event and wakes its conversation.
func (g *Gateway) take(ctx context.Context, ev chat.Event) (record.Receipt, error) {
	req := record.ReceiveRequest{Replica: g.replica(), Event: ev, Scope: g.cfg.Conversations.GroupScope, Model: g.deps.Model, PairingCode: newCode()}
	r, err := g.store.Receive(ctx, req, g.access.gate(ev))
	if err != nil {
		return r, fmt.Errorf("gateway: store an event: %w", err)
	}
	g.metrics.Received(ev.Meta().Address.Account, r)
	if r.Duplicate {
		return r, nil
	}
	killpoint.Here(killpoint.IntakeStored)
	if r.Mine {
		g.wake(r.Fence, &r.Item)
	}
	return r, nil
}

// refused answers what would else look broken to its sender: a native command and a
// press get a word that only they see, where the platform can, and a direct message
// that nobody may answer yet gets the next step, once. Everything else is refused in
// silence, with a reason in the database.
func (g *Gateway) refused(ctx context.Context, a *account, ev chat.Event, r record.Receipt) {
	o := ev.Meta()
	g.log.Info("refused", zap.String("account", string(a.id)), zap.String("person", string(o.From.ID)), zap.String("reason", r.Verdict.Reason))
	if r.Duplicate {
		return
	}
	const stranger = "I only answer people whom my owner knows."
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	var err error
	switch ev := ev.(type) {
	case chat.ButtonPressed:
		if acker, ok := a.adapter.(chat.ButtonAcker); ok {
			err = acker.AckButton(ctx, ev, stranger)
		}
	case chat.CommandInvoked:
		_, err = a.adapter.Send(ctx, o.Address, chat.Outgoing{Key: "stranger/" + string(o.Key), Text: stranger, Reply: o.Reply, Ephemeral: true})
	default:
		if r.Verdict.Reason != reasonNobodyOwned || !a.firstTime(o.From.ID) {
			return
		}
		_, err = a.adapter.Send(ctx, o.Address, chat.Outgoing{Key: "unowned/" + string(o.From.ID), Text: a.unowned(o.From.ID), Reply: o.Reply})
	}
	if err != nil {
		g.log.Warn("a stranger could not be told", zap.Error(err))
	}
}

// unowned is how the person who set the bot up comes to own it.
func (a *account) unowned(p chat.Person) string {
	way := ""
	if _, ok := a.adapter.(chat.Inviter); ok {
		way = "open the claim link that parley printed when it started, or "
	}
	return fmt.Sprintf("I have no owner yet. If that is you, %sput `%s` into `access.admins` of the configuration (or into `PARLEY_ALLOW`) and start parley again.", way, p)
}
