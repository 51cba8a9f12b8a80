package fakeslack

import (
	"encoding/json"
	"slices"
	"strconv"
)

// method is one method of the Web API.
type method struct {
	run      func(*Server, *request) (answer, error)
	scopes   []string // one of them is needed
	required []string
	app      bool // wants the app-level token
}

// allScopes are what a full installation grants; connections:write belongs to the
// app-level token.
var allScopes = []string{
	"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "connections:write", "files:read", "files:write",
	"groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:write", "users:read",
}

func methods() map[string]method {
	write := []string{"chat:write"}
	history := []string{"channels:history", "groups:history", "im:history", "mpim:history"}
	assistant := []string{"assistant:write"}
	one := func(names ...string) []string { return names }
	return map[string]method{
		"auth.test":                             {run: (*Server).authTest},
		"apps.connections.open":                 {run: (*Server).connectionsOpen, scopes: one("connections:write"), app: true},
		"chat.postMessage":                      {run: (*Server).chatPostMessage, scopes: write, required: one("channel")},
		"chat.postEphemeral":                    {run: (*Server).chatPostEphemeral, scopes: write, required: one("channel", "user")},
		"chat.update":                           {run: (*Server).chatUpdate, scopes: write, required: one("channel", "ts")},
		"chat.delete":                           {run: (*Server).chatDelete, scopes: write, required: one("channel", "ts")},
		"chat.startStream":                      {run: (*Server).chatStartStream, scopes: write, required: one("channel", "thread_ts")},
		"chat.appendStream":                     {run: (*Server).chatAppendStream, scopes: write, required: one("channel", "ts")},
		"chat.stopStream":                       {run: (*Server).chatStopStream, scopes: write, required: one("channel", "ts")},
		"conversations.replies":                 {run: (*Server).conversationsReplies, scopes: history, required: one("channel", "ts")},
		"conversations.history":                 {run: (*Server).conversationsHistory, scopes: history, required: one("channel")},
		"conversations.info":                    {run: (*Server).conversationsInfo, scopes: one("channels:read", "groups:read", "im:read", "mpim:read"), required: one("channel")},
		"conversations.open":                    {run: (*Server).conversationsOpen, scopes: one("im:write"), required: one("users")},
		"reactions.add":                         {run: (*Server).reactionsAdd, scopes: one("reactions:write"), required: one("channel", "timestamp", "name")},
		"reactions.remove":                      {run: (*Server).reactionsRemove, scopes: one("reactions:write"), required: one("channel", "timestamp", "name")},
		"users.info":                            {run: (*Server).usersInfo, scopes: one("users:read"), required: one("user")},
		"files.info":                            {run: (*Server).filesInfo, scopes: one("files:read"), required: one("file")},
		"files.delete":                          {run: (*Server).filesDelete, scopes: one("files:write"), required: one("file")},
		"files.getUploadURLExternal":            {run: (*Server).getUploadURL, scopes: one("files:write"), required: one("filename", "length")},
		"files.completeUploadExternal":          {run: (*Server).completeUpload, scopes: one("files:write"), required: one("files")},
		"assistant.threads.setStatus":           {run: (*Server).setStatus, scopes: one("assistant:write", "chat:write"), required: one("channel_id", "thread_ts")},
		"assistant.threads.setTitle":            {run: (*Server).setTitle, scopes: assistant, required: one("channel_id", "thread_ts", "title")},
		"assistant.threads.setSuggestedPrompts": {run: (*Server).setPrompts, scopes: assistant, required: one("channel_id", "prompts")},
		"agents.sessions.setStatus":             {run: (*Server).setSession, scopes: one("assistant:write", "chat:write"), required: one("channel_id", "status")},
	}
}

func (s *Server) authTest(*request) (answer, error) {
	return answer{
		"url": "https://fake.slack.com/", "team": "Fake", "user": "parley", "team_id": TeamID, "user_id": BotUser, "bot_id": BotID, "is_enterprise_install": false,
	}, nil
}

func (s *Server) usersInfo(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.world.users[r.params["user"]]
	if !ok {
		return nil, refuse("user_not_found")
	}
	team := u.Team
	if team == "" {
		team = TeamID
	}
	return answer{"user": map[string]any{
		"id": u.ID, "team_id": team, "name": u.Name, "real_name": u.Name, "is_bot": u.Bot != "",
		"profile": map[string]any{"display_name": u.Name, "real_name": u.Name},
	}}, nil
}

func (s *Server) conversationsInfo(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.world.see(r.params["channel"])
	if err != nil {
		return nil, err
	}
	return answer{"channel": c.wire()}, nil
}

func (c *channel) wire() map[string]any {
	return map[string]any{
		"id": c.ID, "name": c.Name, "is_im": c.Kind == IM, "is_mpim": c.Kind == MPIM, "is_channel": c.Kind == Channel, "is_private": c.Kind != Channel,
		"is_member": !c.Out, "user": c.User, "is_archived": c.archived,
	}
}

func (s *Server) conversationsOpen(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.world.users[r.params["users"]]
	if !ok {
		return nil, refuse("user_not_found")
	}
	return answer{"channel": map[string]any{"id": s.world.im(u)}}, nil
}

// page answers with a page of messages. The lock is held.
func (s *Server) page(r *request, list []*message) answer {
	at := 0
	if n, err := strconv.Atoi(r.params["cursor"]); err == nil {
		at = min(n, len(list))
	}
	to := min(at+min(max(r.int("limit", 100), 1), 999), len(list))
	out := answer{"has_more": to < len(list)}
	msgs := []map[string]any{}
	for _, m := range list[at:to] {
		msgs = append(msgs, m.wire(&s.world, r.bool("include_all_metadata")))
	}
	out["messages"] = msgs
	if to < len(list) {
		out["response_metadata"] = map[string]any{"next_cursor": strconv.Itoa(to)}
	}
	return out
}

// within says whether a message lies in the times that a call asks for.
func within(r *request, m *message) bool {
	ts := Number(m.ts)
	inclusive := r.bool("inclusive")
	if v := r.params["latest"]; v != "" && (ts > Number(v) || ts == Number(v) && !inclusive) {
		return false
	}
	if v := r.params["oldest"]; v != "" && v != "0" && (ts < Number(v) || ts == Number(v) && !inclusive) {
		return false
	}
	return true
}

// conversationsReplies lists a thread, oldest first; its root is always there.
func (s *Server) conversationsReplies(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.world.see(r.params["channel"])
	if err != nil {
		return nil, err
	}
	root := r.params["ts"]
	if c.byTS[root] == nil {
		return nil, refuse("thread_not_found")
	}
	list := slices.DeleteFunc(c.thread(root), func(m *message) bool { return m.ts != root && !within(r, m) })
	return s.page(r, list), nil
}

// conversationsHistory lists what stands in the conversation itself, newest first.
func (s *Server) conversationsHistory(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.world.see(r.params["channel"])
	if err != nil {
		return nil, err
	}
	var list []*message
	for _, m := range slices.Backward(c.messages) {
		if m.only == "" && m.deleted.IsZero() && (m.thread == "" || m.thread == m.ts) && within(r, m) {
			list = append(list, m)
		}
	}
	return s.page(r, list), nil
}

// target finds the message of a reaction. The lock is held.
func (s *Server) target(r *request) (*message, error) {
	c, err := s.world.reach(r.params["channel"])
	if err != nil {
		return nil, err
	}
	m := c.visible(r.params["timestamp"])
	switch {
	case m == nil:
		return nil, refuse("message_not_found")
	case !contains([]string{"eyes", "hourglass_flowing_sand", "white_check_mark", "x", "thumbsup"}, r.params["name"]):
		return nil, refuse("invalid_name")
	}
	return m, nil
}

func (s *Server) reactionsAdd(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.target(r)
	if err != nil {
		return nil, err
	}
	if contains(m.reactions[r.params["name"]], BotUser) {
		return nil, refuse("already_reacted")
	}
	if m.reactions == nil {
		m.reactions = map[string][]string{}
	}
	m.reactions[r.params["name"]] = append(m.reactions[r.params["name"]], BotUser)
	s.changed.fire()
	return nil, nil
}

func (s *Server) reactionsRemove(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.target(r)
	if err != nil {
		return nil, err
	}
	name := r.params["name"]
	if !contains(m.reactions[name], BotUser) {
		return nil, refuse("no_reaction")
	}
	m.reactions[name] = slices.DeleteFunc(m.reactions[name], func(u string) bool { return u == BotUser })
	s.changed.fire()
	return nil, nil
}

// talk finds the thread that an assistant method names. The lock is held.
func (s *Server) talk(r *request) (*channel, string, error) {
	c, err := s.world.reach(r.params["channel_id"])
	if err != nil {
		return nil, "", err
	}
	thread := r.params["thread_ts"]
	if thread != "" && c.byTS[thread] == nil {
		return nil, "", refuse("invalid_thread_ts")
	}
	return c, thread, nil
}

func (s *Server) setStatus(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.talk(r)
	if err != nil {
		return nil, err
	}
	s.record.statuses = append(s.record.statuses, Status{c.ID, thread, r.params["status"], s.opt.now()})
	s.changed.fire()
	return nil, nil
}

func (s *Server) setSession(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.talk(r)
	if err != nil {
		return nil, err
	}
	if !contains([]string{"processing", "active", "suspended", "closed"}, r.params["status"]) {
		return nil, refuse("invalid_status")
	}
	s.record.sessions = append(s.record.sessions, Status{c.ID, thread, r.params["status"], s.opt.now()})
	s.changed.fire()
	return answer{"status": r.params["status"], "agent_status": r.params["status"]}, nil
}

func (s *Server) setTitle(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.talk(r)
	switch {
	case err != nil:
		return nil, err
	case c.Kind != IM:
		return nil, refuse("channel_not_supported")
	case len([]rune(r.params["title"])) > 200:
		return nil, refuse("title_too_long")
	}
	s.record.titles = append(s.record.titles, Title{c.ID, thread, r.params["title"]})
	s.changed.fire()
	return nil, nil
}

func (s *Server) setPrompts(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, thread, err := s.talk(r)
	if err != nil {
		return nil, err
	}
	p := Prompts{Channel: c.ID, Thread: thread}
	if json.Unmarshal([]byte(r.params["prompts"]), &p.Prompts) != nil || len(p.Prompts) == 0 || len(p.Prompts) > 4 {
		return nil, refuse("invalid_arguments")
	}
	s.record.prompts = append(s.record.prompts, p)
	s.changed.fire()
	return nil, nil
}
