package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	lib "github.com/slack-go/slack"

	"parley/gateway/chat"
)

// metadata is what the bot puts on its messages.
type metadata struct {
	Type    string          `json:"event_type"`
	Payload json.RawMessage `json:"event_payload"`
}

// key is the idempotency key of a message; of other apps' messages it is empty.
func (m *message) key() string {
	var p struct {
		Key string `json:"key"`
	}
	if m.Metadata == nil || m.Metadata.Type != keyEvent || json.Unmarshal(m.Metadata.Payload, &p) != nil {
		return ""
	}
	return p.Key
}

// page is one page of a conversation.
type page struct {
	messages []message
	next     string
}

// History implements chat.HistoryReader: the thread up to the message, or what stood
// in the conversation before it.
func (a *Adapter) History(ctx context.Context, at chat.Address, before chat.MessageID, limit int) ([]chat.Quote, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	var found []message
	cursor := ""
	for range historyPages {
		p, err := a.page(ctx, at, string(before), cursor)
		if err != nil {
			return nil, deliveryError(err, repeated)
		}
		found = append(found, p.messages...)
		if cursor = p.next; cursor == "" || at.Thread == "" && len(found) >= limit {
			break
		}
	}
	if at.Thread == "" {
		slices.Reverse(found)
	}
	var quotes []chat.Quote
	for i := range found {
		m := &found[i]
		if m.TS == string(before) || !slices.Contains(carries, m.Subtype) {
			continue
		}
		q := chat.Quote{Message: chat.MessageID(m.TS), From: a.sender(ctx, m), Text: a.said(ctx, m).text, FromBot: a.mine(m)}
		if q.Text != "" {
			quotes = append(quotes, q)
		}
	}
	return quotes[max(0, len(quotes)-limit):], nil
}

// landing is how long a request may be on its way after the connection, or the process,
// that made it has gone.
const landing = 2 * time.Second

// Find implements chat.Finder: every message that is not a stream carries its key. What
// is not there may still arrive for a while after it was sent, and would then stand there
// twice (DEL-004).
func (a *Adapter) Find(ctx context.Context, to chat.Address, at chat.Attempt) (chat.MessageID, bool, error) {
	asked := time.Now()
	id, found, err := a.find(ctx, to, at.Key)
	if err == nil && !found && asked.Sub(at.Last) < landing {
		return "", false, errors.New("slack: it is not there, but was sent so recently that it may still arrive")
	}
	return id, found, err
}

func (a *Adapter) find(ctx context.Context, to chat.Address, key string) (chat.MessageID, bool, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	if id, found, err := a.findUpload(ctx, to, key); found || err != nil {
		return id, found, err
	}
	cursor := ""
	for range historyPages {
		p, err := a.page(ctx, to, "", cursor)
		if says(err, "thread_not_found") {
			return "", false, nil
		}
		if err != nil {
			return "", false, deliveryError(err, repeated)
		}
		for i := range p.messages {
			m := &p.messages[i]
			if a.mine(m) && m.key() == key {
				return chat.MessageID(m.TS), true, nil
			}
		}
		if cursor = p.next; cursor == "" {
			return "", false, nil
		}
	}
	return "", false, fmt.Errorf("slack: the thread is too long to look a message up")
}

// page reads a page of a thread, oldest first, or of a conversation, newest first.
// It is read as the bot's own messages are, so that a strange block in somebody
// else's never keeps the rest from being read.
func (a *Adapter) page(ctx context.Context, at chat.Address, before, cursor string) (page, error) {
	if _, err := a.me(ctx); err != nil { // whose messages are the bot's own is known before they are read
		return page{}, err
	}
	values := url.Values{"channel": {string(at.Chat)}, "limit": {fmt.Sprint(historyPage)}, "include_all_metadata": {"true"}}
	method := "conversations.history"
	if at.Thread != "" {
		method = "conversations.replies"
		values.Set("ts", string(at.Thread))
	}
	if before != "" {
		values.Set("latest", before)
	}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	var out struct {
		lib.SlackResponse
		Messages []message `json:"messages"`
		Meta     struct {
			Next string `json:"next_cursor"`
		} `json:"response_metadata"`
	}
	if err := a.api.read(ctx, method, values, &out); err != nil {
		return page{}, err
	}
	return page{out.Messages, out.Meta.Next}, out.Err()
}
