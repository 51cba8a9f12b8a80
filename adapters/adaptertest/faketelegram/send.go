package faketelegram

import (
	"slices"
	"strings"
)

func (s *Server) sendMessage(r *request) (any, error) {
	body, err := s.content(r, "text")
	if err != nil {
		return nil, err
	}
	return s.send(r, body, nil)
}

func (s *Server) sendDocument(r *request) (any, error) { return s.sendFile(r, "document") }

func (s *Server) sendPhoto(r *request) (any, error) { return s.sendFile(r, "photo") }

func (s *Server) sendFile(r *request, kind string) (any, error) {
	body, err := s.content(r, "caption")
	if err != nil {
		return nil, err
	}
	f, err := s.fileOf(r, kind)
	if err != nil {
		return nil, err
	}
	return s.send(r, body, f)
}

// send creates a message of the bot.
func (s *Server) send(r *request, body content, f *File) (any, error) {
	var err error
	if body.keyboard, err = keyboard(r, false); err != nil {
		return nil, err
	}
	s.mu.Lock()
	m, err := s.create(r, body, f)
	var wire *wireMessage
	if err == nil {
		wire = m.wire(false)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.notify(Change{Kind: MessageSent, Chat: m.chat.id, Message: m.id, Text: body.text})
	return wire, nil
}

func (s *Server) create(r *request, body content, f *File) (*message, error) {
	c, err := s.world.reach(r.params["chat_id"])
	if err != nil {
		return nil, err
	}
	if err := s.spend(c); err != nil {
		return nil, err
	}
	thread := r.int("message_thread_id")
	if err := c.checkThread(thread, false); err != nil {
		return nil, err
	}
	m := &message{chat: c, thread: thread, fromBot: true, file: f, at: s.opt.now()}
	_, m.topic = c.topics[thread]
	if err := m.answer(r); err != nil {
		return nil, err
	}
	if c.info.Type != "channel" {
		bot := s.bot()
		m.from = &bot
	}
	if f != nil {
		s.world.keep(f)
	}
	m.show(body, m.at, !s.opt.noHistory)
	s.world.add(m)
	c.sent = append(c.sent, m)
	c.drafts = slices.DeleteFunc(c.drafts, func(d Draft) bool { return d.Thread == thread })
	return m, nil
}

// add gives a message its id and puts it into its chat.
func (w *world) add(m *message) {
	m.id = w.nextID(m.chat)
	m.chat.messages[m.id] = m
}

// answer resolves reply_parameters.
func (m *message) answer(r *request) error {
	var reply struct {
		Message int64  `json:"message_id"`
		Chat    any    `json:"chat_id"`
		Anyway  bool   `json:"allow_sending_without_reply"`
		Quote   string `json:"quote"`
		Mode    string `json:"quote_parse_mode"`
	}
	r.json("reply_parameters", &reply)
	if reply.Message == 0 {
		return nil
	}
	to := m.chat.messages[reply.Message]
	switch {
	case (to == nil || !to.deleted.IsZero()) && reply.Anyway:
		return nil
	case to == nil || !to.deleted.IsZero():
		return badRequest("message to be replied not found")
	}
	if strings.EqualFold(reply.Mode, "html") {
		text, _, err := parseHTML(reply.Quote)
		if err != nil {
			return badRequest("can't parse entities: %s", err)
		}
		reply.Quote = text
	}
	if !strings.Contains(to.body.text, reply.Quote) {
		return badRequest("QUOTE_TEXT_INVALID")
	}
	m.replyTo, m.quote = to, reply.Quote
	if m.thread == 0 && to.topic {
		m.thread, m.topic = to.thread, true // an answer stays in the topic
	}
	return nil
}

// own finds a message that the bot may change.
func (s *Server) own(r *request, what string) (*message, error) {
	c, err := s.world.reach(r.params["chat_id"])
	if err != nil {
		return nil, err
	}
	m := c.messages[r.int("message_id")]
	switch {
	case m == nil || !m.deleted.IsZero():
		return nil, badRequest("message to %s not found", what)
	case what == "delete" && !m.fromBot && c.info.Type != "private" && !c.admin:
		return nil, badRequest("message can't be deleted")
	case what == "edit" && !m.fromBot:
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

func (s *Server) editMessageText(r *request) (any, error) {
	if r.params["chat_id"] == "" {
		return nil, missing("chat_id")
	}
	body, err := s.content(r, "text")
	if err == nil {
		body.keyboard, err = keyboard(r, true)
	}
	if err != nil {
		return nil, err
	}
	return s.edit(r, func(m *message) (content, error) {
		if m.file != nil {
			return body, badRequest("there is no text in the message to edit")
		}
		return body, nil
	})
}

func (s *Server) editMessageReplyMarkup(r *request) (any, error) {
	if r.params["chat_id"] == "" {
		return nil, missing("chat_id")
	}
	rows, err := keyboard(r, true)
	if err != nil {
		return nil, err
	}
	return s.edit(r, func(m *message) (content, error) {
		body := m.body
		body.keyboard = rows
		return body, nil
	})
}

// edit changes a message to what next makes of it. An edit without reply_markup
// takes the keyboard away, as on the real server.
func (s *Server) edit(r *request, next func(*message) (content, error)) (any, error) {
	s.mu.Lock()
	m, err := s.change(r, next)
	var wire *wireMessage
	var text string
	if err == nil {
		wire, text = m.wire(false), m.body.text
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.notify(Change{Kind: MessageEdited, Chat: m.chat.id, Message: m.id, Text: text})
	return wire, nil
}

func (s *Server) change(r *request, next func(*message) (content, error)) (*message, error) {
	c, err := s.world.reach(r.params["chat_id"])
	if err != nil {
		return nil, err
	}
	if err := s.spend(c); err != nil {
		return nil, err
	}
	if r.params["message_id"] == "" {
		return nil, missing("message_id")
	}
	m, err := s.own(r, "edit")
	if err != nil {
		return nil, err
	}
	body, err := next(m)
	if err != nil {
		return nil, err
	}
	if m.body.same(body) {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.edited = s.opt.now()
	m.show(body, m.edited, !s.opt.noHistory)
	return m, nil
}

func (s *Server) deleteMessage(r *request) (any, error) {
	s.mu.Lock()
	m, err := s.own(r, "delete")
	if err == nil {
		m.deleted = s.opt.now()
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.notify(Change{Kind: MessageDeleted, Chat: m.chat.id, Message: m.id})
	return true, nil
}

func (s *Server) setMessageReaction(r *request) (any, error) {
	var reactions []struct{ Type, Emoji string }
	r.json("reaction", &reactions)
	if len(reactions) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	var emoji []string
	for _, x := range reactions {
		if x.Type != "emoji" || !slices.Contains(s.spec.Reactions, x.Emoji) {
			return nil, badRequest("REACTION_INVALID")
		}
		emoji = append(emoji, x.Emoji)
	}
	s.mu.Lock()
	m, err := s.own(r, "react")
	if err == nil {
		m.chat.reactions[m.id] = emoji
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.notify(Change{Kind: ReactionSet, Chat: m.chat.id, Message: m.id, Text: strings.Join(emoji, "")})
	return true, nil
}

func (s *Server) sendMessageDraft(r *request) (any, error) {
	d := Draft{ID: r.int("draft_id"), Thread: r.int("message_thread_id"), At: s.opt.now()}
	if d.ID == 0 {
		return nil, badRequest("draft_id must be non-zero")
	}
	if r.params["text"] != "" {
		body, err := s.content(r, "text")
		if err != nil {
			return nil, err
		}
		d.Text, d.HTML = body.text, body.html
	}
	s.mu.Lock()
	c, err := s.world.reach(r.params["chat_id"])
	switch {
	case err != nil:
	case c.info.Type != "private":
		err = badRequest("TEXTDRAFT_PEER_INVALID")
	default:
		err = c.checkThread(d.Thread, false)
	}
	if err == nil {
		c.draft(d)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.notify(Change{Kind: DraftShown, Chat: c.id, Text: d.Text})
	return true, nil
}

func (c *chat) draft(d Draft) {
	i := slices.IndexFunc(c.drafts, func(o Draft) bool { return o.ID == d.ID && o.Thread == d.Thread })
	if i < 0 {
		c.drafts = append(c.drafts, d)
		i = len(c.drafts) - 1
	} else {
		d.Updates = c.drafts[i].Updates
		c.drafts[i] = d
	}
	c.drafts[i].Updates++
}

func (s *Server) answerCallbackQuery(r *request) (any, error) {
	if length(r.params["text"]) > 200 {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	id := r.params["callback_query_id"]
	s.mu.Lock()
	chatID, known := s.world.callbacks[id]
	if known {
		s.record.callbacks = append(s.record.callbacks, CallbackAnswer{id, r.params["text"], r.bool("show_alert"), s.opt.now()})
	}
	s.mu.Unlock()
	if !known {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	s.notify(Change{Kind: CallbackAnswered, Chat: chatID, Text: r.params["text"]})
	return true, nil
}
