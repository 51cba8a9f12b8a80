package fakeslack

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
)

// Incoming is a message that a person writes. Text is as Slack delivers it: escaped,
// with mentions as <@U…>.
type Incoming struct {
	Channel string
	From    User
	Thread  string
	Text    string
	File    *File
	Subtype string
	// Blocks is the raw "blocks" of the event, if it has any.
	Blocks json.RawMessage
	// Attachments is the raw "attachments": what somebody forwards is one.
	Attachments json.RawMessage
}

// Post lets a person write a message and returns its ts. The events go to the bot
// if it can see the conversation: `message`, and `app_mention` if it is named.
func (s *Server) Post(in Incoming) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.world.users[in.From.ID]; !known && in.From.ID != "" {
		s.world.users[in.From.ID] = in.From
	}
	c := s.world.channels[in.Channel]
	if c == nil {
		panic("fakeslack: the conversation " + in.Channel + " is not open")
	}
	now := s.opt.now()
	m := &message{ts: s.world.stamp(now), thread: in.Thread, user: in.From.ID, bot: in.From.Bot, subtype: in.Subtype, text: in.Text, at: now, attachments: in.Attachments}
	if in.File != nil {
		m.files, m.subtype = []*file{s.world.keep(s.root(), *in.File)}, "file_share"
	}
	c.add(m)
	if !c.Out {
		s.announce(c, m, in.Blocks)
	}
	s.changed.fire()
	return m.ts
}

// announce makes the events of a new message. The lock is held.
func (s *Server) announce(c *channel, m *message, blocks json.RawMessage) {
	ev := m.wire(&s.world, false)
	ev["channel"], ev["channel_type"], ev["event_ts"] = c.ID, c.Kind, m.ts
	if len(blocks) > 0 {
		ev["blocks"] = blocks
	}
	if m.thread != "" {
		if root := c.byTS[m.thread]; root != nil {
			ev["parent_user_id"] = root.user
		}
	}
	s.event(ev)
	if c.Kind != IM && m.user != BotUser && strings.Contains(m.text, "<@"+BotUser+">") {
		mention := maps.Clone(ev)
		mention["type"] = "app_mention"
		delete(mention, "channel_type")
		delete(mention, "subtype")
		s.event(mention)
	}
}

// event wraps an inner event and makes it due. The lock is held.
func (s *Server) event(inner map[string]any) {
	s.due("events_api", map[string]any{
		"token": "legacy-verification-token", "team_id": TeamID, "api_app_id": AppID, "type": "event_callback",
		"event_id": s.world.id("Ev"), "event_time": s.opt.now().Unix(), "event": inner,
	})
}

// Say posts a text in a direct conversation or a room.
func (s *Server) Say(channel string, from User, text string) string {
	return s.Post(Incoming{Channel: channel, From: from, Text: text})
}

// Again delivers the events of a message once more, in new envelopes (DUP-001).
func (s *Server) Again(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channel]
	s.announce(c, c.byTS[ts], nil)
}

// Edit changes a person's message; the same text is what an unfurled link looks
// like (MEN-003).
func (s *Server) Edit(channel, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channel]
	m := c.byTS[ts]
	before := m.wire(&s.world, false)
	if text != m.text {
		m.text, m.edited = text, s.opt.now()
	}
	s.tellChanged(c, m, before)
	s.changed.fire()
}

// tellChanged makes the event of a changed message. The lock is held.
func (s *Server) tellChanged(c *channel, m *message, before map[string]any) {
	stamp := s.world.stamp(s.opt.now())
	s.event(map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": c.ID, "channel_type": c.Kind, "ts": stamp, "event_ts": stamp,
		"message": m.wire(&s.world, false), "previous_message": before,
	})
}

// Remove deletes a message of anybody.
func (s *Server) Remove(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channel]
	s.remove(c, c.byTS[ts])
	s.changed.fire()
}

func (s *Server) remove(c *channel, m *message) {
	before := m.wire(&s.world, false)
	m.deleted = s.opt.now()
	stamp := s.world.stamp(s.opt.now())
	s.event(map[string]any{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": c.ID, "channel_type": c.Kind, "ts": stamp, "event_ts": stamp,
		"deleted_ts": m.ts, "previous_message": before,
	})
}

// Press presses the button with that value below a message; one that is gone by now
// cannot be pressed, and nothing happens.
func (s *Server) Press(channel, ts, value string, who User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channel]
	m := c.byTS[ts]
	stamp := s.world.stamp(s.opt.now())
	for _, b := range m.blocks {
		for _, e := range b.Elements {
			if e.Type != "button" || e.Value != value {
				continue
			}
			shown := m.wire(&s.world, false)
			shown["app_id"] = AppID
			s.due("interactive", map[string]any{
				"type": "block_actions", "team": map[string]string{"id": TeamID}, "user": map[string]string{"id": who.ID, "username": who.Name, "team_id": TeamID},
				"api_app_id": AppID, "trigger_id": s.world.id("Tr"), "response_url": s.hook(channel, who.ID),
				"container": map[string]any{"type": "message", "message_ts": ts, "channel_id": channel, "thread_ts": m.thread, "is_ephemeral": m.only != ""},
				"channel":   map[string]string{"id": channel, "name": c.Name}, "message": shown,
				"actions": []map[string]any{{"type": "button", "action_id": e.ActionID, "block_id": b.BlockID, "value": value, "action_ts": stamp, "text": e.Text}},
			})
			s.changed.fire()
			return
		}
	}
}

// Command invokes a slash command; Slack has none in threads (CMD-002).
func (s *Server) Command(channel string, who User, command, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.world.users[who.ID]; !known {
		s.world.users[who.ID] = who
	}
	c := s.world.channels[channel]
	name := c.Name
	if c.Kind == IM {
		name = "directmessage"
	}
	s.due("slash_commands", map[string]any{
		"token": "legacy-verification-token", "team_id": TeamID, "team_domain": "fake", "channel_id": channel, "channel_name": name, "user_id": who.ID,
		"user_name": who.Name, "command": command, "text": text, "api_app_id": AppID, "is_enterprise_install": "false",
		"response_url": s.hook(channel, who.ID), "trigger_id": s.world.id("Tr"),
	})
	s.changed.fire()
}

func (s *Server) hook(channel, user string) string {
	id := s.world.id("H")
	s.world.hooks[id] = &hook{channel: channel, user: user}
	return s.root() + "/hook/" + id
}

// StartAssistant opens a thread in the assistant pane and returns it.
func (s *Server) StartAssistant(who User) (channel, thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel = s.world.im(who)
	c := s.world.channels[channel]
	now := s.opt.now()
	root := &message{ts: s.world.stamp(now), user: BotUser, bot: BotID, subtype: "assistant_app_thread", text: "New assistant thread", at: now}
	c.add(root)
	stamp := s.world.stamp(now)
	s.event(map[string]any{
		"type": "assistant_thread_started", "event_ts": stamp,
		"assistant_thread": map[string]any{"user_id": who.ID, "channel_id": channel, "thread_ts": root.ts, "context": map[string]any{}},
	})
	s.changed.fire()
	return channel, root.ts
}

// PressStop is Slack's own stop control of an agent session. Slack stops the streams
// of the thread; the rest is the bot's to do.
func (s *Server) PressStop(channel, thread string, who User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := []string{}
	for _, m := range s.world.channels[channel].messages {
		if m.thread == thread && m.streaming(s.opt.now()) {
			m.stream.until = s.opt.now()
			stopped = append(stopped, m.ts)
		}
	}
	s.event(map[string]any{
		"type": "agent_session_stopped", "channel": channel, "thread_ts": thread, "user": who.ID, "event_ts": s.world.stamp(s.opt.now()),
		"streaming_message_ts": stopped,
	})
	s.changed.fire()
}

// Raw makes any inner event due.
func (s *Server) Raw(inner map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.event(inner)
}

// Number is the number in a ts, for comparing.
func Number(ts string) float64 {
	n, _ := strconv.ParseFloat(ts, 64)
	return n
}

// Begin puts a root at a ts of the caller's choice into a conversation: a thread of
// the assistant pane whose ts is known beforehand. No event tells of it.
func (s *Server) Begin(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.world.channels[channel]; c.byTS[ts] == nil {
		c.add(&message{ts: ts, user: BotUser, bot: BotID, subtype: "assistant_app_thread", at: s.opt.now()})
	}
}
