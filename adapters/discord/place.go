package discord

import (
	"context"
	"maps"
	"net/http"
	"sync"

	"github.com/bwmarrin/discordgo"

	"parley/gateway/chat"
)

// channel is a channel, a direct chat or a thread, as far as it matters.
type channel struct {
	ID      string                `json:"id"`
	Guild   string                `json:"guild_id"`
	Parent  string                `json:"parent_id"`
	Name    string                `json:"name"`
	Owner   string                `json:"owner_id"`
	Kind    discordgo.ChannelType `json:"type"`
	Last    string                `json:"last_message_id"`
	Archive struct {
		Archived bool `json:"archived"`
		Locked   bool `json:"locked"`
	} `json:"thread_metadata"`
}

func (c channel) thread() bool {
	switch c.Kind {
	case discordgo.ChannelTypeGuildNewsThread, discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread:
		return true
	default:
		return false
	}
}

// opensThreads says that threads can be begun on the channel's messages.
func (c channel) opensThreads() bool {
	return c.Kind == discordgo.ChannelTypeGuildText || c.Kind == discordgo.ChannelTypeGuildNews
}

// at is the address of what is said in the channel.
func (a *Adapter) at(c channel) chat.Address {
	if c.thread() {
		return chat.Address{Account: a.account, Chat: chat.ChatID(c.Parent), Thread: chat.ThreadID(c.ID)}
	}
	return chat.Address{Account: a.account, Chat: chat.ChatID(c.ID)}
}

// places is what the bot knows of channels, from the gateway or, where that did not
// tell, from REST. It is safe for concurrent use.
type places struct {
	mu       sync.Mutex
	channels map[string]channel
	refused  map[string]bool // channels where the bot may begin no threads
	roles    map[string]bool // the bot's own roles, one a guild (MEN-005)
}

func newPlaces() places {
	return places{channels: map[string]channel{}, refused: map[string]bool{}, roles: map[string]bool{}}
}

// maxPlaces bounds what is remembered of channels. Each mention makes a thread, and few
// are ever deleted, so they are forgotten first, those that are closed before others;
// one that is spoken in again is asked for.
const maxPlaces = 100_000

func (p *places) put(cs ...channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		for _, idle := range []func(channel) bool{func(c channel) bool { return c.Archive.Archived }, channel.thread} {
			if len(p.channels) >= maxPlaces {
				maps.DeleteFunc(p.channels, func(_ string, c channel) bool { return idle(c) })
			}
		}
		if _, known := p.channels[c.ID]; known || len(p.channels) < maxPlaces {
			p.channels[c.ID] = c
		}
	}
}

func (p *places) remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.channels, id)
}

func (p *places) known(id string) (channel, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.channels[id]
	return c, ok
}

func (p *places) refuse(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) >= maxPlaces {
		clear(p.refused)
	}
	p.refused[id] = true
}

func (p *places) refuses(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[id]
}

func (p *places) own(role string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roles[role] = true
}

func (p *places) owns(role string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roles[role]
}

// place finds a channel.
func (a *Adapter) place(ctx context.Context, id string) (channel, error) {
	if c, ok := a.places.known(id); ok {
		return c, nil
	}
	c, err := call[channel](ctx, a.api, http.MethodGet, "/channels/"+id, nil)
	if err == nil {
		a.places.put(c)
	}
	return c, err
}
