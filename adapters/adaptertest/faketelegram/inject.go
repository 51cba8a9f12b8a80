package faketelegram

import (
	"encoding/json"
	"fmt"
)

// Incoming is what a person sends.
type Incoming struct {
	Chat    int64 // opened when it is not known yet
	From    User
	Text    string // the caption when there is a file
	Thread  int64  // marked as a topic's message when the chat has that topic
	ReplyTo int64
	Quote   string
	File    *File
	Album   string         // media_group_id
	Extra   map[string]any // further or other fields of the message; nil removes one
}

// Send delivers a person's text message. updateID is 0 when the bot does not ask for
// messages.
func (s *Server) Send(chatID int64, from User, text string) (updateID, messageID int64) {
	return s.Post(Incoming{Chat: chatID, From: from, Text: text})
}

// Post delivers a person's message of any kind. Commands, mentions and links in it
// get entities.
func (s *Server) Post(in Incoming) (updateID, messageID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.enter(in.Chat, in.From)
	m := &message{
		chat: c, thread: in.Thread, file: in.File, album: in.Album, quote: in.Quote, at: s.opt.now(), extra: in.Extra,
		body: content{text: in.Text, entities: detect(in.Text)},
	}
	if in.From.ID != 0 {
		from := in.From.named()
		m.from = &from
	}
	_, m.topic = c.topics[in.Thread]
	m.replyTo = c.messages[in.ReplyTo]
	if m.file != nil {
		s.world.keep(m.file)
	}
	s.world.add(m)
	kind := "message"
	if c.info.Type == "channel" {
		kind = "channel_post"
	}
	return s.enqueue(update{kind: kind, chat: c.id, message: m.id}, m), m.id
}

// Service delivers a service message with the given fields, for example
// {"forum_topic_created": …} (MEN-012).
func (s *Server) Service(chatID int64, from User, fields map[string]any) (updateID, messageID int64) {
	return s.Post(Incoming{Chat: chatID, From: from, Extra: fields})
}

// Edit delivers a person's edit of their message. The same text again is an edit of
// something that the bot does not see (MEN-011).
func (s *Server) Edit(chatID, messageID int64, text string) (updateID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known(chatID, messageID)
	m.body = content{text: text, entities: detect(text)}
	m.edited = s.opt.now()
	return s.enqueue(update{kind: "edited_message", chat: chatID, message: messageID}, m)
}

// Again delivers a person's message in a further update, as it is now (DUP-004).
func (s *Server) Again(chatID, messageID int64) (updateID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueue(update{kind: "message", chat: chatID, message: messageID}, s.known(chatID, messageID))
}

// known finds the message that a test speaks of; there must be one.
func (s *Server) known(chatID, messageID int64) *message {
	if c := s.world.chats[chatID]; c != nil {
		if m := c.messages[messageID]; m != nil {
			return m
		}
	}
	panic(fmt.Sprintf("faketelegram: chat %d has no message %d", chatID, messageID))
}

// Press delivers the press of a button under a message, whether the message has such
// a button or not.
func (s *Server) Press(chatID, messageID int64, data string, by User) (updateID int64, queryID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known(chatID, messageID)
	s.world.lastQuery++
	queryID = fmt.Sprintf("%d", 9_000_000_000+s.world.lastQuery)
	s.world.callbacks[queryID] = chatID
	return s.enqueue(update{kind: "callback_query", chat: chatID, message: messageID}, struct {
		ID       string   `json:"id"`
		From     User     `json:"from"`
		Message  *message `json:"message"`
		Instance string   `json:"chat_instance"`
		Data     string   `json:"data"`
	}{queryID, by.named(), m, fmt.Sprint(chatID), data}), queryID
}

// React delivers a person's reaction; no emoji takes it back.
func (s *Server) React(chatID, messageID int64, by User, emoji ...string) (updateID int64) {
	type reaction struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known(chatID, messageID)
	reactions := []reaction{}
	for _, e := range emoji {
		reactions = append(reactions, reaction{"emoji", e})
	}
	return s.enqueue(update{kind: "message_reaction", chat: chatID, message: messageID}, struct {
		Chat    wireChat   `json:"chat"`
		Message int64      `json:"message_id"`
		User    User       `json:"user"`
		Date    int64      `json:"date"`
		Old     []reaction `json:"old_reaction"`
		New     []reaction `json:"new_reaction"`
	}{m.chat.info, messageID, by.named(), s.opt.now().Unix(), []reaction{}, reactions})
}

// Remove deletes a message as a person does: without an update (STR-014).
func (s *Server) Remove(chatID, messageID int64) {
	s.mu.Lock()
	s.known(chatID, messageID).deleted = s.opt.now()
	s.mu.Unlock()
	s.notify(Change{Kind: MessageDeleted, Chat: chatID, Message: messageID})
}

// Migrate turns a group into a supergroup: both get their service message, and calls
// to the group are refused with the new id.
func (s *Server) Migrate(group, supergroup int64, by User) (updateIDs [2]int64) {
	s.mu.Lock()
	title := s.world.enter(group, by).info.Title
	s.mu.Unlock()
	s.Open(Room{ID: supergroup, Title: title})
	updateIDs[0], _ = s.Service(group, by, map[string]any{"migrate_to_chat_id": supergroup})
	updateIDs[1], _ = s.Service(supergroup, by, map[string]any{"migrate_from_chat_id": group})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.chats[group].migrated = supergroup
	return updateIDs
}

// Raw delivers any update. raw is an update's JSON object; its update_id, if there is
// one, is replaced by the next. Chats in it are opened, and its message exists from
// then on.
func (s *Server) Raw(raw string) (updateID int64) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		panic("faketelegram: raw update: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, body := range fields {
		if kind == "update_id" {
			continue
		}
		about := update{kind: kind}
		about.chat, about.message = s.learn(body)
		updateID = s.enqueue(about, body)
	}
	return updateID
}

// rawMessage is what the server needs to know of a message in a raw update.
type rawMessage struct {
	ID   int64    `json:"message_id"`
	Chat wireChat `json:"chat"`
	Text string   `json:"text"`
	From *User    `json:"from"`
}

// learn takes over the chat, the message and the query of a raw update, as far as
// they can be read.
func (s *Server) learn(body json.RawMessage) (chatID, messageID int64) {
	var about struct {
		rawMessage
		Query   json.RawMessage `json:"id"`
		Message *rawMessage     `json:"message"`
	}
	_ = json.Unmarshal(body, &about) // what has a wrong shape is the point of the test
	m := about.rawMessage
	if about.Message != nil {
		m = *about.Message
		var query string
		if json.Unmarshal(about.Query, &query) == nil {
			s.world.callbacks[query] = m.Chat.ID
		}
	}
	if m.Chat.ID == 0 {
		return 0, 0
	}
	c := s.world.chats[m.Chat.ID]
	if c == nil {
		c = s.world.open(Room{ID: m.Chat.ID, Type: m.Chat.Type, Title: m.Chat.Title, Forum: m.Chat.Forum})
	}
	if m.ID != 0 && c.messages[m.ID] == nil {
		c.messages[m.ID] = &message{id: m.ID, chat: c, from: m.From, at: s.opt.now(), body: content{text: m.Text}}
		if c.lastID = max(c.lastID, m.ID); c.info.Type == "private" || c.info.Type == "group" {
			s.world.lastID = max(s.world.lastID, m.ID)
		}
	}
	return c.id, m.ID
}
