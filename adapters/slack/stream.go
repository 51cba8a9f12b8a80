package slack

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	lib "github.com/slack-go/slack"

	"parley/gateway/chat"
)

const (
	// streamLife is how long Slack lets a stream live, at the least (STR-001).
	streamLife = 5 * time.Minute
	// streamCool is how long no stream is tried after one was refused.
	streamCool = time.Minute
)

// streams are the messages that are being written as native streams. A stream can
// only be lengthened: what is not its continuation ends it, and the message is
// edited from then on. It is safe for concurrent use; one stream is written by one
// caller at a time.
type streams struct {
	mu   sync.Mutex
	open map[streamID]*stream
	off  bool
	cool time.Time // no new ones before
}

// streamID names a message.
type streamID struct {
	chat chat.ChatID
	id   chat.MessageID
}

// stream is what is known of one.
type stream struct {
	sent   string // what people see of it
	broken bool   // perhaps more than sent: the outcome of a call is unknown
	began  time.Time
}

func newStreams(on bool) *streams { return &streams{open: map[streamID]*stream{}, off: !on} }

func (s *streams) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.off && time.Now().After(s.cool)
}

func (s *streams) rest(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cool = time.Now().Add(d)
}

// add begins to remember a stream, and forgets those whose end nobody told.
func (s *streams) add(to chat.Address, id chat.MessageID, sent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, old := range s.open {
		if time.Since(old.began) > 2*streamLife {
			delete(s.open, k)
		}
	}
	s.open[streamID{to.Chat, id}] = &stream{sent: sent, began: time.Now()}
}

func (s *streams) get(to chat.Address, id chat.MessageID) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[streamID{to.Chat, id}]
}

// forget ends the memory of a stream and says whether there was one.
func (s *streams) forget(to chat.Address, id chat.MessageID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := streamID{to.Chat, id}
	_, ok := s.open[k]
	delete(s.open, k)
	return ok
}

// startStream begins a message as a stream: in a thread, in channels for the one who
// asked. ok is false where there is to be an ordinary message instead: Slack has none
// here, has enough of them, or there are progress lines, which change. Its own stop
// control comes with a stream, so buttons are left out until the end.
func (a *Adapter) startStream(ctx context.Context, to chat.Address, m chat.Outgoing, h handle) (_ chat.MessageID, err error, ok bool) {
	text := growing(m)
	channel := !directChat(string(to.Chat), "")
	if to.Thread == "" || text == "" || len(m.Progress) > 0 || channel && (h.user == "" || h.team == "") || !a.streams.ready() {
		return "", nil, false
	}
	options := []lib.MsgOption{thread(to), lib.MsgOptionMarkdownText(text)}
	if channel {
		options = append(options, lib.MsgOptionRecipientUserID(h.user), lib.MsgOptionRecipientTeamID(h.team))
	}
	_, ts, err := a.api.StartStreamContext(ctx, string(to.Chat), options...)
	switch err := deliveryError(err, creates); {
	case err == nil:
		a.streams.add(to, chat.MessageID(ts), text)
		return chat.MessageID(ts), nil, true
	case errors.Is(err, chat.ErrAmbiguous):
		return "", err, true
	default:
		wait := streamCool
		if limited, is := errors.AsType[*chat.RateLimitError](err); is {
			wait = limited.RetryAfter
		}
		a.streams.rest(wait)
		return "", nil, false
	}
}

// growing is a text of which more may come: what the next character could change is
// held back.
func growing(m chat.Outgoing) string {
	text := strings.TrimLeft(clean(m.Text), "\n")
	if m.Live {
		text = unsettled.ReplaceAllString(strings.TrimRight(text, " \n\t"), "")
	}
	return strings.TrimRight(inert(text), " \n\t")
}

// editStream brings a stream up to date. done is false if the message is none, or
// no longer one, and has to be edited.
func (a *Adapter) editStream(ctx context.Context, to chat.Address, id chat.MessageID, m chat.Outgoing) (err error, done bool) {
	s := a.streams.get(to, id)
	if s == nil {
		return nil, false
	}
	text := growing(m)
	more, continues := strings.CutPrefix(text, s.sent)
	switch {
	case s.broken || !continues || len(m.Progress) > 0:
		if err := a.stopStream(ctx, to, id); err != nil {
			return err, true
		}
		return nil, false
	case m.Live && more == "":
		return nil, true
	case m.Live:
		_, _, err = a.api.AppendStreamContext(ctx, string(to.Chat), string(id), lib.MsgOptionMarkdownText(more))
	default:
		err = a.finishStream(ctx, to, id, more, m)
	}
	if err == nil {
		s.sent = text
		if !m.Live {
			a.streams.forget(to, id)
		}
		return nil, true
	}
	return a.streamFailed(to, id, s, err)
}

// finishStream ends a stream with the rest of its text and its buttons.
func (a *Adapter) finishStream(ctx context.Context, to chat.Address, id chat.MessageID, more string, m chat.Outgoing) error {
	buttons, err := actions(m.Buttons)
	if err != nil {
		return err
	}
	options := []lib.MsgOption{metadataOf(m)}
	if more != "" {
		options = append(options, lib.MsgOptionMarkdownText(more))
	}
	if len(buttons) > 0 {
		options = append(options, lib.MsgOptionBlocks(buttons...))
	}
	_, _, err = a.api.StopStreamContext(ctx, string(to.Chat), string(id), options...)
	return err
}

// streamFailed decides how to go on. Slack ends streams by itself (STR-001): the
// whole text is edited in then, and nothing is lost or shown twice.
func (a *Adapter) streamFailed(to chat.Address, id chat.MessageID, s *stream, err error) (error, bool) {
	var limited *chat.RateLimitError
	var rejected *chat.RejectedError
	known := deliveryError(err, creates)
	switch {
	case errors.As(known, &limited):
		return deliveryError(err, changes), true
	case errors.Is(known, chat.ErrGone):
		a.streams.forget(to, id)
		return known, true
	case says(err, notStreaming...):
		a.streams.forget(to, id)
		return nil, false
	case errors.As(known, &rejected):
		s.broken = true
		return nil, false
	}
	s.broken = true
	return deliveryError(err, changes), true
}

// stopStream ends a stream as it is; one that has ended is fine.
func (a *Adapter) stopStream(ctx context.Context, to chat.Address, id chat.MessageID) error {
	_, _, err := a.api.StopStreamContext(ctx, string(to.Chat), string(id))
	if err == nil || says(err, notStreaming...) || says(err, "message_not_found") {
		a.streams.forget(to, id)
		return nil
	}
	return deliveryError(err, changes)
}
