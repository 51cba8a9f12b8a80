package fakeslack

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Slack's lengths, in characters.
const (
	postLimit   = 40000
	updateLimit = 4000
)

// body is what a call wants a message to say.
type body struct {
	text     string
	blocks   []block
	metadata json.RawMessage
}

// body reads and checks text, blocks and metadata.
func (s *Server) body(r *request, limit int) (body, error) {
	b := body{text: r.params["text"]}
	if raw := r.params["blocks"]; raw != "" && raw != "[]" {
		if err := json.Unmarshal([]byte(raw), &b.blocks); err != nil {
			return b, refuse("invalid_blocks_format")
		}
		if err := checkBlocks(b.blocks); err != nil {
			return b, err
		}
	}
	if md := r.params["markdown_text"]; md != "" {
		if b.text != "" || len(b.blocks) > 0 {
			return b, refuse("markdown_text_conflict")
		}
		if utf8.RuneCountInString(md) > markdownLimit {
			return b, refuse("msg_too_long")
		}
		b.blocks = []block{{Type: "markdown", Text: textOf(md)}}
	}
	if raw := r.params["metadata"]; raw != "" {
		var m struct {
			EventType string          `json:"event_type"`
			Payload   json.RawMessage `json:"event_payload"`
		}
		if json.Unmarshal([]byte(raw), &m) != nil || m.EventType == "" || len(m.Payload) == 0 {
			return b, refuse("invalid_metadata_format")
		}
		b.metadata = json.RawMessage(raw)
	}
	if strings.TrimSpace(b.text) == "" && len(b.blocks) == 0 {
		return b, refuse("no_text")
	}
	if utf8.RuneCountInString(b.text) > limit {
		return b, refuse("msg_too_long")
	}
	s.inspect(r.method, b.text, b.blocks)
	return b, nil
}

// post makes a message of the bot. The lock is held.
func (s *Server) post(c *channel, thread string, b body) *message {
	now := s.opt.now()
	m := &message{ts: s.world.stamp(now), thread: thread, user: BotUser, bot: BotID, at: now}
	m.fill(b, now, s.opt.brief)
	c.add(m)
	s.announce(c, m, nil)
	s.tell(MessageSent, c.ID, m.shown())
	return m
}

// fill gives a message its content.
func (m *message) fill(b body, now time.Time, brief bool) {
	m.text, m.blocks = b.text, b.blocks
	if len(b.metadata) > 0 {
		m.metadata = b.metadata
	}
	m.say(now, brief)
}

// say keeps what a message says from now on.
func (m *message) say(now time.Time, brief bool) {
	if brief {
		m.versions = m.versions[:0]
	}
	m.versions = append(m.versions, Version{Text: m.shown(), At: now})
}

// place is where a call wants to write. The lock is held.
func (s *Server) place(r *request) (*channel, string, error) {
	c, err := s.world.reach(r.params["channel"])
	if err != nil {
		return nil, "", err
	}
	thread := r.params["thread_ts"]
	if root := c.byTS[thread]; thread != "" && (root == nil || root.thread != "" && root.thread != thread) {
		if root == nil {
			return nil, "", refuse("thread_not_found")
		}
		thread = root.thread // a reply's own ts stands for its thread
	}
	return c, thread, nil
}

func (s *Server) chatPostMessage(r *request) (answer, error) {
	b, err := s.body(r, postLimit)
	if err != nil {
		return nil, err
	}
	if r.params["unfurl_links"] != "false" || r.params["unfurl_media"] != "false" {
		s.violation(Violation{r.method, "unfurl", "links are unfurled (MKD-006)"})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.place(r)
	if err != nil {
		return nil, err
	}
	m := s.post(c, thread, b)
	return answer{"channel": c.ID, "ts": m.ts, "message": translated(m)}, nil
}

// translated is a posted message as the answer shows it: its markdown has become
// blocks of kinds that clients need not know.
func translated(m *message) map[string]any {
	return map[string]any{"ts": m.ts, "text": m.text, "blocks": []map[string]any{{"type": "rich_text", "elements": "of tomorrow"}}}
}

func (s *Server) chatPostEphemeral(r *request) (answer, error) {
	b, err := s.body(r, postLimit)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.place(r)
	if err != nil {
		return nil, err
	}
	if _, ok := s.world.users[r.params["user"]]; !ok {
		return nil, refuse("user_not_in_channel")
	}
	m := s.whisper(c, thread, r.params["user"], b)
	return answer{"message_ts": m.ts}, nil
}

// whisper makes a message that one person sees. The lock is held.
func (s *Server) whisper(c *channel, thread, user string, b body) *message {
	now := s.opt.now()
	m := &message{ts: s.world.stamp(now), thread: thread, user: BotUser, bot: BotID, only: user, at: now}
	m.fill(b, now, s.opt.brief)
	c.add(m)
	s.tell(MessageSent, c.ID, m.shown())
	return m
}

// own finds a message that the bot may change. The lock is held.
func (s *Server) own(r *request, cannot string) (*channel, *message, error) {
	c, err := s.world.reach(r.params["channel"])
	if err != nil {
		return nil, nil, err
	}
	m := c.visible(r.params["ts"])
	switch {
	case m == nil:
		return nil, nil, refuse("message_not_found")
	case m.bot != BotID:
		return nil, nil, refuse(cannot)
	}
	return c, m, nil
}

func (s *Server) chatUpdate(r *request) (answer, error) {
	b, err := s.body(r, updateLimit)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := s.own(r, "cant_update_message")
	if err != nil {
		return nil, err
	}
	if m.streaming(s.opt.now()) {
		return nil, refuse("streaming_state_conflict")
	}
	before := m.wire(&s.world, false)
	m.stream = nil
	m.edited = s.opt.now()
	m.fill(b, m.edited, s.opt.brief)
	s.tellChanged(c, m, before)
	s.tell(MessageEdited, c.ID, m.shown())
	return answer{"channel": c.ID, "ts": m.ts, "text": m.text, "message": translated(m)}, nil
}

func (s *Server) chatDelete(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := s.own(r, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	s.remove(c, m)
	s.changed.fire()
	return answer{"channel": c.ID, "ts": m.ts}, nil
}

// serveHook is a response_url: five uses within half an hour.
func (s *Server) serveHook(w http.ResponseWriter, r *http.Request, id string) {
	var in struct {
		Text         string  `json:"text"`
		ResponseType string  `json:"response_type"`
		Blocks       []block `json:"blocks"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
		respond(w, nil, refuse("invalid_payload"))
		return
	}
	if err := checkBlocks(in.Blocks); err != nil {
		respond(w, nil, err)
		return
	}
	s.inspect("response_url", in.Text, in.Blocks)
	s.mu.Lock()
	h := s.world.hooks[id]
	if h != nil {
		h.uses++
	}
	if h == nil || h.uses > 5 {
		s.mu.Unlock()
		respond(w, nil, &refusal{Status: http.StatusNotFound, Word: "used_url"})
		return
	}
	c := s.world.channels[h.channel]
	if b := (body{text: in.Text, blocks: in.Blocks}); in.ResponseType == "in_channel" {
		s.post(c, "", b)
	} else {
		s.whisper(c, "", h.user, b)
	}
	s.mu.Unlock()
	s.flush()
	respond(w, nil, nil)
}
