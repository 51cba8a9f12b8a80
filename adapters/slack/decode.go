package slack

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/gateway/chat"
)

// The kinds of envelopes, as Socket Mode names them.
const (
	kindEvents      = "events_api"
	kindInteractive = "interactive"
	kindSlash       = "slash_commands"
)

// message is a message as events, histories and interactions show it: only what
// the bot needs, so that a strange block or field never keeps the rest from being
// read.
type message struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Channel     json.RawMessage `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	Bot         string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	Thread      string          `json:"thread_ts"`
	Edited      *struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments []attachment    `json:"attachments"`
	Files       []wireFile      `json:"files"`
	Metadata    *metadata       `json:"metadata"`
}

// attachment is a legacy attachment; messages that people forward are ones too.
type attachment struct {
	Fallback string          `json:"fallback"`
	Text     string          `json:"text"`
	Share    bool            `json:"is_share"`
	Unfurl   bool            `json:"is_msg_unfurl"`
	Author   string          `json:"author_id"`
	Name     string          `json:"author_name"`
	TS       json.RawMessage `json:"ts"`
}

// inner is the event inside an envelope.
type inner struct {
	message
	DeletedTS string   `json:"deleted_ts"`
	Message   *message `json:"message"`
	Previous  *message `json:"previous_message"`
	EventTS   string   `json:"event_ts"`
	// of what has no message
	Tab       string `json:"tab"`
	Assistant *struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"assistant_thread"`
}

// events turns an envelope into the events that it stands for; none if it holds
// nothing for the bot. It is a door: what makes the code panic is something that
// cannot be read, since it would come again for ever.
func (a *Adapter) events(ctx context.Context, kind string, payload json.RawMessage) (evs []chat.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			evs, err = nil, fmt.Errorf("slack: event: panic: %v", r)
		}
	}()
	switch kind {
	case kindEvents:
		var outer struct {
			Event json.RawMessage `json:"event"`
		}
		if err := json.Unmarshal(payload, &outer); err != nil {
			return nil, fmt.Errorf("slack: event: %w", err)
		}
		var ev inner
		if err := json.Unmarshal(outer.Event, &ev); err != nil {
			return nil, fmt.Errorf("slack: event: %w", err)
		}
		return a.inner(ctx, ev), nil
	case kindInteractive:
		return a.pressed(ctx, payload)
	case kindSlash:
		return a.slash(ctx, payload)
	}
	return nil, fmt.Errorf("slack: unknown kind of envelope %q", kind)
}

func (a *Adapter) inner(ctx context.Context, ev inner) []chat.Event {
	switch ev.Type {
	case "message", "app_mention":
		channel := rawString(ev.Channel)
		switch ev.Subtype {
		case "message_changed":
			return a.changed(ctx, channel, ev)
		case "message_deleted":
			return a.removed(ctx, channel, ev)
		}
		return a.received(ctx, channel, ev.ChannelType, ev.message)
	case "assistant_thread_started":
		if t := ev.Assistant; t != nil {
			a.suggest(ctx, t.Channel, t.Thread)
		}
	case "app_home_opened":
		if ev.Tab == "messages" {
			a.suggest(ctx, rawString(ev.Channel), "")
		}
	case "agent_session_stopped":
		return a.stopped(ctx, ev)
	}
	return nil
}

// rawString reads a JSON string; anything else is empty.
func rawString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// says are the subtypes that carry what somebody says; the others are the
// platform's own notes (ATT-001).
var carries = []string{"", "file_share", "thread_broadcast", "me_message", "bot_message"}

// mine says whether a message is the bot's own.
func (a *Adapter) mine(m *message) bool {
	bot := a.bot()
	return m.User != "" && m.User == bot.UserID || m.Bot != "" && m.Bot == bot.BotID
}

// directChat says whether a conversation is one person's with the bot.
func directChat(channel, channelType string) bool {
	return channelType == "im" || channelType == "" && strings.HasPrefix(channel, "D")
}

// originOf is what the events of a message share; the key is made of the platform's
// own stable ids. In a channel every message belongs to a thread: to the one that it
// stands in, or to the one that it may begin (THR-003).
func (a *Adapter) originOf(ctx context.Context, channel, channelType string, m *message, kind string) chat.Origin {
	o := chat.Origin{
		Key:     chat.EventKey(kind + "/" + channel + "/" + m.TS),
		Address: chat.Address{Account: a.account, Chat: chat.ChatID(channel), Thread: chat.ThreadID(m.Thread)},
		Kind:    chat.Group, At: instant(m.TS), Message: chat.MessageID(m.TS),
		Reply: handle{user: m.User, team: a.bot().TeamID}.encode(),
	}
	if directChat(channel, channelType) {
		o.Kind = chat.Direct
	} else if o.Threaded = m.Thread != "" && m.Thread != m.TS; m.Thread == "" {
		o.Address.Thread = chat.ThreadID(m.TS)
	}
	o.From = a.sender(ctx, m)
	return o
}

// sender is who wrote a message. A message without one is nobody's who could be
// authorised.
func (a *Adapter) sender(ctx context.Context, m *message) chat.User {
	switch {
	case m.User != "":
		return chat.User{ID: person(m.User), Name: a.people.name(ctx, m.User), Bot: m.Bot != "" || m.Subtype == "bot_message"}
	case m.Bot != "":
		return chat.User{ID: person(m.Bot), Bot: true}
	}
	return chat.User{ID: "slack:unknown", Shared: true}
}

func person(id string) chat.Person { return chat.Person("slack:" + id) }

// instant is the moment of a ts.
func instant(ts string) time.Time {
	seconds, fraction, _ := strings.Cut(ts, ".")
	s, _ := strconv.ParseInt(seconds, 10, 64)
	us, _ := strconv.ParseInt(fraction, 10, 64)
	return time.Unix(s, us*1000)
}

// received decodes a new message. The two events of a mention give the same event
// with the same key.
func (a *Adapter) received(ctx context.Context, channel, channelType string, m message) []chat.Event {
	if channel == "" || m.TS == "" || !slices.Contains(carries, m.Subtype) || a.mine(&m) {
		return nil
	}
	ev := chat.MessageReceived{Origin: a.originOf(ctx, channel, channelType, &m, "message")}
	said := a.said(ctx, &m)
	ev.Text, ev.Files, ev.Quote = said.text, attachments(m.Files), a.quote(ctx, &m)
	ev.ForBot = ev.Kind == chat.Direct || said.mentioned
	ev.AtLimit = length(ev.Text) >= splitFrom*9/10
	if ev.Text == "" && len(ev.Files) == 0 && ev.Quote == nil && !said.mentioned {
		return nil
	}
	return []chat.Event{ev}
}

// changed decodes an edit. Slack also reports unfurled links and the bot's own edits
// as changes: what says the same is none (MEN-003).
func (a *Adapter) changed(ctx context.Context, channel string, ev inner) []chat.Event {
	m, was := ev.Message, ev.Previous
	if m == nil || m.TS == "" || a.mine(m) || !slices.Contains(carries, m.Subtype) {
		return nil
	}
	now := a.said(ctx, m)
	if was != nil && a.said(ctx, was) == now {
		return nil
	}
	o := a.originOf(ctx, channel, ev.ChannelType, m, "edit")
	version := ""
	if m.Edited != nil {
		version = m.Edited.TS
	}
	sum := sha256.Sum256([]byte(now.text))
	o.Key = chat.EventKey(fmt.Sprintf("%s/%s/%x", o.Key, version, sum[:8]))
	return []chat.Event{chat.MessageEdited{Origin: o, Text: now.text, ForBot: o.Kind == chat.Direct || now.mentioned}}
}

// removed decodes a deletion.
func (a *Adapter) removed(ctx context.Context, channel string, ev inner) []chat.Event {
	m := ev.Previous
	if m == nil || ev.DeletedTS == "" || a.mine(m) {
		return nil
	}
	m.TS = ev.DeletedTS
	return []chat.Event{chat.MessageDeleted{Origin: a.originOf(ctx, channel, ev.ChannelType, m, "delete")}}
}

// stopped decodes Slack's own stop control. The session's state is the bot's to set.
func (a *Adapter) stopped(ctx context.Context, ev inner) []chat.Event {
	channel := rawString(ev.Channel)
	if channel == "" || ev.User == "" {
		return nil
	}
	m := &message{User: ev.User, TS: ev.EventTS, Thread: ev.Thread}
	o := a.originOf(ctx, channel, ev.ChannelType, m, "stop")
	o.Address.Thread, o.Message, o.Threaded = chat.ThreadID(ev.Thread), "", false
	a.sessionIdle(ctx, channel, ev.Thread)
	return []chat.Event{chat.StopPressed{Origin: o}}
}
