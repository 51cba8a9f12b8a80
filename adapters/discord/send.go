package discord

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"parley/gateway/chat"
)

// outgoing is the body of a message that is made or changed. It always says that
// nobody is mentioned (MEN-007) and that links get no previews.
type outgoing struct {
	Content    string     `json:"content"`
	Nonce      string     `json:"nonce,omitempty"`
	Enforce    bool       `json:"enforce_nonce,omitempty"`
	Components []row      `json:"components"`
	Reference  *reference `json:"message_reference,omitempty"`
	Flags      int        `json:"flags"`
	Mentions   struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
}

// reference is what a message replies to. A message that is gone by then is no
// error.
type reference struct {
	Message string `json:"message_id"`
	Fail    bool   `json:"fail_if_not_exists"`
}

type row struct {
	Type       discordgo.ComponentType `json:"type"`
	Components []button                `json:"components"`
}

type button struct {
	Type  discordgo.ComponentType `json:"type"`
	Style discordgo.ButtonStyle   `json:"style"`
	Label string                  `json:"label"`
	Data  string                  `json:"custom_id"`
}

// composed makes a message's body.
func composed(m chat.Outgoing) (outgoing, error) {
	out := outgoing{Content: compose(m), Components: []row{}, Flags: int(discordgo.MessageFlagsSuppressEmbeds)}
	out.Mentions.Parse = []string{}
	for _, line := range m.Buttons {
		r := row{Type: discordgo.ActionsRowComponent}
		for _, b := range line {
			if utf8.RuneCountInString(b.Data) > buttonData {
				return out, &chat.RejectedError{Reason: fmt.Sprintf("the data of the button %q is longer than %d characters", b.Label, buttonData)}
			}
			r.Components = append(r.Components, button{discordgo.ButtonComponent, styles[b.Style], clip(b.Label, buttonLabel), b.Data})
		}
		if len(r.Components) > 0 {
			out.Components = append(out.Components, r)
		}
	}
	return out, nil
}

var styles = map[chat.Style]discordgo.ButtonStyle{
	chat.Plain: discordgo.SecondaryButton, chat.Primary: discordgo.PrimaryButton, chat.Danger: discordgo.DangerButton,
}

// clip shortens a text to so many characters.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// nonce is a message's idempotency key in the length that Discord takes.
func nonce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:18])[:nonceLimit-1]
}

// Send implements chat.Adapter. An answer to a command is its response as long as
// that is open, everything else an ordinary message.
func (a *Adapter) Send(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	out, err := composed(m)
	if err != nil {
		return "", err
	}
	b, err := encoded(out, m.Files)
	if err != nil {
		return "", err
	}
	if h, ok := parseInteraction(m.Reply); ok && a.open(h) {
		id, done, err := a.respond(ctx, h, m, out, b)
		if done || err != nil {
			return id, deliveryError(err, creates)
		}
	}
	return a.post(ctx, to, m, out)
}

// post makes an ordinary message, in the thread of its address. A nonce that is known
// hands out the first message, as it was then: it is brought up to date, or, if it is
// gone, made anew (STR-014).
func (a *Adapter) post(ctx context.Context, to chat.Address, m chat.Outgoing, out outgoing) (chat.MessageID, error) {
	out.Enforce = true
	for _, key := range []string{m.Key, m.Key + "/again"} {
		out.Nonce = nonce(key)
		sent, where, err := a.create(ctx, to, m, out)
		if err != nil {
			return "", deliveryError(err, creates)
		}
		id := messageID(to, where, sent.ID)
		if where != channelOf(to, chat.MessageID(sent.ID)) {
			a.recent.put(sent.ID, seen{address: to})
		}
		if sent.Content == strings.TrimSpace(out.Content) || len(m.Files) > 0 {
			return id, nil
		}
		if err = a.Edit(ctx, to, id, m); err == nil {
			return id, nil
		} else if !errors.Is(err, chat.ErrGone) {
			return "", err
		}
	}
	return "", chat.ErrGone
}

// create makes a message, and says in which channel. A thread that is closed is
// opened again; for one that is closed for good its channel stands in (DEL-006).
func (a *Adapter) create(ctx context.Context, to chat.Address, m chat.Outgoing, out outgoing) (message, string, error) {
	where, err := a.target(ctx, to)
	if err != nil {
		return message{}, "", err
	}
	for range 2 {
		out.Reference = referTo(where, to, m.Reply)
		b, err := encoded(out, m.Files)
		if err != nil {
			return message{}, "", err
		}
		sent, err := a.upload(ctx, http.MethodPost, "/channels/"+where+"/messages", b, len(m.Files) > 0)
		if !coded(err, codeArchived) {
			return sent, where, err
		}
		if a.unarchive(ctx, where) != nil {
			where = string(to.Chat)
		}
	}
	return message{}, "", &apiError{status: http.StatusForbidden, code: codeArchived, message: "the thread stays closed"}
}

// referTo is the message that a message in a channel points at.
func referTo(where string, to chat.Address, h chat.ReplyHandle) *reference {
	if channel, message, ok := parseReply(h); ok && channel == where {
		return &reference{Message: message}
	}
	if to.Thread != "" && where == string(to.Chat) {
		return &reference{Message: string(to.Thread)} // it stands in for the thread
	}
	return nil
}

// upload makes a call that may carry files, which take their time.
func (a *Adapter) upload(ctx context.Context, method, path string, b body, files bool) (message, error) {
	limit := callLimit
	if files {
		limit = fileLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return request[message](ctx, a.api, method, path, b)
}

// encoded is a message's body, with its files if it has some.
func encoded(out outgoing, files []chat.OutgoingFile) (body, error) {
	if len(files) == 0 {
		return asJSON(out)
	}
	if len(files) > filesLimit {
		return body{}, &chat.RejectedError{Reason: fmt.Sprintf("a message has at most %d files", filesLimit)}
	}
	payload, err := asJSON(out)
	if err != nil {
		return body{}, err
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	head := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="payload_json"`}, "Content-Type": {payload.mime}}
	part, err := w.CreatePart(head)
	if err == nil {
		_, err = part.Write(payload.data)
	}
	for i, f := range files {
		if err == nil {
			err = attach(w, i, f)
		}
	}
	if err == nil {
		err = w.Close()
	}
	return body{w.FormDataContentType(), buf.Bytes()}, err
}

func attach(w *multipart.Writer, i int, f chat.OutgoingFile) error {
	file, err := os.Open(f.Path)
	if err != nil {
		return &chat.RejectedError{Reason: err.Error()}
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > fileOut {
		return &chat.RejectedError{Reason: fmt.Sprintf("%s is larger than the %d MB that bots may send", f.Name, fileOut>>20)}
	}
	part, err := w.CreateFormFile(fmt.Sprintf("files[%d]", i), f.Name)
	if err != nil {
		return fmt.Errorf("discord: %w", err)
	}
	if _, err := io.Copy(part, file); err != nil {
		return &chat.RejectedError{Reason: err.Error()}
	}
	return nil
}

// Edit implements chat.Editor.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) error {
	out, err := composed(m)
	if err != nil {
		return err
	}
	where, message, ok := split(to, id)
	if !ok {
		return chat.ErrGone
	}
	path := "/channels/" + where + "/messages/" + message
	_, err = call[none](ctx, a.api, http.MethodPatch, path, out)
	if coded(err, codeArchived) && a.unarchive(ctx, where) == nil {
		_, err = call[none](ctx, a.api, http.MethodPatch, path, out)
	}
	return deliveryError(err, repeated)
}

// Delete implements chat.Deleter.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id chat.MessageID) error {
	where, message, ok := split(to, id)
	if !ok {
		return nil
	}
	_, err := call[none](ctx, a.api, http.MethodDelete, "/channels/"+where+"/messages/"+message, nil)
	if coded(err, codeUnknownMessage) {
		return nil
	}
	return deliveryError(err, repeated)
}

// Typing implements chat.Typer. While a thread is not there yet it is shown in the
// channel.
func (a *Adapter) Typing(ctx context.Context, to chat.Address) error {
	where := string(to.Chat)
	if _, ok := a.places.known(string(to.Thread)); ok {
		where = string(to.Thread)
	}
	_, err := call[none](ctx, a.api, http.MethodPost, "/channels/"+where+"/typing", nil)
	return deliveryError(err, repeated)
}

// OpenFile implements chat.FileOpener. Links to attachments expire, so a new one is
// asked for.
func (a *Adapter) OpenFile(ctx context.Context, f chat.File) (io.ReadCloser, error) {
	if f.Size > fileIn {
		return nil, &chat.RejectedError{Reason: fmt.Sprintf("%s is larger than the %d MB that are fetched", f.Name, fileIn>>20)}
	}
	parts := strings.Split(f.ID, "/")
	if len(parts) != 3 {
		return nil, &chat.RejectedError{Reason: f.Name + " is no file of this platform"}
	}
	m, err := call[message](ctx, a.api, http.MethodGet, "/channels/"+parts[0]+"/messages/"+parts[1], nil)
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	list := m.Attachments
	for _, s := range m.Snapshots {
		list = append(list, s.Message.Attachments...)
	}
	for _, at := range list {
		if at.ID == parts[2] {
			return a.download(ctx, at)
		}
	}
	return nil, fmt.Errorf("%w: the file %s was removed", chat.ErrGone, f.Name)
}

// download fetches from Discord's file servers, which get no token.
func (a *Adapter) download(ctx context.Context, at attachment) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("discord: the link of %s: %w", at.Filename, err)
	}
	resp, err := (&http.Client{Transport: a.transport}).Do(r)
	if err != nil {
		return nil, fmt.Errorf("discord: %s: %w", at.Filename, cause(err))
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, &apiError{status: resp.StatusCode}
	}
	return resp.Body, nil
}
