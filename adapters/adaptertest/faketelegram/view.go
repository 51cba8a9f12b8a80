package faketelegram

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Chat asks about one chat. Its methods return copies of the moment.
type Chat struct {
	s  *Server
	id int64
}

// Message is a message as the people of the chat see it.
type Message struct {
	ID        int64
	Thread    int64
	Text      string // after parsing; the caption of a file
	HTML      string // as the bot sent it, when it was HTML
	Entities  []Entity
	Keyboard  [][]Button
	NoPreview bool
	File      *File
	ReplyTo   int64
	Quote     string
	SentAt    time.Time // the moment of the first visible text
	EditedAt  time.Time // the moment of the newest edit; zero: never
	DeletedAt time.Time // zero: visible
	Versions  []Version // all that it said, the first and the newest included
}

// Chat is a view of a chat, also of one that is not open yet.
func (s *Server) Chat(id int64) *Chat { return &Chat{s, id} }

// ID is the chat's id.
func (c *Chat) ID() int64 { return c.id }

func (m *message) view() Message {
	v := Message{
		ID: m.id, Thread: m.thread, Text: m.body.text, HTML: m.body.html, Entities: m.body.entities, Keyboard: m.body.keyboard,
		NoPreview: m.body.noPreview, File: m.file, Quote: m.quote, SentAt: m.at, EditedAt: m.edited, DeletedAt: m.deleted,
		Versions: slices.Clip(m.versions),
	}
	if m.replyTo != nil {
		v.ReplyTo = m.replyTo.id
	}
	return v
}

func (c *Chat) sent(deleted bool) []Message {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	state := c.s.world.chats[c.id]
	if state == nil {
		return nil
	}
	var list []Message
	for _, m := range state.sent {
		if m.deleted.IsZero() != deleted {
			list = append(list, m.view())
		}
	}
	return list
}

// Messages lists the bot's messages that are visible, oldest first.
func (c *Chat) Messages() []Message { return c.sent(false) }

// Deleted lists the bot's messages that are not visible any more, oldest first.
func (c *Chat) Deleted() []Message { return c.sent(true) }

// Texts lists the texts of Messages.
func (c *Chat) Texts() []string {
	var texts []string
	for _, m := range c.Messages() {
		texts = append(texts, m.Text)
	}
	return texts
}

// Last is the newest visible message of the bot.
func (c *Chat) Last() (Message, bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if state := c.s.world.chats[c.id]; state != nil {
		for _, m := range slices.Backward(state.sent) {
			if m.deleted.IsZero() {
				return m.view(), true
			}
		}
	}
	return Message{}, false
}

// Message finds a message of anybody by its id, deleted ones included.
func (c *Chat) Message(id int64) (Message, bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if state := c.s.world.chats[c.id]; state != nil && state.messages[id] != nil {
		return state.messages[id].view(), true
	}
	return Message{}, false
}

// Reactions lists the bot's reactions to a message now.
func (c *Chat) Reactions(messageID int64) []string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if state := c.s.world.chats[c.id]; state != nil {
		return slices.Clone(state.reactions[messageID])
	}
	return nil
}

// Actions lists the newest chat actions, at least the last hundred.
func (c *Chat) Actions() []Action {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if state := c.s.world.chats[c.id]; state != nil {
		return slices.Clone(state.actions)
	}
	return nil
}

// Drafts lists the previews on show; a message sent to the same thread ends them, and
// so do 30 seconds.
func (c *Chat) Drafts() []Draft {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if state := c.s.world.chats[c.id]; state != nil {
		return slices.DeleteFunc(slices.Clone(state.drafts), func(d Draft) bool { return c.s.opt.now().Sub(d.At) >= draftLife })
	}
	return nil
}

// Wait returns once ok is true of the chat, or with the error of ctx. It asks again
// after each change of this chat only. The chat must be open.
func (c *Chat) Wait(ctx context.Context, ok func(*Chat) bool) error {
	c.s.mu.Lock()
	state := c.s.world.chats[c.id]
	c.s.mu.Unlock()
	if state == nil {
		return fmt.Errorf("faketelegram: chat %d is not open", c.id)
	}
	return c.s.await(ctx, &state.changed, func() bool { return ok(c) })
}
