package discord

import (
	"strings"

	"parley/gateway/chat"
)

// channelOf is the channel that a message of an address stands in. The message that
// a thread was begun on has the thread's id and stands in the channel.
func channelOf(at chat.Address, id chat.MessageID) string {
	if at.Thread == "" || string(id) == string(at.Thread) {
		return string(at.Chat)
	}
	return string(at.Thread)
}

// hidden begins the ids of messages that only one person sees: they cannot be
// reached again.
const hidden = "hidden/"

// messageID names a message; one that stands elsewhere than its address says is
// named with its channel.
func messageID(to chat.Address, where, id string) chat.MessageID {
	if where == channelOf(to, chat.MessageID(id)) {
		return chat.MessageID(id)
	}
	return chat.MessageID(where + "/" + id)
}

// split is the inverse of messageID; ok is false for what cannot be reached.
func split(at chat.Address, id chat.MessageID) (where, message string, ok bool) {
	if strings.HasPrefix(string(id), hidden) {
		return "", "", false
	}
	if channel, message, ok := strings.Cut(string(id), "/"); ok {
		return channel, message, true
	}
	return channelOf(at, id), string(id), true
}

// reply is the handle of a message: what answers it points at it.
func reply(m message) chat.ReplyHandle { return chat.ReplyHandle("m/" + m.Channel + "/" + m.ID) }

func parseReply(h chat.ReplyHandle) (channel, message string, ok bool) {
	parts := strings.Split(string(h), "/")
	if len(parts) != 3 || parts[0] != "m" {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// handle is what it takes to answer an interaction.
type handle struct{ app, id, token string }

func (h handle) reply() chat.ReplyHandle {
	return chat.ReplyHandle("i/" + h.app + "/" + h.id + "/" + h.token)
}

func parseInteraction(h chat.ReplyHandle) (handle, bool) {
	parts := strings.SplitN(string(h), "/", 4)
	if len(parts) != 4 || parts[0] != "i" {
		return handle{}, false
	}
	return handle{parts[1], parts[2], parts[3]}, true
}
