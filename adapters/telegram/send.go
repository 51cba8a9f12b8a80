package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/gateway/chat"
)

// fileLimit bounds an upload.
const fileLimit = 5 * time.Minute

// keyboardButton is an inline button.
type keyboardButton struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// Send implements chat.Adapter. Files follow the text as messages of their own, so
// that no text is cut to a caption (ATT-010); the id is the text's.
func (a *Adapter) Send(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	p, err := a.target(to, m)
	if err != nil {
		return "", err
	}
	var id chat.MessageID
	if m.Text != "" || len(m.Progress) > 0 || len(m.Files) == 0 {
		if id, err = a.post(ctx, m, p); err != nil {
			return "", deliveryError(err, creates)
		}
		if now := chat.ChatID(p["chat_id"]); now != to.Chat {
			a.moved.add(placed{to.Chat, id}, now)
		}
	}
	for _, f := range m.Files {
		sent, err := a.sendFile(ctx, to, f)
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

// posted is what is read of the message that the API answers with.
type posted struct {
	MessageID int `json:"message_id"`
}

// post sends the text. A topic that is gone, or that the API refuses in private
// chats, is left out (TOP-004); a group that became a supergroup is followed, and
// its own service message makes the ChatMoved.
func (a *Adapter) post(ctx context.Context, m chat.Outgoing, p params) (chat.MessageID, error) {
	try := func() (posted, error) {
		return a.withText(m, p, func(p params) (posted, error) {
			return call[posted](ctx, a.api, "sendMessage", tgbotapi.Params(p))
		})
	}
	sent, err := try()
	var refused *tgbotapi.Error
	switch {
	case says(err, saysNoThread) && p["message_thread_id"] != "":
		delete(p, "message_thread_id")
		sent, err = try()
	case errors.As(err, &refused) && refused.MigrateToChatID != 0:
		p["chat_id"] = strconv.FormatInt(refused.MigrateToChatID, 10)
		sent, err = try()
	}
	return chat.MessageID(strconv.Itoa(sent.MessageID)), err
}

// target is where a message goes and what it answers.
func (a *Adapter) target(to chat.Address, m chat.Outgoing) (params, error) {
	p := params{"chat_id": string(to.Chat)}
	p.set("message_thread_id", string(to.Thread))
	if m.Reply != "" {
		id, err := strconv.Atoi(string(m.Reply))
		if err != nil {
			return nil, fmt.Errorf("telegram: the reply handle %q is not one of this adapter", m.Reply)
		}
		if err := p.json("reply_parameters", map[string]any{"message_id": id, "allow_sending_without_reply": true}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// withText makes a call that carries text and buttons. If the markup is refused
// after all, the same text is sent plain: nothing is lost over a bracket.
func (a *Adapter) withText(m chat.Outgoing, p params, do func(params) (posted, error)) (posted, error) {
	out := compose(m)
	p["text"], p["parse_mode"] = out.html, "HTML"
	if err := p.json("link_preview_options", map[string]bool{"is_disabled": true}); err != nil {
		return posted{}, err
	}
	if err := keyboard(p, m.Buttons); err != nil {
		return posted{}, err
	}
	msg, err := do(p)
	if says(err, saysBadEntities) {
		p["text"] = out.text
		delete(p, "parse_mode")
		msg, err = do(p)
	}
	return msg, err
}

// keyboard adds the buttons; an edit without any removes them.
func keyboard(p params, rows [][]chat.Button) error {
	grid := make([][]keyboardButton, 0, len(rows))
	for _, row := range rows {
		var line []keyboardButton
		for _, b := range row {
			if len(b.Data) > callbackData {
				return &chat.RejectedError{Reason: fmt.Sprintf("the data of the button %q is longer than %d bytes", b.Label, callbackData)}
			}
			line = append(line, keyboardButton{Text: b.Label, Data: b.Data})
		}
		grid = append(grid, line)
	}
	if len(grid) == 0 {
		return nil
	}
	return p.json("reply_markup", map[string]any{"inline_keyboard": grid})
}

// Edit implements chat.Editor. An edit that changes nothing is a success.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) error {
	p := params{"chat_id": a.moved.chatOf(to, id), "message_id": string(id)}
	_, err := a.withText(m, p, func(p params) (posted, error) {
		return call[posted](ctx, a.api, "editMessageText", tgbotapi.Params(p))
	})
	if says(err, saysNotModified) {
		return nil
	}
	return deliveryError(err, repeated)
}

// Draft implements chat.Drafter; Telegram has drafts in private chats only.
func (a *Adapter) Draft(ctx context.Context, to chat.Address, id int64, m chat.Outgoing) error {
	out := compose(m)
	if out.html == "" {
		return nil // an empty draft would say "Thinking…"
	}
	p := params{"chat_id": string(to.Chat), "draft_id": strconv.FormatInt(id, 10), "text": out.html, "parse_mode": "HTML"}
	p.set("message_thread_id", string(to.Thread))
	_, err := call[bool](ctx, a.api, "sendMessageDraft", tgbotapi.Params(p))
	if says(err, saysBadEntities) {
		p["text"] = out.text
		delete(p, "parse_mode")
		_, err = call[bool](ctx, a.api, "sendMessageDraft", tgbotapi.Params(p))
	}
	return deliveryError(err, repeated)
}

// Delete implements chat.Deleter.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id chat.MessageID) error {
	_, err := call[bool](ctx, a.api, "deleteMessage", tgbotapi.Params{"chat_id": a.moved.chatOf(to, id), "message_id": string(id)})
	if says(err, saysNoDelete) {
		return nil
	}
	return deliveryError(err, repeated)
}

// Typing implements chat.Typer.
func (a *Adapter) Typing(ctx context.Context, to chat.Address) error {
	p := params{"chat_id": string(to.Chat), "action": "typing"}
	p.set("message_thread_id", string(to.Thread))
	_, err := call[bool](ctx, a.api, "sendChatAction", tgbotapi.Params(p))
	return deliveryError(err, repeated)
}

// reactions are emoji of Telegram's standard set; a bot may set one a message.
var reactions = map[chat.Reaction]string{chat.ReactSeen: "👀", chat.ReactWorking: "✍", chat.ReactDone: "👌", chat.ReactFailed: "👎"}

// React implements chat.Reactor.
func (a *Adapter) React(ctx context.Context, to chat.Address, id chat.MessageID, r chat.Reaction) error {
	type emoji struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	list := []emoji{}
	if e := reactions[r]; e != "" {
		list = append(list, emoji{"emoji", e})
	}
	p := params{"chat_id": string(to.Chat), "message_id": string(id)}
	if err := p.json("reaction", list); err != nil {
		return err
	}
	_, err := call[bool](ctx, a.api, "setMessageReaction", tgbotapi.Params(p))
	if says(err, "reaction_invalid", "reactions_", "message to react not found") {
		return nil // some chats allow none: that is nobody's error
	}
	return deliveryError(err, repeated)
}

// AckButton implements chat.ButtonAcker: the client stops its spinner.
func (a *Adapter) AckButton(ctx context.Context, press chat.ButtonPressed, text string) error {
	const noticeLimit = 200
	p := params{"callback_query_id": press.Ack}
	if r := []rune(text); len(r) > noticeLimit {
		text = string(r[:noticeLimit])
	}
	p.set("text", text)
	_, err := call[bool](ctx, a.api, "answerCallbackQuery", tgbotapi.Params(p))
	if says(err, saysQueryOld) {
		return nil
	}
	return deliveryError(err, repeated)
}

// OpenFile implements chat.FileOpener.
func (a *Adapter) OpenFile(ctx context.Context, f chat.File) (io.ReadCloser, error) {
	if f.Size > fileIn {
		return nil, &chat.RejectedError{Reason: fmt.Sprintf("%s is larger than the %d MB that bots may fetch", f.Name, fileIn>>20)}
	}
	info, err := call[tgbotapi.File](ctx, a.api, "getFile", tgbotapi.Params{"file_id": f.ID})
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	// The library's links ignore api_base.
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.api.base+"/file/bot"+a.api.token.Reveal()+"/"+info.FilePath, nil)
	if err != nil {
		return nil, a.api.redact(err)
	}
	resp, err := a.api.http.Do(r)
	if err != nil {
		return nil, a.api.redact(err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, &statusError{resp.StatusCode}
	}
	return resp.Body, nil
}

func (a *Adapter) sendFile(ctx context.Context, to chat.Address, f chat.OutgoingFile) (chat.MessageID, error) {
	ctx, cancel := context.WithTimeout(ctx, fileLimit)
	defer cancel()
	file, err := os.Open(f.Path)
	if err != nil {
		return "", &chat.RejectedError{Reason: err.Error()}
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > fileOut {
		return "", &chat.RejectedError{Reason: fmt.Sprintf("%s is larger than the %d MB that bots may send", f.Name, fileOut>>20)}
	}
	p := params{"chat_id": string(to.Chat)}
	p.set("message_thread_id", string(to.Thread))
	// A reader, not a path: the library would send the path as the name.
	resp, err := a.api.bot(ctx).UploadFiles("sendDocument", tgbotapi.Params(p), []tgbotapi.RequestFile{
		{Name: "document", Data: tgbotapi.FileReader{Name: f.Name, Reader: file}},
	})
	if err != nil {
		var refused *tgbotapi.Error
		if errors.As(err, &refused) && refused.Code == 0 {
			refused.Code = resp.ErrorCode // the library leaves it out for uploads
		}
		return "", deliveryError(err, creates)
	}
	var sent posted
	if err := json.Unmarshal(resp.Result, &sent); err != nil {
		return "", fmt.Errorf("%w: telegram: sendDocument: %w", chat.ErrAmbiguous, err)
	}
	return chat.MessageID(strconv.Itoa(sent.MessageID)), nil
}

// PublishCommands implements chat.CommandPublisher.
func (a *Adapter) PublishCommands(ctx context.Context, cmds []chat.CommandInfo) error {
	type entry struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}
	var menu []entry
	for _, c := range cmds {
		if !c.AdminOnly {
			menu = append(menu, entry{c.Name, c.Description})
		}
	}
	p := params{}
	if err := p.json("commands", menu); err != nil {
		return err
	}
	_, err := call[bool](ctx, a.api, "setMyCommands", tgbotapi.Params(p))
	return deliveryError(err, repeated)
}

// InviteLink implements chat.Inviter.
func (a *Adapter) InviteLink(ctx context.Context, code string) (string, error) {
	u, err := a.me(ctx)
	if err != nil {
		return "", deliveryError(err, repeated)
	}
	return "https://t.me/" + u.UserName + "?start=" + code, nil
}

// Probe implements chat.Prober.
func (a *Adapter) Probe(ctx context.Context) ([]chat.Finding, error) {
	u, err := a.me(ctx)
	if cred, ok := errors.AsType[*chat.CredentialError](a.credential(err)); ok {
		return []chat.Finding{{What: cred.Reason, Fix: cred.Fix}}, nil
	}
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	fs := []chat.Finding{{OK: true, What: fmt.Sprintf("token of @%s (id %d)", u.UserName, u.ID)}}
	if !u.CanReadAllGroupMessages {
		fs = append(fs, chat.Finding{OK: true, What: "privacy mode is on: in groups the bot sees commands, mentions and replies only; access.groups: all needs it off, by /setprivacy at @BotFather"})
	}
	if !u.CanJoinGroups {
		fs = append(fs, chat.Finding{OK: true, What: "the bot cannot be added to groups; /setjoingroups at @BotFather changes that"})
	}
	info, err := call[tgbotapi.WebhookInfo](ctx, a.api, "getWebhookInfo", nil)
	if err != nil {
		return fs, deliveryError(err, repeated)
	}
	return append(fs, a.intake(info)), nil
}
