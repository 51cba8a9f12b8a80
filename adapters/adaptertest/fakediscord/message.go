package fakediscord

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Row is a row of buttons.
type Row struct {
	Type       int      `json:"type"`
	Components []Button `json:"components"`
}

// Button is a button as Discord knows it.
type Button struct {
	Type     int    `json:"type"`
	Style    int    `json:"style"`
	Label    string `json:"label,omitempty"`
	CustomID string `json:"custom_id,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
	URL      string `json:"url,omitempty"`
}

// content is the body of a message that is made or changed.
type content struct {
	Content         *string  `json:"content"`
	Nonce           any      `json:"nonce"`
	EnforceNonce    bool     `json:"enforce_nonce"`
	TTS             bool     `json:"tts"`
	Embeds          []object `json:"embeds"`
	AllowedMentions *struct {
		Parse       []string `json:"parse"`
		Users       []string `json:"users"`
		Roles       []string `json:"roles"`
		RepliedUser bool     `json:"replied_user"`
	} `json:"allowed_mentions"`
	Reference *struct {
		Type      int    `json:"type"`
		Message   string `json:"message_id"`
		Channel   string `json:"channel_id"`
		Guild     string `json:"guild_id"`
		FailIfNot *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Components  []Row    `json:"components"`
	Flags       int      `json:"flags"`
	Attachments []object `json:"attachments"`
}

const (
	maxText      = 2000 // code points
	maxFiles     = 10
	maxFile      = 10 << 20
	maxNonce     = 25
	flagNoEmbeds = 1 << 2
	flagHidden   = 1 << 6 // ephemeral
	flagLoading  = 1 << 7
	flagSilent   = 1 << 12
	flagVoice    = 1 << 13
)

// reach finds a channel that the bot sees.
func (s *Server) reach(id string, need ...string) (*channel, error) {
	c := s.world.channels[id]
	if c == nil {
		return nil, unknownChannel()
	}
	up := c
	if p := s.world.channels[c.parent]; p != nil && c.kind == Thread {
		up = p
	}
	if up.denied[View] {
		return nil, missingAccess()
	}
	for _, p := range need {
		if c.denied[p] || up.denied[p] && p != CreateThreads {
			return nil, missingPermission()
		}
	}
	return c, nil
}

// checked validates a body and applies what it says to a message.
func (s *Server) checked(r *request, in *content, m *Message) error {
	if in.Content != nil {
		m.Content = strings.TrimSpace(*in.Content)
	}
	if n := utf8.RuneCountInString(m.Content); n > maxText {
		return invalid("content", "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxText))
	}
	if m.Content != "" {
		spans, err := Read(m.Content)
		if err != nil {
			s.violate(r, fmt.Sprintf("%v in %.200q", err, m.Content))
		}
		for _, span := range spans {
			if slices.Contains(span.Styles, "mention") {
				s.violate(r, "it mentions "+span.Text)
			}
		}
	}
	if in.Components != nil {
		if err := checkRows(in.Components); err != nil {
			return err
		}
		m.Components = in.Components
	}
	switch {
	case in.AllowedMentions == nil:
		s.violate(r, "no allowed_mentions: what the model writes may ping")
	case len(in.AllowedMentions.Parse)+len(in.AllowedMentions.Users)+len(in.AllowedMentions.Roles) > 0:
		s.violate(r, "allowed_mentions lets something ping")
	case !strings.Contains(string(r.Body), `"parse":[]`):
		s.violate(r, "allowed_mentions.parse is not an empty list")
	}
	if len(in.Embeds) > 0 {
		s.violate(r, "embeds are not built")
	}
	if in.Flags&^(flagNoEmbeds|flagHidden|flagSilent) != 0 {
		return invalid("flags", "BITFIELD_FLAGS_INVALID", "Invalid flags")
	}
	m.Flags = m.Flags&^flagLoading | in.Flags
	return nil
}

func checkRows(rows []Row) error {
	bad := func(code, text string) error { return invalid("components", code, text) }
	if len(rows) > 5 {
		return bad("BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	ids := map[string]bool{}
	for _, row := range rows {
		if row.Type != 1 || len(row.Components) == 0 || len(row.Components) > 5 {
			return bad("COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
		}
		for _, b := range row.Components {
			switch {
			case b.Type != 2 || b.Style < 1 || b.Style > 5:
				return bad("BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5}.")
			case b.Style == 5 && b.URL == "" || b.Style != 5 && (b.CustomID == "" || utf8.RuneCountInString(b.CustomID) > 100):
				return bad("BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
			case b.Label == "" || utf8.RuneCountInString(b.Label) > 80:
				return bad("BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.")
			case ids[b.CustomID] && b.CustomID != "":
				return bad("COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
			}
			ids[b.CustomID] = true
		}
	}
	return nil
}

func (s *Server) createMessage(r *request) (any, error) {
	var in content
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	c, err := s.reach(r.parts[0], SendMessages)
	if err != nil {
		return nil, err
	}
	m := &Message{Channel: c.id, Author: botUser()}
	if err := s.checked(r, &in, m); err != nil {
		return nil, err
	}
	switch n := in.Nonce.(type) {
	case string:
		m.Nonce = n
	case float64:
		m.Nonce = strconv.FormatFloat(n, 'f', 0, 64)
	}
	if len(m.Nonce) > maxNonce {
		return nil, invalid("nonce", "NONCE_TYPE_INVALID_LENGTH", "Nonce must be 25 or fewer in length.")
	}
	if known := c.nonces[m.Nonce]; known != nil && in.EnforceNonce && m.Nonce != "" {
		return s.sentJSON(known), nil
	}
	if c.kind == Thread && c.archived {
		if c.locked {
			return nil, refuse(http.StatusForbidden, 50083, "Thread is archived")
		}
		c.archived = false
	}
	if err := s.refer(c, &in, m); err != nil {
		return nil, err
	}
	if err := s.attach(r, m); err != nil {
		return nil, err
	}
	if m.Content == "" && len(m.Attachments) == 0 {
		return nil, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	s.put(c, m)
	if m.Nonce != "" {
		c.nonces[m.Nonce] = m
	}
	return s.sentJSON(m), nil
}

// refer sets what a message replies to.
func (s *Server) refer(c *channel, in *content, m *Message) error {
	if in.Reference == nil {
		return nil
	}
	if in.Reference.Channel != "" && in.Reference.Channel != c.id {
		return invalid("message_reference", "REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL", "Cannot reply to a message in a different channel")
	}
	ref := c.byID[in.Reference.Message]
	if ref != nil && !ref.Deleted {
		m.Reference, m.kind = ref.ID, 19
		return nil
	}
	if in.Reference.FailIfNot == nil || *in.Reference.FailIfNot {
		return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	}
	return nil
}

func (s *Server) attach(r *request, m *Message) error {
	if len(r.files) > maxFiles {
		return refuse(http.StatusBadRequest, 30015, "Maximum number of attachments in a message reached (10)")
	}
	for _, f := range r.files {
		if f.Size > maxFile {
			return refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
		}
		m.Attachments = append(m.Attachments, s.stored(f))
	}
	return nil
}

// stored gives a file its id and address.
func (s *Server) stored(f Attachment) Attachment {
	f.ID, f.Size = s.snowflake(), len(f.content)
	f.URL = "http://" + s.listener.Addr().String() + "/attachments/" + f.ID + "/" + url.PathEscape(path.Base(f.Filename))
	return f
}

// put adds a message to a channel and tells the gateway.
func (s *Server) put(c *channel, m *Message) {
	m.ID = s.snowflake()
	m.Everything = []string{m.Content}
	c.messages, c.byID[m.ID] = append(c.messages, m), m
	s.tell(c, "MESSAGE_CREATE", m)
	if m.Author.ID == BotID {
		s.change(TextPosted, c.id, m.Content)
	}
	s.touch()
}

// sentJSON is a message as the answer to its creation.
func (s *Server) sentJSON(m *Message) object {
	o := s.messageJSON(m, intentContent)
	if m.Nonce != "" {
		o["nonce"] = m.Nonce
	}
	return o
}

func (s *Server) message(r *request, need ...string) (*channel, *Message, error) {
	c, err := s.reach(r.parts[0], need...)
	if err != nil {
		return nil, nil, err
	}
	m := c.byID[r.parts[1]]
	if m == nil || m.Deleted || m.Ephemeral {
		return nil, nil, unknownMessage()
	}
	return c, m, nil
}

func (s *Server) editMessage(r *request) (any, error) {
	var in content
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	c, m, err := s.message(r)
	if err != nil {
		return nil, err
	}
	if m.Author.ID != BotID {
		return nil, refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
	}
	if c.kind == Thread && c.archived {
		return nil, refuse(http.StatusBadRequest, 50083, "Thread is archived")
	}
	return s.revise(r, c, m, &in)
}

// revise applies an edit.
func (s *Server) revise(r *request, c *channel, m *Message, in *content) (any, error) {
	next := *m
	if err := s.checked(r, in, &next); err != nil {
		return nil, err
	}
	if next.Content == "" && len(next.Attachments) == 0 {
		return nil, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	next.Edited = s.opt.now()
	next.Everything = append(next.Everything, next.Content)
	if s.opt.brief {
		next.Everything = nil
	}
	*m = next
	s.change(TextPosted, c.id, m.Content)
	s.tell(c, "MESSAGE_UPDATE", m)
	return s.sentJSON(m), nil
}

func (s *Server) deleteMessage(r *request) (any, error) {
	c, m, err := s.message(r)
	if err != nil {
		return nil, err
	}
	if m.Author.ID != BotID {
		return nil, missingPermission()
	}
	s.remove(c, m)
	return nil, nil
}

func (s *Server) remove(c *channel, m *Message) {
	m.Deleted = true
	o := object{"id": m.ID, "channel_id": c.id}
	intent := intentDirect
	if c.guild != "" {
		o["guild_id"], intent = c.guild, intentMessages
	}
	s.dispatch(intent, "MESSAGE_DELETE", o)
	s.touch()
}

func (s *Server) getMessage(r *request) (any, error) {
	_, m, err := s.message(r, ReadHistory)
	if err != nil {
		return nil, err
	}
	return s.messageJSON(m, s.intents()), nil
}

// listMessages answers newest first, like the real one.
func (s *Server) listMessages(r *request) (any, error) {
	c, err := s.reach(r.parts[0], ReadHistory)
	if err != nil {
		return nil, err
	}
	limit := 50
	if q := r.query.Get("limit"); q != "" {
		limit, err = strconv.Atoi(q)
		if err != nil || limit < 1 || limit > 100 {
			return nil, invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
		}
	}
	var found []*Message
	before, after := r.query.Get("before"), r.query.Get("after")
	for _, m := range c.messages {
		if !m.Deleted && !m.Ephemeral && (before == "" || younger(before, m.ID)) && (after == "" || younger(m.ID, after)) {
			found = append(found, m)
		}
	}
	if len(found) > limit {
		if after != "" {
			found = found[:limit]
		} else {
			found = found[len(found)-limit:]
		}
	}
	out := []object{}
	for _, m := range slices.Backward(found) {
		out = append(out, s.messageJSON(m, s.intents()))
	}
	return out, nil
}

// intents are what REST shows: all that the portal allows.
func (s *Server) intents() int {
	if s.opt.content {
		return intentContent
	}
	return 0
}

func (s *Server) addReaction(r *request) (any, error) {
	_, m, err := s.message(r, AddReactions)
	if err != nil {
		return nil, err
	}
	emoji, err := url.PathUnescape(r.parts[2])
	if err != nil || utf8.RuneCountInString(emoji) > 4 {
		return nil, refuse(http.StatusBadRequest, 10014, "Unknown Emoji")
	}
	if !slices.Contains(m.Reactions, emoji) {
		m.Reactions = append(m.Reactions, emoji)
	}
	return nil, nil
}

func (s *Server) removeReaction(r *request) (any, error) {
	_, m, err := s.message(r)
	if err != nil {
		return nil, err
	}
	emoji, _ := url.PathUnescape(r.parts[2])
	m.Reactions = slices.DeleteFunc(m.Reactions, func(e string) bool { return e == emoji })
	return nil, nil
}

func (s *Server) serveAttachment(w http.ResponseWriter, r *http.Request) {
	id := strings.Split(r.URL.Path, "/")[2]
	s.mu.Lock()
	var content []byte
	for _, c := range s.world.channels {
		for _, m := range c.messages {
			for _, a := range m.Attachments {
				if a.ID == id {
					content = a.content
				}
			}
		}
	}
	s.mu.Unlock()
	if content == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}
