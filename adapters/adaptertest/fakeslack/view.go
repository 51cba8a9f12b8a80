package fakeslack

import (
	"context"
	"slices"
	"time"
)

// Message is a message as people see it.
type Message struct {
	TS        string
	Thread    string
	Text      string // what is read, without markup
	Notice    string // the text of notifications
	Markdown  string // of its markdown blocks
	Buttons   [][]Button
	File      *File
	Only      string // the one who sees it; empty: everybody
	Streaming bool
	Streamed  bool // it was written as a stream
	SentAt    time.Time
	EditedAt  time.Time // zero: never
	DeletedAt time.Time // zero: visible
	Versions  []Version // all that it said, the newest included
}

// Version is what a message said from a moment on.
type Version struct {
	Text string
	At   time.Time
}

// Button is a button below a message.
type Button struct{ Label, Value, Style string }

func (m *message) view(now time.Time) Message {
	v := Message{
		TS: m.ts, Thread: m.thread, Text: m.shown(), Notice: m.text, Buttons: m.buttons(), Only: m.only, Streaming: m.streaming(now), Streamed: m.stream != nil,
		SentAt: m.at, EditedAt: m.edited, DeletedAt: m.deleted, Versions: slices.Clone(m.versions),
	}
	for _, b := range m.blocks {
		if b.Type == "markdown" {
			v.Markdown += b.Text.Text
		}
	}
	if len(m.files) > 0 {
		v.File = &m.files[0].File
	}
	return v
}

// Messages lists the bot's messages of a conversation that are visible, what one
// person alone sees included, oldest first.
func (s *Server) Messages(channel string) []Message { return s.sent(channel, false) }

// Deleted lists the bot's messages that are not visible any more.
func (s *Server) Deleted(channel string) []Message { return s.sent(channel, true) }

func (s *Server) sent(channel string, deleted bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	if c := s.world.channels[channel]; c != nil {
		for _, m := range c.messages {
			if m.bot == BotID && m.subtype != "assistant_app_thread" && m.deleted.IsZero() != deleted {
				list = append(list, m.view(s.opt.now()))
			}
		}
	}
	return list
}

// Message finds a message of anybody, deleted ones included.
func (s *Server) Message(channel, ts string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.world.channels[channel]; c != nil && c.byTS[ts] != nil {
		return c.byTS[ts].view(s.opt.now()), true
	}
	return Message{}, false
}

// Reactions lists the bot's reactions to a message now.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	if c := s.world.channels[channel]; c != nil && c.byTS[ts] != nil {
		for name, users := range c.byTS[ts].reactions {
			if contains(users, BotUser) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// WaitMessage waits for a visible message of the bot, the newest first.
func (s *Server) WaitMessage(ctx context.Context, channel string, ok func(Message) bool) (found Message, err error) {
	err = s.Wait(ctx, func(s *Server) bool {
		for _, m := range slices.Backward(s.Messages(channel)) {
			if ok(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}
