package discord

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/zap"

	"parley/gateway/chat"
)

// user is a person or a bot as the gateway tells them.
type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
}

// member is what a guild adds to a user.
type member struct {
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
	User  user     `json:"user"`
}

// attachment is a file of a message.
type attachment struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	MIME     string `json:"content_type"`
	URL      string `json:"url"`
}

// message is what is read of a message. It is not the library's, which cannot be
// read at all once it holds a component that the library does not know.
type message struct {
	ID          string                `json:"id"`
	Channel     string                `json:"channel_id"`
	Guild       string                `json:"guild_id"`
	Kind        discordgo.MessageType `json:"type"`
	Author      *user                 `json:"author"`
	Member      *member               `json:"member"`
	Webhook     string                `json:"webhook_id"`
	Content     string                `json:"content"`
	Edited      *time.Time            `json:"edited_timestamp"`
	Mentions    []user                `json:"mentions"`
	Attachments []attachment          `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Reference *struct {
		Kind    int    `json:"type"`
		Message string `json:"message_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Snapshots  []struct {
		Message message `json:"message"`
	} `json:"message_snapshots"`
	Flags     discordgo.MessageFlags `json:"flags"`
	Nonce     any                    `json:"nonce"`
	Reactions []struct {
		Me    bool `json:"me"`
		Emoji struct {
			Name string `json:"name"`
		} `json:"emoji"`
	} `json:"reactions"`
}

// isForward is the type of a reference to a message that is passed on.
const isForward = 1

// person is a sender; member may be nil.
func person(u *user, m *member, webhook string) chat.User {
	if u == nil {
		return chat.User{ID: "discord:unknown", Shared: true}
	}
	name := u.GlobalName
	if m != nil && m.Nick != "" {
		name = m.Nick
	}
	if name == "" {
		name = u.Username
	}
	return chat.User{ID: chat.Person("discord:" + u.ID), Name: chat.OneLine(name), Bot: u.Bot || webhook != "", Shared: webhook != ""}
}

// origin is what the events of a message share; the key is made of Discord's own
// stable ids.
func (a *Adapter) origin(kind string, c channel, m message) chat.Origin {
	o := chat.Origin{
		Key:     chat.EventKey(kind + "/" + m.Channel + "/" + m.ID),
		Address: a.at(c), Kind: chat.Group, At: madeAt(m.ID), Message: chat.MessageID(m.ID), Title: chat.OneLine(c.Name),
		From: person(m.Author, m.Member, m.Webhook),
	}
	if c.Kind == discordgo.ChannelTypeDM {
		o.Kind = chat.Direct
		return o
	}
	if m.Member != nil {
		o.Roles = m.Member.Roles
	}
	return o
}

// message decodes a new message; service messages and the bot's own give nothing.
func (a *Adapter) message(c channel, m message) chat.Event {
	self := a.self()
	if m.Author == nil || m.Author.ID == self.ID || m.Kind != discordgo.MessageTypeDefault && m.Kind != discordgo.MessageTypeReply {
		return nil
	}
	files := attachments(m)
	if m.Content == "" && len(files) == 0 && len(m.Stickers) == 0 && len(m.Snapshots) == 0 {
		a.unreadable(c)
		return nil
	}
	ev := chat.MessageReceived{
		Origin: a.origin("message", c, m), Text: a.unaddressed(described(m)), Files: files, Quote: a.quote(m),
		AtLimit: utf8.RuneCountInString(m.Content) >= textLimit*9/10,
	}
	switch {
	case ev.Kind == chat.Direct:
		ev.ForBot = true
	case m.Author.Bot || m.Webhook != "":
		// That a reply pings its author is no mention between bots (MEN-006).
		ev.ForBot = a.named(m.Content)
	default:
		ev.ForBot = a.mentions(m) || ev.Quote != nil && ev.Quote.FromBot || c.thread() && c.Owner == self.ID
	}
	if ev.Kind == chat.Group {
		ev.Reply = reply(m)
		if ev.ForBot {
			a.begin(c, m.ID, &ev.Address)
		}
		ev.Threaded = ev.Address.Thread != ""
	}
	a.recent.put(m.ID, seen{from: ev.From, address: ev.Address})
	return ev
}

// begin gives a message of a channel that is for the bot a thread of its own. The
// thread has the message's id before it is there; Send makes it.
func (a *Adapter) begin(c channel, id string, at *chat.Address) {
	if a.cfg.Threads && c.opensThreads() && !a.places.refuses(c.ID) {
		at.Thread = chat.ThreadID(id)
	}
}

// edit decodes a changed text. Discord reports other changes too, such as the
// preview of a link: they have no new time of editing, and are no edit (MEN-008).
func (a *Adapter) edit(c channel, m message) chat.Event {
	if m.Author == nil || m.Author.ID == a.self().ID || m.Edited == nil || m.Content == "" {
		return nil
	}
	o := a.origin("edit", c, m)
	version := sha256.Sum256([]byte(m.Content))
	o.Key = chat.EventKey(fmt.Sprintf("%s/%d/%x", o.Key, m.Edited.UnixMilli(), version[:8]))
	forBot := o.Kind == chat.Direct || a.mentions(m) || c.thread() && c.Owner == a.self().ID
	if s, ok := a.recent.get(m.ID); ok {
		o.Address = s.address
	} else if forBot {
		a.begin(c, m.ID, &o.Address)
	}
	o.Threaded = o.Address.Thread != ""
	return chat.MessageEdited{Origin: o, Text: a.unaddressed(m.Content), ForBot: forBot}
}

// deletion decodes a message that is gone. Discord does not say whose it was: only
// messages that this process has seen can be told.
func (a *Adapter) deletion(c channel, m message) chat.Event {
	s, ok := a.recent.get(m.ID)
	if !ok {
		return nil
	}
	o := a.origin("deleted", c, m)
	o.From, o.Address, o.At = s.from, s.address, a.now()
	return chat.MessageDeleted{Origin: o}
}

// mentions says whether a message mentions the bot: by name, or by the role that
// Discord made for it (MEN-005).
func (a *Adapter) mentions(m message) bool {
	self := a.self().ID
	return slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == self }) || a.named(m.Content)
}

var mention = regexp.MustCompile(`<@(!|&)?([0-9]+)>`)

// me says whether a written mention is the bot's.
func (a *Adapter) me(kind, id string) bool {
	if kind == "&" {
		return a.places.owns(id)
	}
	return id == a.self().ID
}

func (a *Adapter) named(text string) bool {
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		if a.me(m[1], m[2]) {
			return true
		}
	}
	return false
}

// unaddressed takes the bot's own mentions out of a text.
func (a *Adapter) unaddressed(text string) string {
	found := false
	text = mention.ReplaceAllStringFunc(text, func(s string) string {
		if m := mention.FindStringSubmatch(s); a.me(m[1], m[2]) {
			found = true
			return ""
		}
		return s
	})
	if found {
		text = strings.TrimSpace(strings.ReplaceAll(text, "  ", " "))
	}
	return clean(text)
}

// quote is the message that was replied to, or that was forwarded (MEN-001).
func (a *Adapter) quote(m message) *chat.Quote {
	if m.Reference == nil {
		return nil
	}
	q := &chat.Quote{Message: chat.MessageID(m.Reference.Message)}
	switch {
	case m.Reference.Kind == isForward && len(m.Snapshots) > 0:
		q.From, q.Text = chat.User{ID: "discord:unknown", Shared: true}, described(m.Snapshots[0].Message)
	case m.Referenced != nil:
		r := m.Referenced
		q.From, q.Text = person(r.Author, r.Member, r.Webhook), described(*r)
		q.FromBot = r.Author != nil && r.Author.ID == a.self().ID
	default:
		q.From = chat.User{ID: "discord:unknown", Shared: true}
	}
	q.Text = clean(q.Text)
	return q
}

// described is a message's text; what has none is put into words.
func described(m message) string {
	if m.Content != "" || len(m.Stickers) == 0 {
		return m.Content
	}
	return "[sticker " + chat.OneLine(m.Stickers[0].Name) + "]"
}

// attachments lists a message's files, those of a forwarded one too. Their links
// expire, so an id says where a new one is to be had.
func attachments(m message) []chat.File {
	voice := m.Flags&discordgo.MessageFlagsIsVoiceMessage != 0
	list := m.Attachments
	for _, s := range m.Snapshots {
		list = append(list, s.Message.Attachments...)
	}
	var files []chat.File
	for _, f := range list {
		files = append(files, chat.File{
			ID: m.Channel + "/" + m.ID + "/" + f.ID, Name: chat.OneLine(f.Filename), MIME: f.MIME, Size: f.Size, Voice: voice,
		})
	}
	return files
}

// unreadable says, once, that messages come without their content.
func (a *Adapter) unreadable(c channel) {
	if c.Kind == discordgo.ChannelTypeDM {
		return
	}
	a.blind.Do(func() {
		a.log.Warn("messages come without their text, since the message content intent is off: in servers only mentions can be read",
			zap.String("fix", contentFix), zap.String("channel", c.ID))
	})
}
