package fakeslack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// User is a person of the workspace, or of another one in a shared channel.
type User struct {
	ID   string
	Name string
	Team string // another workspace; empty: this one
	Bot  string // its bot id if it is another app's
}

// Kind is what sort of conversation a channel is.
type Kind string

// The kinds, as events name them.
const (
	IM      Kind = "im"
	Channel Kind = "channel"
	Private Kind = "group"
	MPIM    Kind = "mpim"
)

// Room is a conversation to open.
type Room struct {
	ID   string
	Kind Kind
	Name string
	User string // of an IM
	// Out says that the bot is not a member.
	Out bool
}

// world is all that people and the bot have made. The server's lock guards it.
type world struct {
	users    map[string]User
	channels map[string]*channel
	files    map[string]*file
	hooks    map[string]*hook
	lastTS   time.Time
	lastID   int
}

// hook is a response_url.
type hook struct {
	channel, user string
	uses          int
}

// channel is the state of one conversation.
type channel struct {
	Room
	messages []*message
	byTS     map[string]*message
	archived bool
}

// message is a message of anybody.
type message struct {
	ts, thread  string
	user        string
	bot         string // id of the bot that wrote it
	subtype     string
	text        string
	blocks      []block
	metadata    json.RawMessage
	files       []*file
	attachments json.RawMessage
	only        string // the one who sees it
	reactions   map[string][]string
	stream      *stream
	at          time.Time
	edited      time.Time
	deleted     time.Time
	versions    []Version
}

func newWorld() world {
	return world{
		users:    map[string]User{BotUser: {ID: BotUser, Name: "parley", Bot: BotID}},
		channels: map[string]*channel{}, files: map[string]*file{}, hooks: map[string]*hook{},
	}
}

// Open makes a conversation known. A person's IM is made by [Server.OpenIM].
func (s *Server) Open(r Room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.open(r)
}

func (w *world) open(r Room) *channel {
	if c := w.channels[r.ID]; c != nil {
		return c
	}
	c := &channel{Room: r, byTS: map[string]*message{}}
	w.channels[r.ID] = c
	return c
}

// OpenIM makes a person and their direct conversation with the bot known, and
// returns its id.
func (s *Server) OpenIM(u User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.im(u)
}

func (w *world) im(u User) string {
	if _, known := w.users[u.ID]; !known {
		w.users[u.ID] = u
	}
	id := "D" + strings.TrimLeft(u.ID, "UW")
	w.open(Room{ID: id, Kind: IM, User: u.ID})
	return id
}

// AddUser makes a person known.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.users[u.ID] = u
}

// Archive closes a conversation for writing.
func (s *Server) Archive(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.channels[id].archived = true
}

// stamp makes the next timestamp: unique, growing, the id of a message.
func (w *world) stamp(now time.Time) string {
	now = now.Truncate(time.Microsecond)
	if !now.After(w.lastTS) {
		now = w.lastTS.Add(time.Microsecond)
	}
	w.lastTS = now
	return fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
}

func (w *world) id(prefix string) string {
	w.lastID++
	return fmt.Sprintf("%s0%07d", prefix, w.lastID)
}

// reach finds a conversation that the bot may write to; a user's id stands for
// their direct conversation.
func (w *world) reach(id string) (*channel, error) {
	if u, ok := w.users[id]; ok {
		id = w.im(u)
	}
	c := w.channels[id]
	switch {
	case c == nil:
		return nil, refuse("channel_not_found")
	case c.Out && c.Kind != Channel:
		return nil, refuse("channel_not_found")
	case c.Out:
		return nil, refuse("not_in_channel")
	case c.archived:
		return nil, refuse("is_archived")
	}
	return c, nil
}

// see finds a conversation that the bot may read.
func (w *world) see(id string) (*channel, error) {
	c := w.channels[id]
	if c == nil || c.Out && c.Kind != Channel {
		return nil, refuse("channel_not_found")
	}
	return c, nil
}

// add puts a message into a conversation.
func (c *channel) add(m *message) {
	c.messages = append(c.messages, m)
	c.byTS[m.ts] = m
}

// visible finds a message that is there and that everybody sees.
func (c *channel) visible(ts string) *message {
	if m := c.byTS[ts]; m != nil && m.deleted.IsZero() && m.only == "" {
		return m
	}
	return nil
}

// thread lists the messages below a root, which comes first.
func (c *channel) thread(root string) []*message {
	var list []*message
	for _, m := range c.messages {
		if m.only == "" && m.deleted.IsZero() && (m.ts == root || m.thread == root) {
			list = append(list, m)
		}
	}
	return list
}

// wire is a message as the API shows it.
func (m *message) wire(w *world, withMetadata bool) map[string]any {
	out := map[string]any{"type": "message", "ts": m.ts, "text": m.text}
	set := func(key string, v any, is bool) {
		if is {
			out[key] = v
		}
	}
	set("user", m.user, m.user != "")
	set("bot_id", m.bot, m.bot != "")
	set("subtype", m.subtype, m.subtype != "")
	set("thread_ts", m.thread, m.thread != "")
	set("edited", map[string]string{"user": m.user, "ts": fmt.Sprint(m.edited.UnixNano())}, !m.edited.IsZero())
	set("metadata", m.metadata, withMetadata && len(m.metadata) > 0)
	set("blocks", m.wireBlocks(), len(m.blocks) > 0)
	set("attachments", m.attachments, len(m.attachments) > 0)
	set("team", TeamID, m.user != "")
	if u := w.users[m.user]; u.Team != "" {
		out["user_team"], out["source_team"], out["team"] = u.Team, u.Team, u.Team
	}
	if len(m.files) > 0 {
		var files []map[string]any
		for _, f := range m.files {
			files = append(files, f.wire())
		}
		out["files"] = files
	}
	return out
}

func (m *message) wireBlocks() []block { return slices.Clone(m.blocks) }
