package discord

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// archiveAfter is how many minutes of silence close a thread; a message opens it
// again.
const archiveAfter = 1440

// publicThread is the kind of every thread that parley begins.
const publicThread = discordgo.ChannelTypeGuildPublicThread

// target is the channel that a message goes to. The thread of an address is made if
// it is not there yet; where the bot may make none, the channel stands in for it.
func (a *Adapter) target(ctx context.Context, to chat.Address) (string, error) {
	if to.Thread == "" {
		return string(to.Chat), nil
	}
	if _, ok := a.places.known(string(to.Thread)); ok {
		return string(to.Thread), nil
	}
	if a.places.refuses(string(to.Chat)) {
		return string(to.Chat), nil
	}
	c, err := a.openOn(ctx, to, string(to.Thread), "")
	switch {
	case err == nil:
		return c.ID, nil
	case coded(err, codeUnknownMessage):
		// Its first message is gone, or it never had one: it may be there all the same.
		a.places.put(channel{ID: string(to.Thread), Parent: string(to.Chat), Kind: publicThread})
		return string(to.Thread), nil
	case coded(err, codeNoPermission, codeNoThreadsHere):
		a.log.Warn("threads cannot be begun in a channel; answers go to the channel",
			zap.String("channel", string(to.Chat)), zap.String("fix", "give the bot's role the permission Create Public Threads there, or set platforms.discord."+a.cfg.Name+".threads: false"))
		a.places.refuse(string(to.Chat))
		return string(to.Chat), nil
	}
	return "", err
}

// newThread is the body of a thread that is begun.
type newThread struct {
	Name    string `json:"name"`
	Archive int    `json:"auto_archive_duration"`
	Kind    int    `json:"type,omitempty"`
}

// openOn begins the thread of a message; one that is there already is the same.
func (a *Adapter) openOn(ctx context.Context, in chat.Address, on, title string) (channel, error) {
	if title == "" {
		title = a.nameFor(ctx, string(in.Chat), on)
	}
	c, err := call[channel](ctx, a.api, http.MethodPost, "/channels/"+string(in.Chat)+"/messages/"+on+"/threads", newThread{Name: threadTitle(title), Archive: archiveAfter})
	if coded(err, codeThreadExists) {
		c, err = call[channel](ctx, a.api, http.MethodGet, "/channels/"+on, nil)
	}
	if err == nil {
		a.places.put(c)
	}
	return c, err
}

// nameFor makes a thread's first name out of the message that it begins on.
func (a *Adapter) nameFor(ctx context.Context, in, on string) string {
	m, err := call[message](ctx, a.api, http.MethodGet, "/channels/"+in+"/messages/"+on, nil)
	if err != nil {
		return ""
	}
	return markdown.Plain(mention.ReplaceAllString(a.unaddressed(m.Content), "@…"))
}

// threadTitle is a name that Discord takes.
func threadTitle(s string) string {
	const shown = 60
	if s = strings.Join(strings.Fields(clean(s)), " "); s == "" {
		return "Conversation"
	}
	return clip(s, shown)
}

// unarchive opens a closed thread again.
func (a *Adapter) unarchive(ctx context.Context, id string) error {
	_, err := call[none](ctx, a.api, http.MethodPatch, "/channels/"+id, map[string]bool{"archived": false})
	return err
}

// OpenThread implements chat.Threader.
func (a *Adapter) OpenThread(ctx context.Context, in chat.Address, on chat.MessageID, title string) (chat.Address, error) {
	var c channel
	var err error
	if on != "" {
		c, err = a.openOn(ctx, in, string(on), title)
	} else {
		c, err = call[channel](ctx, a.api, http.MethodPost, "/channels/"+string(in.Chat)+"/threads", newThread{threadTitle(title), archiveAfter, int(publicThread)})
		if err == nil {
			a.places.put(c)
		}
	}
	if err != nil {
		return chat.Address{}, deliveryError(err, creates)
	}
	return chat.Address{Account: in.Account, Chat: in.Chat, Thread: chat.ThreadID(c.ID)}, nil
}

// SetTitle implements chat.Titler.
func (a *Adapter) SetTitle(ctx context.Context, at chat.Address, title string) error {
	if at.Thread == "" {
		return &chat.RejectedError{Reason: "only a thread has a title"}
	}
	name := clip(strings.Join(strings.Fields(clean(title)), " "), threadName)
	if name == "" {
		return &chat.RejectedError{Reason: "the title is empty"}
	}
	_, err := call[none](ctx, a.api, http.MethodPatch, "/channels/"+string(at.Thread), map[string]string{"name": name})
	return deliveryError(err, repeated)
}

// History implements chat.HistoryReader. Before the first answer in a thread comes
// the message that it was begun on.
func (a *Adapter) History(ctx context.Context, at chat.Address, before chat.MessageID, limit int) ([]chat.Quote, error) {
	const most = 100
	limit = min(limit, most)
	where := channelOf(at, before)
	path := fmt.Sprintf("/channels/%s/messages?limit=%d", where, limit)
	if before != "" {
		path += "&before=" + string(before)
	}
	list, err := call[[]message](ctx, a.api, http.MethodGet, path, nil)
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	if len(list) < limit && where == string(at.Thread) {
		if first, err := call[message](ctx, a.api, http.MethodGet, "/channels/"+string(at.Chat)+"/messages/"+string(at.Thread), nil); err == nil {
			list = append(list, first)
		}
	}
	var quotes []chat.Quote
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		if text := a.unaddressed(described(m)); text != "" && m.Author != nil {
			quotes = append(quotes, chat.Quote{
				Message: chat.MessageID(m.ID), From: person(m.Author, m.Member, m.Webhook), Text: text, FromBot: m.Author.ID == a.self().ID,
			})
		}
	}
	return quotes, nil
}
