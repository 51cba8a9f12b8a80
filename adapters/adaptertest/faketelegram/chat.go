package faketelegram

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Room describes a chat to open.
type Room struct {
	ID       int64  // a user's id, or negative for a group, or below -1000000000000 for a supergroup
	Type     string // private, group, supergroup or channel; empty: by the id
	Title    string
	Username string  // without the @
	Forum    bool    // topics are on
	Topics   []int64 // threads that exist; also for private chats with topics
	Admin    bool    // the bot may delete the messages of others
}

// chat is the state of a chat. The server's lock guards it.
type chat struct {
	id        int64
	info      wireChat
	admin     bool
	topics    map[int64]bool // true: closed
	messages  map[int64]*message
	sent      []*message // by the bot, oldest first
	shut      error      // why the bot cannot reach it
	migrated  int64
	lastID    int64
	actions   []Action
	drafts    []Draft
	reactions map[int64][]string
	budget    chatBudget
	changed   signal
}

// world is everything that the real server knows about chats.
type world struct {
	chats     map[int64]*chat
	byName    map[string]int64
	lastID    int64 // message ids of private chats and groups are one sequence
	files     map[string]*File
	paths     map[string]*File
	callbacks map[string]int64 // query id → chat
	lastFile  int64
	lastQuery int64
}

func newWorld() world {
	return world{chats: map[int64]*chat{}, byName: map[string]int64{}, files: map[string]*File{}, paths: map[string]*File{}, callbacks: map[string]int64{}}
}

// Open makes a chat known, as when its person pressed Start or the bot was added.
// An open chat keeps its messages and gets the room's other properties.
func (s *Server) Open(r Room) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.open(r)
	return &Chat{s, r.ID}
}

const firstSupergroup = -1_000_000_000_000

func (w *world) open(r Room) *chat {
	switch {
	case r.Type != "":
	case r.ID > 0:
		r.Type = "private"
	case r.ID < firstSupergroup:
		r.Type = "supergroup"
	default:
		r.Type = "group"
	}
	c := w.chats[r.ID]
	if c == nil {
		c = &chat{id: r.ID, topics: map[int64]bool{}, messages: map[int64]*message{}, reactions: map[int64][]string{}}
		w.chats[r.ID] = c
	}
	c.info = wireChat{ID: r.ID, Type: r.Type, Title: r.Title, Username: r.Username, Forum: r.Forum}
	if r.Type != "private" && r.Title == "" {
		c.info.Title = "Group " + strconv.FormatInt(-r.ID, 10)
	}
	c.admin = r.Admin
	for _, t := range r.Topics {
		c.topics[t] = false
	}
	if r.Username != "" {
		w.byName["@"+r.Username] = r.ID
	}
	return c
}

// enter finds a chat or opens it for what a person does there.
func (w *world) enter(id int64, u User) *chat {
	c := w.chats[id]
	if c == nil {
		c = w.open(Room{ID: id})
	}
	if c.info.Type == "private" && u.ID == id {
		c.info.FirstName, c.info.LastName, c.info.Username = u.FirstName, u.LastName, u.Username
	}
	return c
}

// find is the chat that a chat_id parameter names.
func (w *world) find(chatID string) (*chat, error) {
	id, err := strconv.ParseInt(chatID, 10, 64)
	if err != nil {
		id = w.byName[chatID]
	}
	if c := w.chats[id]; c != nil {
		return c, nil
	}
	return nil, badRequest("chat not found")
}

// reach is the same for a call that wants to do something there.
func (w *world) reach(chatID string) (*chat, error) {
	c, err := w.find(chatID)
	switch {
	case err != nil:
		return nil, err
	case c.migrated != 0:
		return nil, refuse(http.StatusBadRequest, "Bad Request: group chat was upgraded to a supergroup chat", 0, c.migrated)
	case c.shut != nil:
		return nil, c.shut
	}
	return c, nil
}

// nextID makes a message id. Supergroups and channels count for themselves.
func (w *world) nextID(c *chat) int64 {
	counter := &w.lastID
	if c.info.Type == "supergroup" || c.info.Type == "channel" {
		counter = &c.lastID
	}
	*counter++
	return *counter
}

// generalTopic is the thread of a forum's General topic. The real server takes it
// for chat actions and refuses it for messages (TOP-004).
const generalTopic = 1

// checkThread says whether something may be sent to a thread. Outside topics a
// thread is the id of the message that began it.
func (c *chat) checkThread(thread int64, action bool) error {
	if thread == 0 || action && thread == generalTopic && c.info.Forum {
		return nil
	}
	closed, topic := c.topics[thread]
	began := c.messages[thread]
	switch {
	case closed:
		return badRequest("TOPIC_CLOSED")
	case topic:
		return nil
	case c.info.Type == "supergroup" && !c.info.Forum && began != nil && began.deleted.IsZero():
		return nil
	}
	return badRequest("message thread not found")
}

// keptActions is how many of the newest chat actions are certain to be remembered.
const keptActions = 100

func (c *chat) act(a Action) {
	if len(c.actions) == 2*keptActions {
		c.actions = slices.Clone(c.actions[keptActions:])
	}
	c.actions = append(c.actions, a)
}

func (s *Server) getChat(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.world.find(r.params["chat_id"])
	if err != nil {
		return nil, err
	}
	return wireChatFull{wireChat: c.info, MaxReactions: 11}, nil
}

// Block makes every call to the chat fail with 403, as when a person blocked the
// bot or a group removed it, and tells the bot with a my_chat_member update.
func (s *Server) Block(chatID int64, by User) (updateID int64) {
	return s.membership(chatID, by, true)
}

// Unblock is the reverse of Block.
func (s *Server) Unblock(chatID int64, by User) (updateID int64) {
	return s.membership(chatID, by, false)
}

func (s *Server) membership(chatID int64, by User, out bool) int64 {
	type member struct {
		User   User   `json:"user"`
		Status string `json:"status"`
		Until  int64  `json:"until_date"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.enter(chatID, by)
	c.shut = nil
	now, before := member{User: s.bot(), Status: "member"}, member{User: s.bot(), Status: "kicked"}
	if out {
		now, before = before, now
		c.shut = refuse(http.StatusForbidden, "Forbidden: bot was kicked from the "+c.info.Type+" chat", 0, 0)
		if c.info.Type == "private" {
			c.shut = refuse(http.StatusForbidden, "Forbidden: bot was blocked by the user", 0, 0)
		}
	}
	return s.enqueue(update{kind: "my_chat_member", chat: chatID}, struct {
		Chat wireChat `json:"chat"`
		From User     `json:"from"`
		Date int64    `json:"date"`
		Old  member   `json:"old_chat_member"`
		New  member   `json:"new_chat_member"`
	}{c.info, by.named(), s.opt.now().Unix(), before, now})
}

// OpenTopic makes a topic, with its service message. Its thread is that message's id.
func (s *Server) OpenTopic(chatID int64, by User, name string) (updateID, thread int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := by.named()
	m := &message{chat: s.world.enter(chatID, by), from: &from, topic: true, at: s.opt.now(), extra: map[string]any{
		"forum_topic_created": map[string]any{"name": name, "icon_color": 0x6FB9F0},
	}}
	s.world.add(m)
	m.thread = m.id
	m.chat.topics[m.id] = false
	return s.enqueue(update{kind: "message", chat: chatID, message: m.id}, m), m.id
}

// CloseTopic makes sending to a topic fail with TOPIC_CLOSED.
func (s *Server) CloseTopic(chatID, thread int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.enter(chatID, User{}).topics[thread] = true
}

// DeleteTopic makes a topic unknown: "message thread not found".
func (s *Server) DeleteTopic(chatID, thread int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.world.enter(chatID, User{}).topics, thread)
}

// number is the value of a decimal text that is known to be one.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// Action is one sendChatAction.
type Action struct {
	Name   string
	Thread int64
	At     time.Time
}

// draftLife is how long a draft stays on show.
const draftLife = 30 * time.Second

// Draft is a streamed preview (sendMessageDraft) that is on show.
type Draft struct {
	ID      int64
	Thread  int64
	Text    string
	HTML    string
	Updates int // how often it was set
	At      time.Time
}
