package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/zap"

	"parley/gateway/chat"
)

// pressed is an interaction: a command, or a button.
type pressed struct {
	ID      string                    `json:"id"`
	App     string                    `json:"application_id"`
	Kind    discordgo.InteractionType `json:"type"`
	Token   string                    `json:"token"`
	Guild   string                    `json:"guild_id"`
	Channel channel                   `json:"channel"`
	Where   string                    `json:"channel_id"`
	Member  *member                   `json:"member"`
	User    *user                     `json:"user"`
	Message *message                  `json:"message"`
	Data    struct {
		Name    string `json:"name"`
		Data    string `json:"custom_id"`
		Options []struct {
			Value any `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

func (p pressed) handle() handle { return handle{p.App, p.ID, p.Token} }

// interaction hands on a command or a press. Only when it is durable Discord is told
// so, within 3 s: a command is then "being thought about", a press is taken note of
// unless somebody had something to say about it.
func (in *intake) interaction(ctx context.Context, raw json.RawMessage) error {
	var p pressed
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	ev := in.a.interaction(p)
	if ev == nil {
		return nil
	}
	in.store(ctx, ev)
	in.tasks.Go(func() {
		kind := discordgo.InteractionResponseDeferredChannelMessageWithSource
		if p.Kind == discordgo.InteractionMessageComponent {
			kind = discordgo.InteractionResponseDeferredMessageUpdate
			wait(ctx, in.a.ackAfter, nil)
		}
		if _, err := in.a.acknowledge(ctx, p.handle(), kind, nil); err != nil && ctx.Err() == nil {
			in.a.log.Warn("an interaction was not acknowledged in time", zap.Error(err))
		}
	})
	return nil
}

// interaction decodes; nil for kinds that are not built.
func (a *Adapter) interaction(p pressed) chat.Event {
	c := p.Channel
	if known, ok := a.places.known(p.Where); ok {
		c = known
	} else if c.ID = p.Where; p.Guild == "" {
		c.Kind = discordgo.ChannelTypeDM
	}
	who := p.User
	if p.Member != nil {
		who = &p.Member.User
	}
	m := message{ID: p.ID, Channel: p.Where, Author: who, Member: p.Member}
	switch p.Kind {
	case discordgo.InteractionApplicationCommand:
		o := a.origin("command", c, m)
		o.Message, o.Reply = "", p.handle().reply()
		return chat.CommandInvoked{Origin: o, Name: strings.ToLower(p.Data.Name), Args: p.args()}
	case discordgo.InteractionMessageComponent:
		if p.Message == nil {
			return nil
		}
		o := a.origin("press", c, m)
		o.Message = chat.MessageID(p.Message.ID)
		if s, ok := a.recent.get(p.Message.ID); ok && s.from.ID == "" {
			o.Address = s.address // it stands in the channel for its thread
			o.Message = messageID(o.Address, p.Where, p.Message.ID)
		}
		return chat.ButtonPressed{Origin: o, Data: p.Data.Data, Ack: string(p.handle().reply())}
	default:
		return nil
	}
}

// args is the text of a command's option.
func (p pressed) args() string {
	var out []string
	for _, o := range p.Data.Options {
		out = append(out, fmt.Sprint(o.Value))
	}
	return strings.TrimSpace(clean(strings.Join(out, " ")))
}

// interactions remembers which interactions have had their first answer, which there
// can be only one of. It is safe for concurrent use.
type interactions struct {
	mu   sync.Mutex
	byID map[string]*firstCall
}

// firstCall is a first answer under way, or done.
type firstCall struct {
	done chan struct{}
	err  error
}

func newInteractions() interactions { return interactions{byID: map[string]*firstCall{}} }

// claim returns the interaction's first answer, and whether the caller has to make
// it.
func (i *interactions) claim(id string, now time.Time) (call *firstCall, first bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c, ok := i.byID[id]; ok {
		return c, false
	}
	for old := range i.byID {
		if now.Sub(madeAt(old)) > 2*tokenLife {
			delete(i.byID, old)
		}
	}
	c := &firstCall{done: make(chan struct{})}
	i.byID[id] = c
	return c, true
}

// open says that an interaction's token is still good.
func (a *Adapter) open(h handle) bool { return a.now().Sub(madeAt(h.id)) < tokenLife }

// answer is the body of a first answer.
type answer struct {
	Kind discordgo.InteractionResponseType `json:"type"`
	Data *outgoing                         `json:"data,omitempty"`
}

// acknowledge gives an interaction its first answer. first is false if somebody else
// has given it; then it has been waited for. That it was given before is no error.
func (a *Adapter) acknowledge(ctx context.Context, h handle, kind discordgo.InteractionResponseType, data *outgoing) (first bool, err error) {
	c, first := a.inter.claim(h.id, a.now())
	if !first {
		select {
		case <-c.done:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	defer close(c.done)
	if _, c.err = call[none](ctx, a.api, http.MethodPost, "/interactions/"+h.id+"/"+h.token+"/callback", answer{kind, data}); coded(c.err, codeAcknowledged) {
		return false, nil // by an earlier process
	}
	return true, c.err
}

// respond answers a command in its own response. done is false if that is closed, or
// has been used for another message already: then an ordinary one is posted.
func (a *Adapter) respond(ctx context.Context, h handle, m chat.Outgoing, out outgoing, b body) (id chat.MessageID, done bool, err error) {
	if m.Ephemeral {
		return a.whisper(ctx, h, out)
	}
	if _, err := a.acknowledge(ctx, h, discordgo.InteractionResponseDeferredChannelMessageWithSource, nil); err != nil {
		return "", ctx.Err() != nil, ctx.Err()
	}
	path := "/webhooks/" + h.app + "/" + h.token + "/messages/@original"
	now, err := call[message](ctx, a.api, http.MethodGet, path, nil)
	loading := now.Flags&discordgo.MessageFlagsLoading != 0
	switch {
	case answered(err, http.StatusNotFound), answered(err, http.StatusUnauthorized):
		return "", false, nil
	case err != nil:
		return "", true, &unsentError{err}
	case !loading && now.Content != strings.TrimSpace(out.Content):
		return "", false, nil
	}
	sent, err := a.upload(ctx, http.MethodPatch, path, b, len(m.Files) > 0)
	return chat.MessageID(sent.ID), true, err
}

// whisper says something that only the person sees.
func (a *Adapter) whisper(ctx context.Context, h handle, out outgoing) (chat.MessageID, bool, error) {
	out.Flags |= int(discordgo.MessageFlagsEphemeral)
	first, err := a.acknowledge(ctx, h, discordgo.InteractionResponseChannelMessageWithSource, &out)
	if err == nil && !first {
		_, err = call[none](ctx, a.api, http.MethodPost, "/webhooks/"+h.app+"/"+h.token, out)
	}
	return chat.MessageID(hidden + h.id), true, err
}

// AckButton implements chat.ButtonAcker: the client stops waiting, and a notice is
// shown to the one who pressed.
func (a *Adapter) AckButton(ctx context.Context, press chat.ButtonPressed, text string) error {
	h, ok := parseInteraction(chat.ReplyHandle(press.Ack))
	if !ok || !a.open(h) {
		return nil
	}
	var err error
	if text == "" {
		_, err = a.acknowledge(ctx, h, discordgo.InteractionResponseDeferredMessageUpdate, nil)
	} else {
		var out outgoing
		if out, err = composed(chat.Outgoing{Text: text}); err == nil {
			_, _, err = a.whisper(ctx, h, out)
		}
	}
	if coded(err, codeUnknownInter, codeUnknownWebhook) {
		return nil // it is too late
	}
	return deliveryError(err, repeated)
}
