package faketelegram

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Button is one button of an inline keyboard.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Version is what a message said from a moment on.
type Version struct {
	Text     string
	HTML     string
	Keyboard [][]Button
	At       time.Time
}

// message is a message of anybody in a chat. The server's lock guards it.
type message struct {
	id       int64
	chat     *chat
	thread   int64
	topic    bool
	from     *User // nil: nobody, as in channels
	fromBot  bool
	body     content
	file     *File
	album    string
	replyTo  *message
	quote    string
	at       time.Time
	edited   time.Time
	deleted  time.Time
	versions []Version
	extra    map[string]any // injected only: fields that this type lacks
}

// wire is the message as the API shows it; an answered message is shown without
// the one that it answers.
func (m *message) wire(nested bool) *wireMessage {
	w := &wireMessage{ID: m.id, Thread: m.thread, Topic: m.topic, From: m.from, Date: m.at.Unix(), Chat: m.chat.info, Album: m.album}
	if !m.edited.IsZero() {
		w.EditDate = m.edited.Unix()
	}
	if len(m.body.keyboard) > 0 {
		w.Markup = &wireKeyboard{m.body.keyboard}
	}
	if m.replyTo != nil && !nested {
		w.ReplyTo = m.replyTo.wire(true)
		if m.quote != "" {
			w.Quote = &wireQuote{m.quote, length(m.replyTo.body.text[:max(0, strings.Index(m.replyTo.body.text, m.quote))]), true}
		}
	}
	if m.file == nil {
		w.Text, w.Entities = m.body.text, m.body.entities
		return w
	}
	w.Caption, w.CaptionEntities = m.body.text, m.body.entities
	f := m.file.wire()
	switch m.file.Kind {
	case "photo":
		f.Name, f.MIME = "", ""
		w.Photo = []wireFile{f}
	case "voice":
		f.Name, f.Duration = "", 1
		w.Voice = &f
	default:
		w.Document = &f
	}
	return w
}

// MarshalJSON adds the extra fields to the wire form.
func (m *message) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(m.wire(false))
	if err != nil || len(m.extra) == 0 {
		return b, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	for k, v := range m.extra {
		if v == nil {
			delete(fields, k)
		} else {
			fields[k] = v
		}
	}
	return json.Marshal(fields)
}

// show sets what a message says, keeping the former versions when asked to.
func (m *message) show(c content, at time.Time, history bool) {
	m.body = c
	if history {
		m.versions = append(m.versions, Version{c.text, c.html, c.keyboard, at})
	}
}

// keyboard parses reply_markup. Other keyboards than inline ones are accepted for
// new messages and not kept.
func keyboard(r *request, inlineOnly bool) ([][]Button, error) {
	raw := r.params["reply_markup"]
	if raw == "" || raw == "null" {
		return nil, nil
	}
	var markup struct {
		Rows [][]map[string]any `json:"inline_keyboard"`
	}
	if err := json.Unmarshal([]byte(raw), &markup); err != nil || markup.Rows == nil {
		if inlineOnly || err != nil {
			return nil, badRequest("inline keyboard expected")
		}
		return nil, nil
	}
	var rows [][]Button
	count := 0
	for _, row := range markup.Rows {
		var buttons []Button
		for _, fields := range row {
			b, err := button(fields)
			if err != nil {
				return nil, err
			}
			buttons = append(buttons, b)
		}
		if count += len(buttons); len(buttons) > 0 {
			rows = append(rows, buttons)
		}
	}
	if count > 100 {
		return nil, badRequest("reply markup is too long")
	}
	return rows, nil
}

// maxCallbackData is the real limit on callback_data, in bytes.
const maxCallbackData = 64

// buttonKinds are the fields of which a button has exactly one.
var buttonKinds = []string{"url", "callback_data", "web_app", "login_url", "switch_inline_query", "switch_inline_query_current_chat",
	"switch_inline_query_chosen_chat", "copy_text", "callback_game", "pay"}

func button(fields map[string]any) (Button, error) {
	var b Button
	b.Text, _ = fields["text"].(string)
	b.Data, _ = fields["callback_data"].(string)
	b.URL, _ = fields["url"].(string)
	kinds := 0
	for name := range fields {
		if slices.Contains(buttonKinds, name) {
			kinds++
		}
	}
	_, hasData := fields["callback_data"]
	switch {
	case strings.TrimSpace(b.Text) == "":
		return b, badRequest("can't parse inline keyboard button: Button text must be non-empty")
	case kinds == 0:
		return b, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
	case kinds > 1:
		return b, badRequest("can't parse inline keyboard button: exactly one kind of button is allowed")
	case hasData && (b.Data == "" || len(b.Data) > maxCallbackData):
		return b, badRequest("BUTTON_DATA_INVALID")
	case b.URL != "":
		if u, err := url.Parse(b.URL); err != nil || u.Scheme != "tg" && !strings.Contains(u.Host, ".") {
			return b, badRequest("inline keyboard button URL '%s' is invalid: Wrong HTTP URL", b.URL)
		}
	}
	return b, nil
}
