package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Event is a sealed union of what an adapter can report. Every event except
// ConnectionChanged has an Origin.
type Event interface {
	// Meta returns what all events share.
	Meta() Origin
	isEvent()
}

// User is a person as the platform shows them at the moment of the event.
type User struct {
	ID   Person `json:"id"`
	Name string `json:"name,omitempty"` // one line, cleaned; data, never authority (KEY-002)
	// Language is an IETF tag where the platform tells it.
	Language string `json:"language,omitempty"`
	Bot      bool   `json:"bot,omitempty"`
	// Shared marks ids that stand for several people (anonymous admins, linked
	// channels): they can never be authorised (ACC-002).
	Shared bool `json:"shared,omitempty"`
}

// Origin is what all events share.
type Origin struct {
	Key     EventKey  `json:"key"`
	Address Address   `json:"address"`
	Kind    Kind      `json:"kind"`
	From    User      `json:"from"`
	Roles   []string  `json:"roles,omitempty"` // the platform's own roles of the person, opaque
	At      time.Time `json:"at"`              // the platform's time; never used for order
	// Message is the message the event is about.
	Message MessageID `json:"message,omitempty"`
	// Reply is handed back unchanged in Outgoing.Reply: what the adapter needs to
	// answer this event (a message to reply to, an interaction token).
	Reply ReplyHandle `json:"reply,omitempty"`
	// Title is the chat's name, as data for display.
	Title string `json:"title,omitempty"`
	// Threaded says that the message stands in a thread that belongs to one
	// conversation: once the bot talks there, it is spoken to without being named.
	Threaded bool `json:"threaded,omitempty"`
}

// Meta implements Event.
func (o Origin) Meta() Origin { return o }

// ReplyHandle is opaque to everybody but the adapter that made it.
type ReplyHandle string

// File is an attachment that can be opened through FileOpener.
type File struct {
	ID   string `json:"id"` // opaque, enough for the adapter to fetch it again
	Name string `json:"name"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes, 0 if unknown
	// Voice marks a recording of speech, which stands for typed text.
	Voice bool `json:"voice,omitempty"`
	// Path is where the gateway's copy lies in the conversation's folder, and Problem
	// says in words why it cannot be read. Adapters leave both empty.
	Path    string `json:"path,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Quote is a message that the sender pointed at.
type Quote struct {
	Message MessageID `json:"message,omitempty"`
	From    User      `json:"from"`
	Text    string    `json:"text,omitempty"` // the quoted fragment, else the whole text
	// FromBot says that the quoted message is this bot's own.
	FromBot bool `json:"from_bot,omitempty"`
}

// MessageReceived is a new message of a person.
type MessageReceived struct {
	Origin
	// Text is plain text as typed, the bot's own mention removed.
	Text string `json:"text"`
	// ForBot says that the message addresses the bot: it is a direct message,
	// mentions it, replies to it, or carries a command with its name.
	ForBot bool `json:"for_bot"`
	// ForOther says that a command in the text names another bot (CMD-001).
	ForOther bool   `json:"for_other,omitempty"`
	Quote    *Quote `json:"quote,omitempty"`
	Files    []File `json:"files,omitempty"`
	// Group is shared by the parts of an album; empty otherwise.
	Group string `json:"group,omitempty"`
	// AtLimit says that the text is so near the platform's length limit that the
	// client may have split it and the rest may follow (CON-003).
	AtLimit bool `json:"at_limit,omitempty"`
	// Edited says that the text replaces what the same message said while it was being
	// answered. Adapters leave it; they report MessageEdited.
	Edited bool `json:"edited,omitempty"`
}

// MessageEdited reports that a person changed the text of a message.
type MessageEdited struct {
	Origin
	Text   string `json:"text"`
	ForBot bool   `json:"for_bot"`
}

// MessageDeleted reports that a message is gone.
type MessageDeleted struct{ Origin }

// ButtonPressed reports a press on a button that parley sent. From is the one
// who pressed; Data is what Button.Data held.
type ButtonPressed struct {
	Origin
	Data string `json:"data"`
	// Ack is what AckButton needs; it is only good for a short time.
	Ack string `json:"ack,omitempty"`
}

// CommandInvoked is a native command of the platform (not text that begins
// with a slash: that is a MessageReceived and is parsed by the gateway).
type CommandInvoked struct {
	Origin
	Name string `json:"name"`
	Args string `json:"args,omitempty"`
}

// StopPressed is the platform's own stop control.
type StopPressed struct{ Origin }

// ChatMoved reports that a chat has a new id (a group that became a supergroup).
type ChatMoved struct {
	Origin
	To ChatID `json:"to"`
}

// TaskDue says that something other than a message wants a turn: a schedule is due, or
// an outside event has come in. No adapter reports it.
type TaskDue struct {
	Origin
	// Schedule is the number of the schedule, 0 for an outside event.
	Schedule int64  `json:"schedule,omitempty"`
	Title    string `json:"title"`
	// Prompt is what is to be done; Data came from outside and asks for nothing.
	Prompt string `json:"prompt,omitempty"`
	Data   string `json:"data,omitempty"`
	// Due is when the schedule was due and Zone where its people are; Skipped counts
	// the due times before it that were given up.
	Due     time.Time `json:"due"`
	Zone    string    `json:"zone,omitempty"`
	Skipped int       `json:"skipped,omitempty"`
	// Stopped says why the schedule runs no more; then there is nothing to do but to
	// tell it.
	Stopped string `json:"stopped,omitempty"`
}

// ConnectionState is what an adapter knows about its link to the platform.
type ConnectionState string

const (
	// Connecting is the state until the first success.
	Connecting ConnectionState = "connecting"
	// Connected means that events flow.
	Connected ConnectionState = "connected"
	// Reconnecting means that the adapter heals itself; Reason says from what.
	Reconnecting ConnectionState = "reconnecting"
)

// ConnectionChanged reports the adapter's link. It is not stored.
type ConnectionChanged struct {
	Origin
	State  ConnectionState `json:"state"`
	Reason string          `json:"reason,omitempty"`
}

func (MessageReceived) isEvent()   {}
func (MessageEdited) isEvent()     {}
func (MessageDeleted) isEvent()    {}
func (ButtonPressed) isEvent()     {}
func (CommandInvoked) isEvent()    {}
func (StopPressed) isEvent()       {}
func (ChatMoved) isEvent()         {}
func (ConnectionChanged) isEvent() {}
func (TaskDue) isEvent()           {}

// EventKind is an event's tag in storage.
type EventKind string

// The tags of stored events.
const (
	KindMessage EventKind = "message"
	KindEdit    EventKind = "edit"
	KindDelete  EventKind = "delete"
	KindButton  EventKind = "button"
	KindCommand EventKind = "command"
	KindStop    EventKind = "stop"
	KindMoved   EventKind = "moved"
	KindTask    EventKind = "task"
)

// Encode turns an event into its tag and JSON for storage.
func Encode(ev Event) (EventKind, []byte, error) {
	var k EventKind
	switch ev.(type) {
	case MessageReceived:
		k = KindMessage
	case MessageEdited:
		k = KindEdit
	case MessageDeleted:
		k = KindDelete
	case ButtonPressed:
		k = KindButton
	case CommandInvoked:
		k = KindCommand
	case StopPressed:
		k = KindStop
	case ChatMoved:
		k = KindMoved
	case TaskDue:
		k = KindTask
	default:
		return "", nil, fmt.Errorf("chat: event %T is not stored", ev)
	}
	b, err := json.Marshal(ev)
	return k, b, err
}

// Decode is the inverse of Encode.
func Decode(k EventKind, b []byte) (Event, error) {
	switch k {
	case KindMessage:
		return decode[MessageReceived](b)
	case KindEdit:
		return decode[MessageEdited](b)
	case KindDelete:
		return decode[MessageDeleted](b)
	case KindButton:
		return decode[ButtonPressed](b)
	case KindCommand:
		return decode[CommandInvoked](b)
	case KindStop:
		return decode[StopPressed](b)
	case KindMoved:
		return decode[ChatMoved](b)
	case KindTask:
		return decode[TaskDue](b)
	}
	return nil, fmt.Errorf("chat: unknown event kind %q", k)
}

func decode[T Event](b []byte) (Event, error) {
	var ev T
	if err := json.Unmarshal(b, &ev); err != nil {
		return nil, fmt.Errorf("chat: stored event: %w", err)
	}
	return ev, nil
}

// OneLine cleans a name that people chose: one line, no control characters, at
// most 128 runes (KEY-002).
func OneLine(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)), " ")
	if r := []rune(s); len(r) > 128 {
		s = string(r[:128])
	}
	return s
}
