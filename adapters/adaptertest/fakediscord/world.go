package fakediscord

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// User is a person or a bot.
type User struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Name     string `json:"global_name,omitempty"`
	Bot      bool   `json:"bot,omitempty"`
}

// ChannelType is Discord's number for it.
type ChannelType int

// The types of channels.
const (
	Text   ChannelType = 0
	DM     ChannelType = 1
	Voice  ChannelType = 2
	Thread ChannelType = 11
	Forum  ChannelType = 15
)

// Attachment is a file of a message.
type Attachment struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	Size     int    `json:"size"`
	URL      string `json:"url"`
	MIME     string `json:"content_type,omitempty"`
	content  []byte
}

// Message is a message as the server keeps it.
type Message struct {
	ID, Channel string
	Author      User
	Content     string
	Reference   string // the message that it replies to
	Mentions    []User
	Roles       []string // mentioned roles
	Attachments []Attachment
	Components  []Row
	Flags       int
	Nonce       string
	Edited      time.Time
	Deleted     bool
	Ephemeral   bool
	// Webhook is the id of the webhook or application that wrote it.
	Webhook string
	// Snapshot is the text of a forwarded message.
	Snapshot string
	// Reactions are the emoji that the bot has set.
	Reactions []string
	// Everything is each content it ever had, oldest first.
	Everything []string
	kind       int
}

// channel is a channel, a direct chat or a thread.
type channel struct {
	id, guild, parent, name, owner string
	kind                           ChannelType
	archived, locked               bool
	messages                       []*Message
	byID                           map[string]*Message
	nonces                         map[string]*Message
	recipient                      User
	denied                         map[string]bool
	typing                         int
}

type world struct {
	channels map[string]*channel
	guilds   map[string]string // name by id
	roles    map[string][]string
}

func newWorld() world {
	return world{channels: map[string]*channel{}, guilds: map[string]string{}, roles: map[string][]string{}}
}

func (s *Server) newChannel(c channel) *channel {
	if c.id == "" {
		c.id = s.snowflake()
	}
	c.byID, c.nonces, c.denied = map[string]*Message{}, map[string]*Message{}, map[string]bool{}
	s.world.channels[c.id] = &c
	return &c
}

// OpenDM makes the direct chat of a person with the bot and returns its id.
func (s *Server) OpenDM(u User) string { return s.OpenDMAs("", u) }

// OpenDMAs is OpenDM with an id.
func (s *Server) OpenDMAs(id string, u User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.world.channels {
		if c.kind == DM && c.recipient.ID == u.ID {
			c.recipient = u
			return c.id
		}
	}
	return s.newChannel(channel{id: id, kind: DM, recipient: u}).id
}

// AddGuild makes a guild that the bot is in; the bot learns of it at its next session.
func (s *Server) AddGuild(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.snowflake()
	s.world.guilds[id] = name
	return id
}

// AddChannel makes a channel of a guild.
func (s *Server) AddChannel(guild, name string, kind ChannelType) string {
	s.mu.Lock()
	c := s.newChannel(channel{guild: guild, name: name, kind: kind})
	s.dispatch(intentGuilds, "CHANNEL_CREATE", s.channelJSON(c))
	s.mu.Unlock()
	return c.id
}

// Join gives a member roles in every guild.
func (s *Server) Join(user string, roles ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.roles[user] = roles
}

// The permissions that Deny can take away.
const (
	View          = "VIEW_CHANNEL"
	SendMessages  = "SEND_MESSAGES"
	CreateThreads = "CREATE_PUBLIC_THREADS"
	ReadHistory   = "READ_MESSAGE_HISTORY"
	AddReactions  = "ADD_REACTIONS"
)

// Deny takes permissions of the bot away in a channel.
func (s *Server) Deny(channelID string, permissions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range permissions {
		s.world.channels[channelID].denied[p] = true
	}
}

// Archive closes a thread; a locked one is opened by moderators only.
func (s *Server) Archive(thread string, locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[thread]
	c.archived, c.locked = true, locked
	s.dispatch(intentGuilds, "THREAD_UPDATE", s.channelJSON(c))
}

// DeleteChannel removes a channel or thread.
func (s *Server) DeleteChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[id]
	delete(s.world.channels, id)
	s.dispatch(intentGuilds, map[bool]string{true: "THREAD_DELETE", false: "CHANNEL_DELETE"}[c.kind == Thread], s.channelJSON(c))
}

// Messages are those that a channel shows, oldest first.
func (s *Server) Messages(channelID string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	if c := s.world.channels[channelID]; c != nil {
		for _, m := range c.messages {
			if !m.Deleted {
				out = append(out, m.copy())
			}
		}
	}
	return out
}

// Message returns one message, deleted ones too.
func (s *Server) Message(channelID, id string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[channelID]
	if c == nil || c.byID[id] == nil {
		return Message{}, false
	}
	return c.byID[id].copy(), true
}

func (m *Message) copy() Message {
	c := *m
	c.Reactions, c.Everything = slices.Clone(m.Reactions), slices.Clone(m.Everything)
	return c
}

// ThreadView is a thread as a test sees it.
type ThreadView struct {
	ID, Parent, Name, Owner string
	Archived                bool
}

// Thread returns a thread.
func (s *Server) Thread(id string) (ThreadView, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.channels[id]
	if c == nil || c.kind != Thread {
		return ThreadView{}, false
	}
	return ThreadView{c.id, c.parent, c.name, c.owner, c.archived}, true
}

// Threads are the ids of a channel's threads, oldest first.
func (s *Server) Threads(parent string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, c := range s.world.channels {
		if c.kind == Thread && c.parent == parent {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return ids
}

// Typed is how often the bot has shown that it types in a channel.
func (s *Server) Typed(channelID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.channels[channelID].typing
}

// botUser is the bot.
func botUser() User { return User{ID: BotID, Username: "parley", Bot: true} }

// mentioned finds whom a text mentions.
func (s *Server) mentioned(text string) (users []User, roles []string) {
	for _, m := range mentionPattern.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "@", "@!":
			u := User{ID: m[2], Username: "user" + m[2]}
			if m[2] == BotID {
				u = botUser()
			}
			if !slices.ContainsFunc(users, func(o User) bool { return o.ID == u.ID }) {
				users = append(users, u)
			}
		case "@&":
			roles = append(roles, m[2])
		}
	}
	return users, roles
}

// object is JSON on its way out.
type object map[string]any

func (s *Server) channelJSON(c *channel) object {
	o := object{"id": c.id, "type": int(c.kind), "name": c.name}
	if c.guild != "" {
		o["guild_id"] = c.guild
	}
	if c.parent != "" {
		o["parent_id"] = c.parent
	}
	if n := len(c.messages); n > 0 {
		o["last_message_id"] = c.messages[n-1].ID
	}
	switch c.kind {
	case DM:
		o["recipients"] = []User{c.recipient}
	case Thread:
		o["owner_id"] = c.owner
		o["thread_metadata"] = object{"archived": c.archived, "locked": c.locked, "auto_archive_duration": 1440, "archive_timestamp": stamp(s.opt.now())}
	default:
	}
	return o
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// guildJSON is GUILD_CREATE of a guild.
func (s *Server) guildJSON(id string) object {
	channels, threads := []object{}, []object{}
	for _, key := range slices.Sorted(maps.Keys(s.world.channels)) {
		c := s.world.channels[key]
		switch {
		case c.guild != id || c.denied[View]:
		case c.kind == Thread && !c.archived:
			threads = append(threads, s.channelJSON(c))
		case c.kind != Thread:
			channels = append(channels, s.channelJSON(c))
		}
	}
	return object{
		"id": id, "name": s.world.guilds[id], "channels": channels, "threads": threads, "members": []object{{"user": botUser(), "roles": []string{BotRole}}},
		"roles": []object{{"id": BotRole, "name": "parley", "managed": true, "tags": object{"bot_id": BotID}}, {"id": id, "name": "@everyone"}},
	}
}

// messageJSON is a message as the bot may see it: without the content intent only
// direct, own and mentioning messages have their content.
func (s *Server) messageJSON(m *Message, intents int) object {
	c := s.world.channels[m.Channel]
	o := object{
		"id": m.ID, "channel_id": m.Channel, "type": m.kind, "author": m.Author, "content": m.Content, "timestamp": stamp(created(m.ID)),
		"edited_timestamp": nil, "mentions": orEmpty(m.Mentions), "mention_roles": orEmpty(m.Roles), "mention_everyone": strings.Contains(m.Content, "@everyone"),
		"attachments": orEmpty(m.Attachments), "components": orEmpty(m.Components), "embeds": []object{}, "flags": m.Flags,
	}
	if !m.Edited.IsZero() {
		o["edited_timestamp"] = stamp(m.Edited)
	}
	if m.Webhook != "" {
		o["webhook_id"] = m.Webhook
	}
	if m.Reference != "" {
		kind := 0
		if m.Snapshot != "" {
			kind = 1
			o["message_snapshots"] = []object{{"message": object{"content": m.Snapshot, "type": 0}}}
		}
		o["message_reference"] = object{"type": kind, "channel_id": m.Channel, "message_id": m.Reference, "guild_id": c.guild}
		if ref := c.byID[m.Reference]; ref != nil && !ref.Deleted && kind == 0 {
			quoted := *ref
			quoted.Reference = ""
			o["referenced_message"] = s.messageJSON(&quoted, intents)
		}
	}
	if len(m.Reactions) > 0 {
		var rs []object
		for _, e := range m.Reactions {
			rs = append(rs, object{"count": 1, "me": true, "emoji": object{"id": nil, "name": e}})
		}
		o["reactions"] = rs
	}
	mine := m.Author.ID == BotID || slices.ContainsFunc(m.Mentions, func(u User) bool { return u.ID == BotID }) || slices.Contains(m.Roles, BotRole)
	if c.kind != DM && !mine && intents&intentContent == 0 {
		o["content"], o["attachments"], o["components"], o["embeds"] = "", []object{}, []object{}, []object{}
		delete(o, "message_snapshots")
	}
	return o
}

// created is the time inside a snowflake.
func created(id string) time.Time {
	return time.UnixMilli(int64(number(id)>>22) + epoch)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
