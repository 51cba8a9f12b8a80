package gateway

import (
	"context"
	"strings"

	"parley/gateway/chat"
	"parley/store/record"
)

// stopPrefix begins the data of a live message's stop button; the turn follows.
const stopPrefix = "stop:"

// stopButton is shown below an answer that is still being written, where the
// platform's client has no stop of its own. It comes and goes with the messages that
// are posted anyway.
func stopButton(l chat.Limits, t record.TurnID) [][]chat.Button {
	if l.OwnStop || l.NoButtons {
		return nil
	}
	return [][]chat.Button{{{Label: "⏹ Stop", Data: stopPrefix + string(t), Style: chat.Danger}}}
}

// stopPressed is `/stop` for the turn that the button belongs to, and for no later
// one. A press that comes twice or too late says so.
func (c *conversation) stopPressed(ctx context.Context, it record.InboxItem, ev chat.ButtonPressed) {
	in := invocation{item: it, from: ev.Origin, role: c.roleOf(ctx, ev.From.ID)}
	switch turn := record.TurnID(strings.TrimPrefix(ev.Data, stopPrefix)); {
	case c.turn == nil || c.turn.row.ID != turn:
		c.ack(ev, "This has ended already.")
		c.end(ctx, "a stop button of an ended turn", record.NoEffect{}, nil, it)
	case c.turn.ending != "":
		c.ack(ev, "I am stopping already.")
		c.end(ctx, "the turn is being stopped already", record.NoEffect{}, nil, it)
	case !c.may(commands["stop"], in):
		c.ack(ev, "Only the person whose question this is, or an admin, may stop it.")
		c.end(ctx, "a button pressed by one who may not", record.NoEffect{}, nil, it)
	default:
		c.ack(ev, "")
		c.cmdStop(ctx, in)
	}
}
