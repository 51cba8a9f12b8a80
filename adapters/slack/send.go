package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	lib "github.com/slack-go/slack"

	"parley/gateway/chat"
)

// keyEvent is the type of the metadata that holds a message's idempotency key.
const keyEvent = "parley_message"

// ephemeral begins the ids of messages that one person sees: they cannot be changed.
const ephemeral = "only/"

// Send implements chat.Adapter. Files follow the text as messages of their own; the
// id is the text's.
func (a *Adapter) Send(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	var id chat.MessageID
	var err error
	if m.Text != "" || len(m.Progress) > 0 || len(m.Files) == 0 {
		if id, err = a.sendText(ctx, to, m); err != nil {
			return "", err
		}
	}
	for _, f := range m.Files {
		sent, err := a.sendFile(ctx, to, f, m.Key)
		switch {
		case err != nil && id != "":
			return id, fmt.Errorf("%w: a part of it was sent: %w", chat.ErrAmbiguous, err)
		case err != nil:
			return "", err
		case id == "":
			id = sent
		}
	}
	return id, nil
}

// sendText posts the text in the way that suits it: as a stream while it is being
// written, to one person alone, as the answer to a command, or as a message.
func (a *Adapter) sendText(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	h := decodeHandle(m.Reply)
	direct := directChat(string(to.Chat), "")
	switch {
	case m.Ephemeral && h.user != "" && !direct:
		return a.whisper(ctx, to, m, h)
	case h.respond != "" && !m.Live && !direct:
		if err := a.respond(ctx, m, h); err == nil {
			return ephemeral + chat.MessageID(m.Key), nil
		} else if !errors.Is(err, chat.ErrGone) {
			return "", err
		}
	case m.Live:
		if id, err, ok := a.startStream(ctx, to, m, h); ok {
			return id, err
		}
	}
	if w := a.api.doer.wait("chat.update"); m.Live && w > 0 {
		return "", &chat.RateLimitError{RetryAfter: w} // it would need edits, which are not to be had
	}
	id, err := a.post(ctx, to, m)
	if errors.Is(err, chat.ErrGone) && h.respond != "" && !m.Live { // a command from a chat that the bot is not in
		if rerr := a.respond(ctx, m, h); rerr == nil {
			return ephemeral + chat.MessageID(m.Key), nil
		}
	}
	return id, err
}

// post posts an ordinary message.
func (a *Adapter) post(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	var ts string
	err := a.withContent(m, func(content lib.MsgOption) (err error) {
		_, ts, err = a.api.PostMessageContext(ctx, string(to.Chat), content, thread(to), quiet, metadataOf(m))
		return err
	})
	return chat.MessageID(ts), deliveryError(err, creates)
}

// quiet keeps links from being unfolded below a message (MKD-006).
var quiet = lib.MsgOptionCompose(lib.MsgOptionDisableLinkUnfurl(), lib.MsgOptionDisableMediaUnfurl())

func thread(to chat.Address) lib.MsgOption {
	if to.Thread == "" {
		return lib.MsgOptionCompose()
	}
	return lib.MsgOptionTS(string(to.Thread))
}

// metadataOf lets Find recognise the message.
func metadataOf(m chat.Outgoing) lib.MsgOption {
	return lib.MsgOptionMetadata(lib.SlackMetadata{EventType: keyEvent, EventPayload: map[string]any{"key": m.Key}})
}

// withContent makes a call that carries text and buttons. If Slack refuses the
// blocks, the same text is sent without markup: nothing is lost over a bracket
// (STR-028).
func (a *Adapter) withContent(m chat.Outgoing, do func(lib.MsgOption) error) error {
	c, err := compose(m)
	if err != nil {
		return err
	}
	err = do(c.rich)
	if says(err, blocksRefused...) {
		err = do(c.plain)
	}
	return err
}

// whisper shows a message to the one who asked.
func (a *Adapter) whisper(ctx context.Context, to chat.Address, m chat.Outgoing, h handle) (chat.MessageID, error) {
	var ts string
	err := a.withContent(m, func(content lib.MsgOption) (err error) {
		ts, err = a.api.PostEphemeralContext(ctx, string(to.Chat), h.user, content, thread(to))
		return err
	})
	return ephemeral + chat.MessageID(ts), deliveryError(err, creates)
}

// respond answers a command in the way that needs no membership; only the one who
// gave it sees the answer. After half an hour or five answers it gives ErrGone.
func (a *Adapter) respond(ctx context.Context, m chat.Outgoing, h handle) error {
	err := a.withContent(m, func(content lib.MsgOption) error {
		_, _, _, err := a.api.SendMessageContext(ctx, "", lib.MsgOptionResponseURL(h.respond, lib.ResponseTypeEphemeral), content)
		return err
	})
	var status lib.StatusCodeError
	if errors.As(err, &status) && status.Code < 500 && status.Code != http.StatusTooManyRequests || says(err, "used_url", "expired_url", "expired_trigger_id") {
		return fmt.Errorf("%w: slack: the command can no longer be answered", chat.ErrGone)
	}
	return deliveryError(err, creates)
}

// Edit implements chat.Editor. An edit that changes nothing is a success, and one
// whose text goes on where a stream stands lengthens it.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	if strings.HasPrefix(string(id), ephemeral) {
		return fmt.Errorf("%w: slack: what one person alone saw cannot be changed", chat.ErrGone)
	}
	if strings.HasPrefix(string(id), fileMessage) {
		return nil // a file is what it is
	}
	if err, done := a.editStream(ctx, to, id, m); done {
		return err
	}
	return a.update(ctx, to, id, m)
}

// update replaces a message. One that is still a stream, of an earlier process, is
// stopped first.
func (a *Adapter) update(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) error {
	do := func() error {
		return a.withContent(m, func(content lib.MsgOption) error {
			_, _, _, err := a.api.UpdateMessageContext(ctx, string(to.Chat), string(id), content, metadataOf(m))
			return err
		})
	}
	err := do()
	if says(err, notStreaming...) {
		if err := a.stopStream(ctx, to, id); err != nil {
			return err
		}
		err = do()
	}
	return deliveryError(err, changes)
}

// Delete implements chat.Deleter.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id chat.MessageID) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	if strings.HasPrefix(string(id), ephemeral) {
		return nil
	}
	if strings.HasPrefix(string(id), fileMessage) {
		err := a.api.DeleteFileContext(ctx, strings.TrimPrefix(string(id), fileMessage))
		if says(err, "file_not_found", "file_deleted") {
			return nil
		}
		return deliveryError(err, changes)
	}
	if a.streams.get(to, id) != nil {
		if err := a.stopStream(ctx, to, id); err != nil {
			return err
		}
	}
	_, _, err := a.api.DeleteMessageContext(ctx, string(to.Chat), string(id))
	if says(err, "message_not_found") {
		return nil
	}
	return deliveryError(err, changes)
}

// content is a message in the two forms in which it can be sent.
type content struct{ rich, plain lib.MsgOption }

// compose makes blocks: the progress lines, the text as a markdown block, the
// buttons; with a short text for notifications. Its plain form has neither markup
// nor a markdown block.
func compose(m chat.Outgoing) (content, error) {
	buttons, err := actions(m.Buttons)
	if err != nil {
		return content{}, err
	}
	body := strings.TrimSpace(inert(m.Text))
	above := progress(m.Progress, blocksLimit-length(body)-1)
	var rich, plain []lib.Block
	if above != "" {
		line := lib.NewContextBlock("", lib.NewTextBlockObject(lib.PlainTextType, above, false, false))
		rich, plain = append(rich, line), append(plain, line)
	}
	if body != "" {
		rich = append(rich, lib.NewMarkdownBlock("", body))
		for _, part := range pieces(body, sectionLimit) {
			plain = append(plain, lib.NewSectionBlock(lib.NewTextBlockObject(lib.PlainTextType, part, false, false), nil, nil))
		}
	}
	n := notice(m.Text)
	if n == "" {
		n = escape.Replace(above)
	}
	if n == "" {
		n = "…"
	}
	if len(rich) == 0 && len(buttons) > 0 {
		line := lib.NewContextBlock("", lib.NewTextBlockObject(lib.PlainTextType, "…", false, false))
		rich, plain = append(rich, line), append(plain, line)
	}
	form := func(list []lib.Block) lib.MsgOption {
		return lib.MsgOptionCompose(lib.MsgOptionText(n, false), lib.MsgOptionBlocks(append(list, buttons...)...))
	}
	return content{form(rich), form(plain)}, nil
}

// progress joins the newest lines that have room.
func progress(lines []string, room int) string {
	room = min(room, sectionLimit)
	var kept []string
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.Join(strings.Fields(clean(lines[i])), " ")
		if room -= length(line) + 1; room < 0 {
			break
		}
		kept = append([]string{line}, kept...)
	}
	return strings.Join(kept, "\n")
}

// pieces cuts a text into parts of at most limit characters, at line ends where it
// can.
func pieces(s string, limit int) []string {
	var parts []string
	r := []rune(s)
	for len(r) > limit {
		at := limit
		for i := limit; i > limit/2; i-- {
			if r[i-1] == '\n' {
				at = i
				break
			}
		}
		if part := string(r[:at]); strings.TrimSpace(part) != "" {
			parts = append(parts, part)
		}
		r = r[at:]
	}
	if strings.TrimSpace(string(r)) != "" {
		parts = append(parts, string(r))
	}
	return parts
}

// actions are the blocks of the buttons.
func actions(rows [][]chat.Button) ([]lib.Block, error) {
	var blocks []lib.Block
	for i, row := range rows {
		var line []lib.BlockElement
		for j, b := range row {
			if length(b.Data) > valueLimit || len(line) == actionsLimit {
				return nil, &chat.RejectedError{Reason: fmt.Sprintf("the button %q does not fit", b.Label)}
			}
			label := []rune(b.Label)
			if len(label) > labelLimit {
				label = append(label[:labelLimit-1], '…')
			}
			e := lib.NewButtonBlockElement(fmt.Sprintf("b%d.%d", i, j), b.Data, lib.NewTextBlockObject(lib.PlainTextType, string(label), false, false))
			switch b.Style {
			case chat.Primary:
				e.Style = lib.StylePrimary
			case chat.Danger:
				e.Style = lib.StyleDanger
			case chat.Plain:
			}
			line = append(line, e)
		}
		if len(line) > 0 {
			blocks = append(blocks, lib.NewActionBlock("", line...))
		}
	}
	return blocks, nil
}
