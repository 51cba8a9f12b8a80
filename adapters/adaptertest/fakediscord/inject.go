package fakediscord

import (
	"context"
	"regexp"
	"slices"
	"time"
)

// mentionPattern finds mentions of people and roles as they are written.
var mentionPattern = regexp.MustCompile(`<(@!?|@&)([0-9]{15,20})>`)

// SayOption changes a message that a person says.
type SayOption func(*Server, *Message)

// ReplyTo makes it a reply. As in Discord, it mentions the author of that message.
func ReplyTo(id string) SayOption {
	return func(s *Server, m *Message) {
		m.Reference, m.kind = id, 19
		if ref := s.world.channels[m.Channel].byID[id]; ref != nil {
			m.Mentions = append(m.Mentions, ref.Author)
		}
	}
}

// Forward makes it a forward of a message with that text.
func Forward(of, text string) SayOption {
	return func(_ *Server, m *Message) { m.Reference, m.Snapshot = of, text }
}

// WithFile attaches a file.
func WithFile(name, mime string, content []byte) SayOption {
	return func(s *Server, m *Message) {
		m.Attachments = append(m.Attachments, s.stored(Attachment{Filename: name, MIME: mime, content: content}))
	}
}

// AsVoice marks it as a voice message.
func AsVoice() SayOption { return func(_ *Server, m *Message) { m.Flags |= flagVoice } }

// ByWebhook makes it one of a webhook.
func ByWebhook(id string) SayOption { return func(_ *Server, m *Message) { m.Webhook = id } }

// OfType gives it one of Discord's numbers for service messages, such as 7 for a
// person who joined.
func OfType(kind int) SayOption { return func(_ *Server, m *Message) { m.kind = kind } }

// Say posts a message of a person and returns its id.
func (s *Server) Say(channelID string, by User, text string, opts ...SayOption) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channelID]
	m := &Message{Channel: c.id, Author: by, Content: text}
	m.Mentions, m.Roles = s.mentioned(text)
	for _, o := range opts {
		o(s, m)
	}
	s.put(c, m)
	return m.ID
}

// EditAs changes a person's message.
func (s *Server) EditAs(channelID, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channelID]
	m := c.byID[id]
	m.Content, m.Edited = text, s.opt.now()
	m.Mentions, m.Roles = s.mentioned(text)
	s.tell(c, "MESSAGE_UPDATE", m)
	s.touch()
}

// Again delivers a message once more, to whoever is connected.
func (s *Server) Again(channelID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channelID]
	s.tell(c, "MESSAGE_CREATE", c.byID[id])
}

// Taken returns once the bot has taken in everything before: it is sent a message of a
// channel that it does not know, and has to ask for that. It takes in one event after
// the other.
func (s *Server) Taken(ctx context.Context) error {
	if err := s.Wait(ctx, func() bool { return s.Link().Connected }); err != nil {
		return err
	}
	s.mu.Lock()
	id := s.snowflake()
	s.dispatch(intentMessages, "MESSAGE_CREATE", object{"id": s.snowflake(), "channel_id": id, "guild_id": "1", "content": "?", "author": botUser()})
	s.mu.Unlock()
	return s.Wait(ctx, func() bool { return len(s.Calls("GET", "/channels/"+id)) > 0 })
}

// Unfurl is the MESSAGE_UPDATE that follows when Discord has made an embed of a link:
// nothing that a person did.
func (s *Server) Unfurl(channelID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channelID]
	s.tell(c, "MESSAGE_UPDATE", c.byID[id])
}

// DeleteAs removes a message.
func (s *Server) DeleteAs(channelID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channelID]
	s.remove(c, c.byID[id])
}

// tell dispatches an event about a message, with what the gateway adds to it.
func (s *Server) tell(c *channel, event string, m *Message) {
	if m.Ephemeral {
		return
	}
	intent := intentDirect
	if c.guild != "" {
		intent = intentMessages
	}
	s.each(intent, func(x *session) {
		o := s.messageJSON(m, x.intents)
		if c.guild != "" {
			o["guild_id"] = c.guild
			if m.Webhook == "" {
				o["member"] = object{"roles": orEmpty(slices.Clone(s.world.roles[m.Author.ID])), "nick": nil}
			}
		}
		if event == "MESSAGE_CREATE" && m.Nonce != "" {
			o["nonce"] = m.Nonce
		}
		x.send(event, o)
		if x.conn != nil && m.Author.ID != BotID {
			s.change(HandedOut, c.id, "")
		}
	})
}

// Advance makes all ids from now on later by d, as if so much time had passed.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}
