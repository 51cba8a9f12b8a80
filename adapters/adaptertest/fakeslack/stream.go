package fakeslack

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// stream is a message that is still being written.
type stream struct {
	text  string
	until time.Time
}

// streaming says whether a message takes appends.
func (m *message) streaming(now time.Time) bool { return m.stream != nil && now.Before(m.stream.until) }

// appendText lengthens a stream. The lock is held.
func (m *message) appendText(text string, now time.Time, brief bool) error {
	if utf8.RuneCountInString(m.stream.text+text) > markdownLimit {
		return refuse("msg_too_long")
	}
	m.stream.text += text
	m.blocks, m.text = nil, m.stream.text
	if m.stream.text != "" {
		m.blocks = []block{{Type: "markdown", Text: textOf(m.stream.text)}}
	}
	m.say(now, brief)
	return nil
}

func (s *Server) chatStartStream(r *request) (answer, error) {
	md := r.params["markdown_text"]
	if utf8.RuneCountInString(md) > markdownLimit {
		return nil, refuse("msg_too_long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.place(r)
	switch {
	case err != nil:
		return nil, err
	case c.Kind != IM && r.params["recipient_user_id"] == "":
		return nil, refuse("missing_recipient_user_id")
	case c.Kind != IM && r.params["recipient_team_id"] == "":
		return nil, refuse("missing_recipient_team_id")
	}
	now := s.opt.now()
	m := &message{ts: s.world.stamp(now), thread: thread, user: BotUser, bot: BotID, at: now, stream: &stream{until: now.Add(s.opt.stream)}}
	if err := m.appendText(md, now, s.opt.brief); err != nil {
		return nil, err
	}
	c.add(m)
	s.tell(MessageSent, c.ID, m.shown())
	return answer{"channel": c.ID, "ts": m.ts}, nil
}

// streamed finds the stream of a call. The lock is held.
func (s *Server) streamed(r *request) (*channel, *message, error) {
	c, m, err := s.own(r, "message_not_owned_by_app")
	if err == nil && !m.streaming(s.opt.now()) {
		err = refuse("message_not_in_streaming_state")
	}
	return c, m, err
}

func (s *Server) chatAppendStream(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := s.streamed(r)
	if err != nil {
		return nil, err
	}
	if r.params["markdown_text"] == "" {
		return nil, refuse("no_text")
	}
	if err := m.appendText(r.params["markdown_text"], s.opt.now(), s.opt.brief); err != nil {
		return nil, err
	}
	s.tell(MessageEdited, c.ID, m.shown())
	return answer{"channel": c.ID, "ts": m.ts}, nil
}

func (s *Server) chatStopStream(r *request) (answer, error) {
	var blocks []block
	if raw := r.params["blocks"]; raw != "" {
		if json.Unmarshal([]byte(raw), &blocks) != nil {
			return nil, refuse("invalid_blocks_format")
		}
		if err := checkBlocks(blocks); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := s.streamed(r)
	if err != nil {
		return nil, err
	}
	if text := r.params["markdown_text"]; text != "" {
		if err := m.appendText(text, s.opt.now(), s.opt.brief); err != nil {
			return nil, err
		}
	}
	if raw := r.params["metadata"]; raw != "" {
		m.metadata = json.RawMessage(raw)
	}
	m.blocks = append(m.blocks, blocks...)
	m.stream.until = s.opt.now()
	s.record.violations = append(s.record.violations, inspected(r.method, "", m.blocks)...)
	s.announce(c, m, nil)
	s.tell(MessageEdited, c.ID, m.shown())
	return answer{"channel": c.ID, "ts": m.ts, "message": translated(m)}, nil
}
