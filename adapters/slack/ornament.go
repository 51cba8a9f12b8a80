package slack

import (
	"context"
	"strings"
	"sync"

	lib "github.com/slack-go/slack"
	"go.uber.org/zap"

	"parley/gateway/chat"
)

// status is shown as "parley is thinking…" where people look at the thread.
const status = "is thinking…"

// prompts are offered in a new thread of the assistant pane.
var prompts = []lib.AssistantThreadsPrompt{
	{Title: "What can you do?", Message: "What can you help me with?"},
	{Title: "Write a draft", Message: "Help me to write a message to my team."},
	{Title: "Explain something", Message: "Explain to me, with an example:"},
	{Title: "Go on with earlier work", Message: "!sessions"},
}

// Typing implements chat.Typer: a status on the thread, which Slack takes away with
// the next message. Outside of threads there is none.
func (a *Adapter) Typing(ctx context.Context, to chat.Address) error {
	if to.Thread == "" {
		return nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	err := a.api.SetAssistantThreadsStatusContext(ctx, lib.AssistantThreadsSetStatusParameters{
		ChannelID: string(to.Chat), ThreadTS: string(to.Thread), Status: status,
	})
	return deliveryError(err, repeated)
}

// SetTitle implements chat.Titler: threads of the assistant pane have titles, those
// in channels have none.
func (a *Adapter) SetTitle(ctx context.Context, at chat.Address, title string) error {
	if at.Thread == "" || !directChat(string(at.Chat), "") {
		return nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	title = chat.OneLine(title)
	if r := []rune(title); len(r) > titleLimit {
		title = string(r[:titleLimit])
	}
	err := a.api.SetAssistantThreadsTitleContext(ctx, lib.AssistantThreadsSetTitleParameters{
		ChannelID: string(at.Chat), ThreadTS: string(at.Thread), Title: title,
	})
	return deliveryError(err, repeated)
}

// suggest offers prompts; nobody waits for them.
func (a *Adapter) suggest(ctx context.Context, channel, thread string) {
	ctx, cancel := context.WithTimeout(ctx, nameLimit)
	defer cancel()
	err := a.api.SetAssistantThreadsSuggestedPromptsContext(ctx, lib.AssistantThreadsSetSuggestedPromptsParameters{
		ChannelID: channel, ThreadTS: thread, Prompts: prompts[:min(len(prompts), promptsLimit)],
	})
	if err != nil {
		a.log.Debug("suggested prompts", zap.String("reason", explain(err)))
	}
}

// sessionIdle takes back what Slack's stop control waits for.
func (a *Adapter) sessionIdle(ctx context.Context, channel, thread string) {
	ctx, cancel := context.WithTimeout(ctx, nameLimit)
	defer cancel()
	_, err := a.api.SetAgentSessionStatusContext(ctx, lib.AgentSessionSetStatusParameters{Status: "active", ChannelID: channel, ThreadTS: thread})
	if err != nil {
		a.log.Debug("session status", zap.String("reason", explain(err)))
	}
}

// reactions are emoji that every workspace has.
var reactions = map[chat.Reaction]string{
	chat.ReactSeen: "eyes", chat.ReactWorking: "hourglass_flowing_sand", chat.ReactDone: "white_check_mark", chat.ReactFailed: "x",
}

// marks remembers which reaction the bot has on a message, so that the next one can
// take its place. It is safe for concurrent use.
type marks struct {
	mu  sync.Mutex
	set map[streamID]chat.Reaction
}

// marksMost bounds what is remembered.
const marksMost = 2000

func newMarks() *marks { return &marks{set: map[streamID]chat.Reaction{}} }

// swap remembers the new reaction and returns the old ones to be taken away: all
// that it could be, if an earlier process set it.
func (m *marks) swap(k streamID, r chat.Reaction) []chat.Reaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.set[k]
	if len(m.set) >= marksMost {
		clear(m.set)
	}
	m.set[k] = r
	switch {
	case known && (was == r || was == chat.ReactNone):
		return nil
	case known:
		return []chat.Reaction{was}
	case r == chat.ReactSeen:
		return nil
	}
	return []chat.Reaction{chat.ReactSeen, chat.ReactWorking}
}

// React implements chat.Reactor.
func (a *Adapter) React(ctx context.Context, to chat.Address, id chat.MessageID, r chat.Reaction) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	item := lib.NewRefToMessage(string(to.Chat), string(id))
	for _, old := range a.marks.swap(streamID{to.Chat, id}, r) {
		if old == r {
			continue
		}
		err := a.api.RemoveReactionContext(ctx, reactions[old], item)
		if err != nil && !says(err, "no_reaction", "message_not_found") {
			return deliveryError(err, repeated)
		}
	}
	name := reactions[r]
	if name == "" {
		return nil
	}
	err := a.api.AddReactionContext(ctx, name, item)
	if says(err, "already_reacted", "message_not_found", "too_many_reactions", "too_many_emoji") {
		return nil
	}
	return deliveryError(err, repeated)
}

// AckButton implements chat.ButtonAcker. The press itself was acknowledged with its
// envelope; a notice is shown to the one who pressed.
func (a *Adapter) AckButton(ctx context.Context, press chat.ButtonPressed, text string) error {
	if strings.TrimSpace(text) == "" || press.Ack == "" {
		return nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	_, err := a.api.PostEphemeralContext(ctx, string(press.Address.Chat), press.Ack, lib.MsgOptionText(escape.Replace(clean(text)), false), thread(press.Address))
	return deliveryError(err, repeated)
}
