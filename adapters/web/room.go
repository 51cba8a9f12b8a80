package web

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/gateway/chat"
)

// personKey marks the Timeline keys of what was typed on the page; the page's own
// id of the message follows.
const personKey = "person/"

// noticesKept bounds the notices that a page which was away for a moment gets.
const noticesKept = 20

// room is what the page shows, with a version at each thing: a page that knows
// version n gets what is newer, in one piece, however many edits there were
// between. So a slow page never makes anybody wait and never falls behind.
type room struct {
	boot   string // names this life of the room; versions count within it
	render func(commonMark string) string

	mu       sync.Mutex
	version  int64
	changed  chan struct{} // closed and replaced at each change
	order    versioned[[]chat.MessageID]
	items    map[chat.MessageID]*item
	commands versioned[[]chat.CommandInfo]
	notices  []versioned[notice]
	typing   versioned[time.Time] // shown until then
}

type versioned[T any] struct {
	value   T
	version int64
}

// item is an entry, and its newer content while it is being written.
type item struct {
	stored  chat.Entry
	live    *chat.Entry
	version int64
	html    *string // of the content, once a page asked
}

// notice answers the press of a button.
type notice struct {
	Ack  string `json:"ack"`
	Text string `json:"text"`
}

// update is what changed since a version.
type update struct {
	Version int64 `json:"-"`
	// Order lists all entries that are shown; nil if that did not change.
	Order    []chat.MessageID `json:"order,omitzero"`
	Entries  []entryView      `json:"entries,omitempty"`
	Commands []commandView    `json:"commands,omitzero"`
	Notices  []notice         `json:"notices,omitempty"`
	// Typing is for how many milliseconds the bot is shown at work.
	Typing int64 `json:"typing"`
}

type entryView struct {
	ID chat.MessageID `json:"id"`
	// Client is the page's own id of a message typed on it.
	Client   string          `json:"client,omitempty"`
	Mine     bool            `json:"mine,omitempty"`
	Text     string          `json:"text,omitempty"` // as written; not while it is live
	HTML     string          `json:"html,omitempty"`
	Progress []string        `json:"progress,omitempty"`
	Buttons  [][]chat.Button `json:"buttons,omitempty"`
	Live     bool            `json:"live,omitempty"`
	At       time.Time       `json:"at"`
}

type commandView struct {
	Name        string `json:"name"`
	Args        string `json:"args,omitempty"`
	Description string `json:"description"`
}

func newRoom(boot string, render func(string) string) *room {
	return &room{boot: boot, render: render, changed: make(chan struct{}), items: map[chat.MessageID]*item{}}
}

// bump makes the next version and wakes the pages; mu is held.
func (r *room) bump() int64 {
	r.version++
	close(r.changed)
	r.changed = make(chan struct{})
	return r.version
}

// merge takes the Timeline's newest entries. Content kept in memory gives way as
// soon as the stored entry is no longer live.
func (r *room) merge(list []chat.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := make(map[chat.MessageID]*item, len(list))
	order := make([]chat.MessageID, 0, len(list))
	for _, e := range list {
		order = append(order, e.ID)
		it := r.items[e.ID]
		if it == nil {
			it = &item{stored: e, version: r.bump()}
		} else if !reflect.DeepEqual(it.stored, e) {
			*it = item{stored: e, live: it.live, version: r.bump()}
			if !e.Live {
				it.live = nil
			}
		}
		items[e.ID] = it
	}
	r.items = items
	if r.order.version == 0 || !slices.Equal(order, r.order.value) {
		r.order = versioned[[]chat.MessageID]{order, r.bump()}
	}
}

// setLive changes the content of a live entry in memory; it reports false for any
// other entry. The same content again changes nothing (STR-018).
func (r *room) setLive(id chat.MessageID, e chat.Entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	it := r.items[id]
	if it == nil || !it.stored.Live {
		return false
	}
	if it.live == nil || !reflect.DeepEqual(*it.live, e) {
		it.live, it.html, it.version = &e, nil, r.bump()
	}
	return true
}

func (r *room) startTyping(ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.typing = versioned[time.Time]{time.Now().Add(ttl), r.bump()}
}

func (r *room) stopTyping() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.typing.value) {
		r.typing = versioned[time.Time]{time.Time{}, r.bump()}
	}
}

func (r *room) notify(ack, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, versioned[notice]{notice{ack, text}, r.bump()})
	if n := len(r.notices); n > noticesKept {
		r.notices = slices.Clone(r.notices[n-noticesKept:])
	}
}

func (r *room) setCommands(cmds []chat.CommandInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = versioned[[]chat.CommandInfo]{slices.Clone(cmds), r.bump()}
}

// hasButton says whether an entry shows a button with the data.
func (r *room) hasButton(id chat.MessageID, data string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	it := r.items[id]
	if it == nil {
		return false
	}
	for _, row := range it.content().Buttons {
		if slices.ContainsFunc(row, func(b chat.Button) bool { return b.Data == data }) {
			return true
		}
	}
	return false
}

// since returns what is newer than a version, and a channel that is closed at the
// next change. Version 0 gets everything but notices.
func (r *room) since(version int64) (update, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := update{Version: r.version, Typing: max(0, time.Until(r.typing.value).Milliseconds())}
	if version == 0 || r.order.version > version {
		u.Order = append([]chat.MessageID{}, r.order.value...)
	}
	for _, id := range r.order.value {
		if it := r.items[id]; it.version > version {
			u.Entries = append(u.Entries, r.view(id, it))
		}
	}
	if r.commands.version > version {
		u.Commands = []commandView{}
		for _, c := range r.commands.value {
			u.Commands = append(u.Commands, commandView{c.Name, c.Args, c.Description})
		}
	}
	for _, n := range r.notices {
		if version > 0 && n.version > version {
			u.Notices = append(u.Notices, n.value)
		}
	}
	return u, r.changed
}

func (it *item) content() chat.Entry {
	if it.live != nil {
		return *it.live
	}
	return it.stored
}

// view renders an entry once for all pages; mu is held.
func (r *room) view(id chat.MessageID, it *item) entryView {
	c := it.content()
	v := entryView{
		ID: id, Mine: it.stored.From != "", Progress: c.Progress, Buttons: c.Buttons, Live: it.stored.Live, At: it.stored.At,
	}
	v.Client, _ = strings.CutPrefix(it.stored.Key, personKey)
	if !v.Mine {
		v.Client = ""
		if it.html == nil {
			html := r.render(c.Text)
			it.html = &html
		}
		v.HTML = *it.html
	}
	if !v.Live {
		v.Text = c.Text
	}
	return v
}
