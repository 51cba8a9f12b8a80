package fakediscord

import (
	"net/http"
	"slices"
	"unicode/utf8"
)

// threadExists is Discord's code for a second thread on a message.
const threadExists = 160004

func (s *Server) getChannel(r *request) (any, error) {
	c, err := s.reach(r.parts[0])
	if err != nil {
		return nil, err
	}
	return s.channelJSON(c), nil
}

// openDirect answers with the direct chat of a person, which it makes if there is
// none.
func (s *Server) openDirect(r *request) (any, error) {
	var in struct {
		Recipient string `json:"recipient_id"`
	}
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	for _, c := range s.world.channels {
		if c.kind == DM && c.recipient.ID == in.Recipient {
			return s.channelJSON(c), nil
		}
	}
	if number(in.Recipient) == 0 {
		return nil, invalid("recipient_id", "NUMBER_TYPE_COERCE", "Value is not snowflake.")
	}
	return s.channelJSON(s.newChannel(channel{kind: DM, recipient: User{ID: in.Recipient}})), nil
}

func (s *Server) patchChannel(r *request) (any, error) {
	var in struct {
		Name     *string `json:"name"`
		Archived *bool   `json:"archived"`
	}
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	c, err := s.reach(r.parts[0])
	if err != nil {
		return nil, err
	}
	if c.kind != Thread || c.locked {
		return nil, missingPermission()
	}
	if in.Name != nil {
		if n := utf8.RuneCountInString(*in.Name); n < 1 || n > 100 {
			return nil, invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		}
		c.name = *in.Name
	}
	if in.Archived != nil {
		c.archived = *in.Archived
	}
	s.dispatch(intentGuilds, "THREAD_UPDATE", s.channelJSON(c))
	return s.channelJSON(c), nil
}

// threadBody is the body of both ways to begin a thread.
type threadBody struct {
	Name        string `json:"name"`
	AutoArchive int    `json:"auto_archive_duration"`
	Type        int    `json:"type"`
}

func (s *Server) newThread(r *request, id string) (any, error) {
	var in threadBody
	if err := s.into(r, &in); err != nil {
		return nil, err
	}
	c, err := s.reach(r.parts[0], CreateThreads)
	if err != nil {
		return nil, err
	}
	switch {
	case c.kind != Text:
		return nil, refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	case id != "" && (c.byID[id] == nil || c.byID[id].Deleted):
		return nil, unknownMessage()
	case id != "" && s.world.channels[id] != nil:
		return nil, refuse(http.StatusBadRequest, threadExists, "A thread has already been created for this message")
	}
	if n := utf8.RuneCountInString(in.Name); n < 1 || n > 100 {
		return nil, invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	if in.AutoArchive != 0 && !slices.Contains([]int{60, 1440, 4320, 10080}, in.AutoArchive) {
		return nil, invalid("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
	t := s.newChannel(channel{id: id, guild: c.guild, parent: c.id, name: in.Name, owner: BotID, kind: Thread})
	s.dispatch(intentGuilds, "THREAD_CREATE", s.channelJSON(t))
	return s.channelJSON(t), nil
}

func (s *Server) startThread(r *request) (any, error) { return s.newThread(r, r.parts[1]) }

func (s *Server) openThread(r *request) (any, error) { return s.newThread(r, "") }

// StartThread makes a thread of a person, on a message or, with "", on its own.
func (s *Server) StartThread(parent, on, name, owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.newChannel(channel{id: on, guild: s.world.channels[parent].guild, parent: parent, name: name, owner: owner, kind: Thread})
	s.dispatch(intentGuilds, "THREAD_CREATE", s.channelJSON(t))
	s.touch()
	return t.id
}

func (s *Server) startTyping(r *request) (any, error) {
	c, err := s.reach(r.parts[0], SendMessages)
	if err != nil {
		return nil, err
	}
	c.typing++
	return nil, nil
}
