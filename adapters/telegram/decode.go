package telegram

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/gateway/chat"
)

// Ids that stand for several people (ACC-002): anonymous group admins, posts of a
// linked channel, posts in the name of a channel.
const (
	anonymousAdmin = 1087968824
	linkedChannel  = 777000
	channelBot     = 136817688
)

// update is the library's update with the fields that it lacks.
type update struct {
	ID  int
	lib tgbotapi.Update
	ext struct {
		Message       *extension `json:"message"`
		EditedMessage *extension `json:"edited_message"`
		CallbackQuery *struct {
			Message *extension `json:"message"`
		} `json:"callback_query"`
	}
}

// extension holds the fields of a message that are newer than the library.
type extension struct {
	ThreadID int  `json:"message_thread_id"`
	IsTopic  bool `json:"is_topic_message"`
	Chat     struct {
		IsForum bool `json:"is_forum"`
	} `json:"chat"`
	Quote *struct {
		Text string `json:"text"`
	} `json:"quote"`
}

// thread is the topic that a message stands in. Only topics have one: the thread
// ids of reply chains in ordinary groups split nothing (TOP-004, TOP-005), and the
// General topic has none when sending (TOP-003).
func (e *extension) thread() chat.ThreadID {
	if e == nil || !e.IsTopic || e.ThreadID <= 1 {
		return ""
	}
	return chat.ThreadID(strconv.Itoa(e.ThreadID))
}

// decode reads one update. The id is set even where the rest cannot be read.
func decode(raw json.RawMessage) (update, error) {
	var u update
	var id struct {
		ID int `json:"update_id"`
	}
	if err := json.Unmarshal(raw, &id); err != nil {
		return u, fmt.Errorf("telegram: update without an id: %w", err)
	}
	u.ID = id.ID
	if err := json.Unmarshal(raw, &u.lib); err != nil {
		return u, fmt.Errorf("telegram: update: %w", err)
	}
	if err := json.Unmarshal(raw, &u.ext); err != nil {
		return u, fmt.Errorf("telegram: update: %w", err)
	}
	for _, m := range []*tgbotapi.Message{u.lib.Message, u.lib.EditedMessage} {
		if m != nil && m.Chat == nil {
			return u, errors.New("telegram: update: a message without its chat")
		}
	}
	return u, nil
}

// event turns an update into the one event it stands for; nil if it has nothing
// for the bot.
func (a *Adapter) event(u update) chat.Event {
	switch {
	case u.lib.Message != nil && u.lib.Message.MigrateToChatID != 0:
		o := a.originOf(u.lib.Message, u.ext.Message, "moved")
		return chat.ChatMoved{Origin: o, To: chatID(u.lib.Message.MigrateToChatID)}
	case u.lib.Message != nil:
		return a.message(u.lib.Message, u.ext.Message)
	case u.lib.EditedMessage != nil:
		return a.edit(u.lib.EditedMessage, u.ext.EditedMessage)
	case u.lib.CallbackQuery != nil:
		return a.press(u)
	}
	return nil
}

func chatID(id int64) chat.ChatID { return chat.ChatID(strconv.FormatInt(id, 10)) }

// originOf is what the events of a message share; the key is made of the
// platform's own stable ids.
func (a *Adapter) originOf(m *tgbotapi.Message, e *extension, kind string) chat.Origin {
	id := strconv.Itoa(m.MessageID)
	o := chat.Origin{
		Key:     chat.EventKey(fmt.Sprintf("%s/%d/%s", kind, m.Chat.ID, id)),
		Address: chat.Address{Account: a.account, Chat: chatID(m.Chat.ID), Thread: e.thread()},
		Kind:    chat.Group, At: time.Unix(int64(m.Date), 0), Message: chat.MessageID(id), Title: chat.OneLine(m.Chat.Title),
	}
	if m.Chat.IsPrivate() {
		o.Kind = chat.Direct
	} else {
		o.Reply = chat.ReplyHandle(id) // in groups an answer points at its question
	}
	o.From = user(m.From, m.SenderChat)
	return o
}

// user is a sender. One who writes in the name of a chat, and the ids that stand
// for several people, can never be authorised.
func user(u *tgbotapi.User, as *tgbotapi.Chat) chat.User {
	if u == nil {
		return chat.User{ID: "telegram:unknown", Shared: true}
	}
	return chat.User{
		ID: chat.Person("telegram:" + strconv.FormatInt(u.ID, 10)), Name: chat.OneLine(u.FirstName + " " + u.LastName), Language: u.LanguageCode,
		Bot:    u.IsBot && u.ID != anonymousAdmin && u.ID != channelBot,
		Shared: as != nil || u.ID == anonymousAdmin || u.ID == linkedChannel || u.ID == channelBot,
	}
}

// message decodes a new message; service messages and messages without a sender
// give nothing.
func (a *Adapter) message(m *tgbotapi.Message, e *extension) chat.Event {
	if m.From == nil && m.SenderChat == nil {
		return nil
	}
	files := attachments(m)
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	if text == "" && len(files) == 0 {
		if text = described(m); text == "" {
			return nil
		}
	}
	ad := a.addressing(text, entities)
	ev := chat.MessageReceived{
		Origin: a.originOf(m, e, "message"), Text: ad.text, ForOther: ad.forOther, Files: files, Group: m.MediaGroupID,
		AtLimit: units(text) >= textLimit*9/10,
	}
	ev.Quote = a.quote(m, e)
	ev.ForBot = !ad.forOther && (ev.Kind == chat.Direct || ad.mentioned || (ev.Quote != nil && ev.Quote.FromBot))
	if m.MediaGroupID != "" {
		ev.ForBot = a.albumForBot(m.MediaGroupID, ev.ForBot)
	}
	return ev
}

// albums are the newest ones that are for the bot: each of their parts is a message of
// its own, of which one only has the caption with the mention (ATT-012).
type albums struct {
	ids  [32]string
	next int
}

// albumForBot says whether a part of an album is for the bot: it, or one before it,
// says so.
func (a *Adapter) albumForBot(id string, says bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := slices.Contains(a.albums.ids[:], id)
	if says && !known {
		a.albums.ids[a.albums.next] = id
		a.albums.next = (a.albums.next + 1) % len(a.albums.ids)
	}
	return says || known
}

// edit decodes a changed text. Telegram reports changes of other things too, as
// edits with the same text; the gateway compares.
func (a *Adapter) edit(m *tgbotapi.Message, e *extension) chat.Event {
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	if m.From == nil || text == "" {
		return nil
	}
	o := a.originOf(m, e, "edit")
	// The date alone is no version, since it counts in seconds (MEN-011).
	version := sha256.Sum256([]byte(text))
	o.Key = chat.EventKey(fmt.Sprintf("%s/%d/%x", o.Key, m.EditDate, version[:8]))
	ad := a.addressing(text, entities)
	return chat.MessageEdited{Origin: o, Text: ad.text, ForBot: o.Kind == chat.Direct || ad.mentioned}
}

func (a *Adapter) press(u update) chat.Event {
	q := u.lib.CallbackQuery
	if q.Message == nil || q.Message.Chat == nil || q.From == nil {
		return nil
	}
	var e *extension
	if u.ext.CallbackQuery != nil {
		e = u.ext.CallbackQuery.Message
	}
	o := a.originOf(q.Message, e, "press")
	o.Key = chat.EventKey(string(o.Key) + "/" + q.ID)
	o.From, o.Reply, o.At = user(q.From, nil), "", time.Now()
	return chat.ButtonPressed{Origin: o, Data: q.Data, Ack: q.ID}
}

// quote is the message that was replied to. In a topic every message replies to
// the one that opened it, which is no quote.
func (a *Adapter) quote(m *tgbotapi.Message, e *extension) *chat.Quote {
	r := m.ReplyToMessage
	if r == nil || (e != nil && e.IsTopic && r.MessageID == e.ThreadID) {
		return nil
	}
	q := &chat.Quote{Message: chat.MessageID(strconv.Itoa(r.MessageID)), From: user(r.From, r.SenderChat), Text: r.Text}
	if q.Text == "" {
		q.Text = r.Caption
	}
	if e != nil && e.Quote != nil && e.Quote.Text != "" {
		q.Text = e.Quote.Text
	}
	q.Text = clean(q.Text)
	q.FromBot = r.From != nil && r.From.ID == a.bot().ID && r.From.ID != 0
	return q
}

// addressing is whom a text speaks to.
type addressing struct {
	text      string // without the bot's own name
	mentioned bool
	forOther  bool // a command with another bot's name
}

// addressing looks at commands and mentions. Their offsets are UTF-16 units. The
// bot's own mention, and the suffix of its commands, are removed (CMD-001).
func (a *Adapter) addressing(text string, entities []tgbotapi.MessageEntity) addressing {
	bot := a.bot()
	u := utf16.Encode([]rune(text))
	out := addressing{}
	cut := make([]bool, len(u))
	for _, e := range entities {
		from, to := e.Offset, e.Offset+e.Length
		if from < 0 || to > len(u) || from >= to {
			continue
		}
		word := string(utf16.Decode(u[from:to]))
		switch e.Type {
		case "bot_command":
			cmd, suffix, named := strings.Cut(word, "@")
			switch {
			case !named:
			case strings.EqualFold(suffix, bot.UserName):
				out.mentioned = true
				mark(cut, from+len(utf16.Encode([]rune(cmd))), to)
			case from == 0:
				out.forOther = true
			}
		case "mention":
			if strings.EqualFold(word, "@"+bot.UserName) {
				out.mentioned = true
				mark(cut, from, to)
			}
		case "text_mention":
			if e.User != nil && e.User.ID == bot.ID {
				out.mentioned = true
				mark(cut, from, to)
			}
		}
	}
	kept := u[:0:0]
	for i, c := range u {
		space := i > 0 && cut[i-1] && c == ' ' && (len(kept) == 0 || kept[len(kept)-1] == ' ')
		if !cut[i] && !space {
			kept = append(kept, c)
		}
	}
	if len(kept) < len(u) {
		text = strings.TrimSpace(string(utf16.Decode(kept)))
	}
	out.text = clean(text)
	return out
}

func mark(cut []bool, from, to int) {
	for i := from; i < to; i++ {
		cut[i] = true
	}
}

// attachments lists a message's files; of a photo, the largest size.
func attachments(m *tgbotapi.Message) []chat.File {
	var fs []chat.File
	add := func(id, name, mime string, size int) {
		fs = append(fs, chat.File{ID: id, Name: chat.OneLine(name), MIME: mime, Size: int64(size)})
	}
	if n := len(m.Photo); n > 0 {
		best := m.Photo[0]
		for _, p := range m.Photo {
			if p.Width*p.Height > best.Width*best.Height {
				best = p
			}
		}
		add(best.FileID, "photo.jpg", "image/jpeg", best.FileSize)
	}
	if d := m.Document; d != nil && m.Animation == nil {
		add(d.FileID, orDefault(d.FileName, "document"), d.MimeType, d.FileSize)
	}
	if d := m.Animation; d != nil {
		add(d.FileID, orDefault(d.FileName, "animation.mp4"), d.MimeType, d.FileSize)
	}
	if d := m.Audio; d != nil {
		add(d.FileID, orDefault(d.FileName, "audio"), d.MimeType, d.FileSize)
	}
	if d := m.Voice; d != nil {
		add(d.FileID, "voice.ogg", d.MimeType, d.FileSize)
		fs[len(fs)-1].Voice = true
	}
	if d := m.Video; d != nil {
		add(d.FileID, orDefault(d.FileName, "video.mp4"), d.MimeType, d.FileSize)
	}
	if d := m.VideoNote; d != nil {
		add(d.FileID, "video.mp4", "video/mp4", d.FileSize)
	}
	return fs
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

// described puts what has no text into words.
func described(m *tgbotapi.Message) string {
	switch {
	case m.Sticker != nil:
		return strings.TrimSpace("[sticker " + m.Sticker.Emoji + "]")
	case m.Venue != nil:
		return fmt.Sprintf("[place: %s, %s]", chat.OneLine(m.Venue.Title), chat.OneLine(m.Venue.Address))
	case m.Location != nil:
		return fmt.Sprintf("[location: %.5f, %.5f]", m.Location.Latitude, m.Location.Longitude)
	case m.Contact != nil:
		return fmt.Sprintf("[contact: %s %s]", chat.OneLine(m.Contact.FirstName+" "+m.Contact.LastName), chat.OneLine(m.Contact.PhoneNumber))
	case m.Poll != nil:
		return "[poll: " + chat.OneLine(m.Poll.Question) + "]"
	case m.Dice != nil:
		return fmt.Sprintf("[dice %s: %d]", m.Dice.Emoji, m.Dice.Value)
	}
	return ""
}
