package web

import (
	"context"
	"errors"
	"strings"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// findAmong is how far back Find looks; a delivery is resolved right after the
// start that follows its crash.
const findAmong = 1000

// Send implements chat.Adapter. The Timeline adds a key once, so that an error
// always means "try again" and never leaves a message twice.
func (a *Adapter) Send(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	id, err := a.deps.Timeline.Append(ctx, to, entryOf(m))
	if err != nil {
		return "", err
	}
	a.room.stopTyping()
	a.show(ctx)
	return id, nil
}

// Edit implements chat.Editor. An interim edit of a message that this process
// shows as live stays in memory; every other edit is written.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) error {
	if m.Live && a.room.setLive(id, entryOf(m)) {
		return nil
	}
	if err := a.deps.Timeline.Replace(ctx, to, id, entryOf(m)); err != nil {
		return err
	}
	if !m.Live {
		a.room.stopTyping()
	}
	a.show(ctx)
	return nil
}

// Delete implements chat.Deleter.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id chat.MessageID) error {
	if err := a.deps.Timeline.Remove(ctx, to, id); err != nil && !errors.Is(err, chat.ErrGone) {
		return err
	}
	a.show(ctx)
	return nil
}

// Typing implements chat.Typer.
func (a *Adapter) Typing(context.Context, chat.Address) error {
	a.room.startTyping(a.Limits().TypingTTL)
	return nil
}

// AckButton implements chat.ButtonAcker: the page shows the text as a notice.
func (a *Adapter) AckButton(_ context.Context, press chat.ButtonPressed, text string) error {
	a.room.notify(press.Ack, text)
	return nil
}

// Find implements chat.Finder.
func (a *Adapter) Find(ctx context.Context, to chat.Address, at chat.Attempt) (chat.MessageID, bool, error) {
	list, err := a.deps.Timeline.List(ctx, to, findAmong)
	if err != nil {
		return "", false, err
	}
	for _, e := range list {
		if e.Key == at.Key {
			return e.ID, true, nil
		}
	}
	return "", false, nil
}

// PublishCommands implements chat.CommandPublisher.
func (a *Adapter) PublishCommands(_ context.Context, cmds []chat.CommandInfo) error {
	a.room.setCommands(cmds)
	return nil
}

// show brings what was just written to the page. The write stands whatever
// happens here: the next change or connection reads it.
func (a *Adapter) show(ctx context.Context) {
	if err := a.refresh(ctx); err != nil {
		a.log.Warn("web chat could not read its timeline", zap.Error(err))
	}
}

// entryOf is a message as the Timeline keeps it. Files stay where they are on
// this machine; the page names them.
func entryOf(m chat.Outgoing) chat.Entry {
	text := m.Text
	for _, f := range m.Files {
		text = strings.TrimSpace(text + "\n\n📎 " + f.Name)
	}
	return chat.Entry{Key: m.Key, Text: text, Progress: m.Progress, Buttons: m.Buttons, Live: m.Live}
}
