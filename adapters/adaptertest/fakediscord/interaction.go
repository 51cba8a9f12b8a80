package fakediscord

import (
	"encoding/json"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"
)

const (
	firstAnswer = 3 * time.Second
	tokenLife   = 15 * time.Minute
)

// interaction is one press or command.
type interaction struct {
	id, token, channel string
	person             User
	at                 time.Time
	on                 *Message // the pressed message
	answered           bool
	// kind is the type of the first answer, original the message it made.
	kind     int
	hidden   bool
	original *Message
	notice   string
}

// Command is a registered application command.
type Command struct {
	ID          string          `json:"id,omitempty"`
	Application string          `json:"application_id,omitempty"`
	Version     string          `json:"version,omitempty"`
	Type        int             `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Options     []CommandOption `json:"options,omitempty"`
	Contexts    []int           `json:"contexts,omitempty"`
	Integration []int           `json:"integration_types,omitempty"`
	Permissions *string         `json:"default_member_permissions,omitempty"`
}

// CommandOption is an argument of a command.
type CommandOption struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`
}

var commandName = regexp.MustCompile(`^[-_\p{Ll}\p{N}]{1,32}$`)

func (s *Server) getCommands(*request) (any, error) { return orEmpty(s.commands), nil }

func (s *Server) putCommands(r *request) (any, error) {
	var list []Command
	if err := s.into(r, &list); err != nil {
		return nil, err
	}
	if len(list) > 100 {
		return nil, refuse(http.StatusBadRequest, 30032, "Maximum number of application commands reached (100)")
	}
	for i := range list {
		c := &list[i]
		if !commandName.MatchString(c.Name) {
			return nil, invalid("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		texts := []string{c.Description}
		for _, o := range c.Options {
			if !commandName.MatchString(o.Name) {
				return nil, invalid("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
			}
			texts = append(texts, o.Description)
		}
		for _, t := range texts {
			if n := utf8.RuneCountInString(t); n < 1 || n > 100 {
				return nil, invalid("description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
			}
		}
		c.ID, c.Application, c.Version = s.snowflake(), ApplicationID, s.snowflake()
		if c.Type == 0 {
			c.Type = 1
		}
	}
	s.commands = list
	return list, nil
}

// Commands are the registered ones.
func (s *Server) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Command{}, s.commands...)
}

// Press presses a button of a message and returns the interaction's id.
func (s *Server) Press(channelID, message, customID string, by User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.world.channels[channelID].byID[message]
	i := s.newInteraction(channelID, by)
	i.on = m
	s.interact(i, 3, object{"custom_id": customID, "component_type": 2})
	return i.id
}

// Invoke uses a slash command; args is the text of its only option.
func (s *Server) Invoke(channelID, name, args string, by User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.newInteraction(channelID, by)
	options := []object{}
	if args != "" {
		options = append(options, object{"type": 3, "name": "text", "value": args})
	}
	s.interact(i, 2, object{"id": "1", "name": name, "type": 1, "options": options})
	return i.id
}

func (s *Server) newInteraction(channelID string, by User) *interaction {
	i := &interaction{id: s.snowflake(), channel: channelID, person: by, at: s.opt.now()}
	i.token = "aW50ZXJhY3Rpb24" + i.id
	s.pending[i.id], s.tokens[i.token] = i, i
	return i
}

func (s *Server) interact(i *interaction, kind int, data object) {
	c := s.world.channels[i.channel]
	o := object{
		"id": i.id, "application_id": ApplicationID, "type": kind, "token": i.token, "version": 1, "data": data,
		"channel_id": c.id, "channel": s.channelJSON(c), "locale": "en-US", "context": 0, "app_permissions": "0", "attachment_size_limit": maxFile,
	}
	if c.guild == "" {
		o["user"], o["context"] = i.person, 1
	} else {
		o["guild_id"] = c.guild
		o["member"] = object{"user": i.person, "roles": orEmpty(s.world.roles[i.person.ID]), "permissions": "0"}
	}
	if i.on != nil {
		o["message"] = s.messageJSON(i.on, intentContent)
	}
	s.dispatch(0, "INTERACTION_CREATE", o)
	s.touch()
}

// Answer is what the person sees of an interaction.
type Answer struct {
	Answered bool
	// Kind is the type of the first answer: 4 a message, 5 "is thinking", 6 nothing.
	Kind int
	// Hidden says that only the person sees it.
	Hidden bool
	// Message is the id of the original response, Text what it says.
	Message, Text string
	// Notice is the last hidden follow-up.
	Notice string
}

// Answered returns what became of an interaction.
func (s *Server) Answered(id string) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.pending[id]
	a := Answer{Answered: i.answered, Kind: i.kind, Hidden: i.hidden, Notice: i.notice}
	if i.original != nil {
		a.Message, a.Text = i.original.ID, i.original.Content
	}
	return a
}

func unknownInteraction() error {
	return refuse(http.StatusNotFound, 10062, "Unknown interaction")
}

func (s *Server) callback(r *request) (any, error) {
	var in struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	i := s.pending[r.parts[0]]
	switch {
	case i == nil || i.token != r.parts[1] || !i.answered && s.opt.now().Sub(i.at) > firstAnswer:
		return nil, unknownInteraction()
	case i.answered:
		return nil, refuse(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
	}
	data := content{}
	if len(in.Data) > 0 {
		inner := *r
		inner.Body = in.Data
		if err := s.into(&inner, &data); err != nil {
			return nil, err
		}
	}
	i.hidden = data.Flags&flagHidden != 0
	switch in.Type {
	case 4:
		inner := *r
		inner.Body = in.Data
		if _, err := s.original(&inner, i, &data); err != nil {
			return nil, err
		}
	case 5:
		s.thinking(i)
	case 6:
		if i.on == nil {
			return nil, invalid("type", "INTERACTION_TYPE_INVALID", "only for components")
		}
	default:
		return nil, invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5, 6}.")
	}
	i.answered, i.kind = true, in.Type
	return nil, nil
}

// original makes the message of the first answer.
func (s *Server) original(r *request, i *interaction, in *content) (*Message, error) {
	m := &Message{Channel: i.channel, Author: botUser(), Webhook: ApplicationID, kind: 20, Ephemeral: in.Flags&flagHidden != 0}
	if err := s.checked(r, in, m); err != nil {
		return nil, err
	}
	if m.Content == "" {
		return nil, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	s.put(s.world.channels[i.channel], m)
	if i.original == nil {
		i.original = m
	}
	return m, nil
}

// thinking is the message that says "is thinking".
func (s *Server) thinking(i *interaction) {
	i.original = &Message{Channel: i.channel, Author: botUser(), Webhook: ApplicationID, kind: 20, Flags: flagLoading, Ephemeral: i.hidden}
	s.put(s.world.channels[i.channel], i.original)
}

// alive finds an interaction by its token.
func (s *Server) alive(r *request) (*interaction, error) {
	i := s.tokens[r.parts[1]]
	switch {
	case i == nil || r.parts[0] != ApplicationID:
		return nil, refuse(http.StatusNotFound, 10015, "Unknown Webhook")
	case s.opt.now().Sub(i.at) > tokenLife:
		return nil, refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	case !i.answered:
		return nil, refuse(http.StatusNotFound, 10015, "Unknown Webhook")
	}
	return i, nil
}

func (s *Server) followUp(r *request) (any, error) {
	var in content
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	i, err := s.alive(r)
	if err != nil {
		return nil, err
	}
	if i.original != nil && i.original.Flags&flagLoading != 0 {
		return s.revise(r, s.world.channels[i.channel], i.original, &in)
	}
	m, err := s.original(r, i, &in)
	if err != nil {
		return nil, err
	}
	if m.Ephemeral {
		i.notice = m.Content
	}
	return s.sentJSON(m), nil
}

// response finds the message that a webhook's path names.
func (s *Server) response(r *request) (*interaction, *Message, error) {
	i, err := s.alive(r)
	if err != nil {
		return nil, nil, err
	}
	m := i.original
	if r.parts[2] != "@original" {
		m = s.world.channels[i.channel].byID[r.parts[2]]
	}
	if m == nil || m.Deleted || m.Webhook != ApplicationID {
		return nil, nil, unknownMessage()
	}
	return i, m, nil
}

func (s *Server) getResponse(r *request) (any, error) {
	_, m, err := s.response(r)
	if err != nil {
		return nil, err
	}
	return s.sentJSON(m), nil
}

func (s *Server) editResponse(r *request) (any, error) {
	var in content
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	i, m, err := s.response(r)
	if err != nil {
		return nil, err
	}
	if err := s.attach(r, m); err != nil {
		return nil, err
	}
	return s.revise(r, s.world.channels[i.channel], m, &in)
}

func (s *Server) deleteResponse(r *request) (any, error) {
	i, m, err := s.response(r)
	if err != nil {
		return nil, err
	}
	s.remove(s.world.channels[i.channel], m)
	return nil, nil
}
