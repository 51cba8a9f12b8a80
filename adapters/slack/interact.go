package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/gateway/chat"
)

// ownCommand is the slash command that takes all others as its first word. It is
// there for the names that Slack keeps for itself.
const ownCommand = "parley"

// handle is what an answer needs to know about the event that it answers.
type handle struct {
	user, team string // the one who asked
	respond    string // where a command may be answered for half an hour, five times
}

func (h handle) encode() chat.ReplyHandle {
	if h.user == "" {
		return ""
	}
	return chat.ReplyHandle(strings.TrimRight(h.user+" "+h.team+" "+h.respond, " "))
}

func decodeHandle(r chat.ReplyHandle) handle {
	f := append(strings.SplitN(string(r), " ", 3), "", "", "")
	return handle{user: f[0], team: f[1], respond: f[2]}
}

// pressed decodes a press on a button; of other interactions there is none.
func (a *Adapter) pressed(ctx context.Context, payload json.RawMessage) ([]chat.Event, error) {
	var in struct {
		Type string `json:"type"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		Channel struct {
			ID string `json:"id"`
		} `json:"channel"`
		Container struct {
			Thread string `json:"thread_ts"`
			TS     string `json:"message_ts"`
		} `json:"container"`
		Message message `json:"message"`
		Actions []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
			TS    string `json:"action_ts"`
		} `json:"actions"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, fmt.Errorf("slack: interaction: %w", err)
	}
	if in.Type != "block_actions" || in.Channel.ID == "" || in.User.ID == "" {
		return nil, nil
	}
	m := in.Message
	if m.TS == "" {
		m.TS = in.Container.TS
	}
	if m.Thread == "" {
		m.Thread = in.Container.Thread
	}
	m.User, m.Bot, m.Subtype = in.User.ID, "", ""
	var evs []chat.Event
	for _, act := range in.Actions {
		if act.Type != "button" {
			continue
		}
		o := a.originOf(ctx, in.Channel.ID, "", &m, "press")
		o.Key = chat.EventKey(string(o.Key) + "/" + act.TS)
		o.Address.Thread, o.At, o.Threaded = chat.ThreadID(m.Thread), time.Now(), false
		evs = append(evs, chat.ButtonPressed{Origin: o, Data: act.Value, Ack: in.User.ID})
	}
	return evs, nil
}

// slash decodes a slash command. Slack has none in threads: there "!name" is a
// message like any other (CMD-002).
func (a *Adapter) slash(ctx context.Context, payload json.RawMessage) ([]chat.Event, error) {
	var in struct {
		Command string `json:"command"`
		Text    string `json:"text"`
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Trigger string `json:"trigger_id"`
		Respond string `json:"response_url"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, fmt.Errorf("slack: command: %w", err)
	}
	name, args := strings.ToLower(strings.TrimLeft(in.Command, "/")), strings.TrimSpace(in.Text)
	if name == ownCommand {
		name, args, _ = strings.Cut(args, " ")
		name, args = strings.ToLower(strings.TrimLeft(name, "/!")), strings.TrimSpace(args)
	}
	if name == "" {
		name = "help"
	}
	if in.Channel == "" || in.User == "" || in.Trigger == "" {
		return nil, fmt.Errorf("slack: a command without channel, user or trigger")
	}
	m := &message{User: in.User}
	o := a.originOf(ctx, in.Channel, "", m, "command")
	o.Key = chat.EventKey("command/" + in.Channel + "/" + in.Trigger)
	o.At, o.Message = time.Now(), ""
	o.Reply = handle{user: in.User, team: a.bot().TeamID, respond: in.Respond}.encode()
	return []chat.Event{chat.CommandInvoked{Origin: o, Name: name, Args: a.said(ctx, &message{Text: args}).text}}, nil
}
