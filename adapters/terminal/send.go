package terminal

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// findAmong is how far back Find looks.
const findAmong = 1000

// Send implements chat.Adapter. An error means "try again"; what is printed
// already is not printed twice.
func (a *Adapter) Send(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	a.know(m.Key)
	a.screen.show(m.Key, m)
	id, err := a.deps.Timeline.Append(ctx, to, entryOf(m))
	if err != nil {
		return "", err
	}
	a.settle(id, m)
	return id, nil
}

// Edit implements chat.Editor. Interim edits are printed and not recorded.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) error {
	a.know(m.Key)
	a.screen.show(m.Key, m)
	if !m.Live {
		if err := a.deps.Timeline.Replace(ctx, to, id, entryOf(m)); err != nil {
			return err
		}
	}
	a.settle(id, m)
	return nil
}

// settle offers the buttons and ends the turn's wait with its last words; a
// question does not end it.
func (a *Adapter) settle(id chat.MessageID, m chat.Outgoing) {
	asked := a.asks(id)
	if line := a.offer(id, m.Buttons); line != "" {
		a.screen.choices(m.Key, line)
		return
	}
	if asked {
		return // it is decided: the turn goes on
	}
	a.setBusy(m.Live)
	a.screen.prompt(!m.Live)
}

// Delete implements chat.Deleter: what was printed stays on the screen.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id chat.MessageID) error {
	a.offer(id, nil)
	if err := a.deps.Timeline.Remove(ctx, to, id); err != nil && !errors.Is(err, chat.ErrGone) {
		return err
	}
	return nil
}

// Typing implements chat.Typer: the bot is at work, so that Ctrl-C stops it.
func (a *Adapter) Typing(context.Context, chat.Address) error {
	a.setBusy(true)
	return nil
}

// AckButton implements chat.ButtonAcker.
func (a *Adapter) AckButton(_ context.Context, _ chat.ButtonPressed, text string) error {
	if text != "" {
		a.screen.notice(text)
	}
	return nil
}

// Find implements chat.Finder: an entry is recorded after it was printed.
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

// seed marks what is in the Timeline as shown, since an earlier process printed it,
// and offers the person's latest entries once more: an entry is appended before its
// event, so that a crash between the two would leave a message that nobody answers.
func (a *Adapter) seed(ctx context.Context, sink chat.Sink) error {
	list, err := a.deps.Timeline.List(ctx, a.address, followed)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !e.Live {
			a.know(e.Key)
		}
		if e.From == "" || time.Since(e.At) > reofferFor {
			continue
		}
		if err := sink(ctx, a.message(e.ID, e.Text)); err != nil {
			return err
		}
	}
	return nil
}

// watch prints what other processes post in the same conversation: any of them may
// be the one that answers.
func (a *Adapter) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.deps.Timeline.Watch(ctx, a.address, func() { a.catchUp(ctx) })
		if err != nil && ctx.Err() == nil {
			a.deps.Log.Warn("terminal lost its timeline and tries again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryWait):
		}
	}
}

func (a *Adapter) catchUp(ctx context.Context) {
	list, err := a.deps.Timeline.List(ctx, a.address, followed)
	if err != nil {
		if ctx.Err() == nil {
			a.deps.Log.Warn("terminal could not read its timeline", zap.Error(err))
		}
		return
	}
	for _, e := range list {
		if e.Live || a.know(e.Key) {
			continue
		}
		text := e.Text
		if e.From != "" {
			text = "you, elsewhere: " + text
		}
		m := chat.Outgoing{Key: e.Key, Text: text, Progress: e.Progress, Buttons: e.Buttons}
		a.screen.show(e.Key, m)
		if e.From == "" {
			a.settle(e.ID, m)
		}
	}
}

func entryOf(m chat.Outgoing) chat.Entry {
	text := m.Text
	for _, f := range m.Files {
		text = strings.TrimSpace(text + "\n\nfile: " + f.Path)
	}
	return chat.Entry{Key: m.Key, Text: text, Progress: m.Progress, Buttons: m.Buttons, Live: m.Live}
}
