package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

// queueLimit is how many events wait in memory while the store is away. What comes
// then is fetched from Discord later.
const queueLimit = 10_000

// queue holds events between the library's reader, which must never wait, and the
// intake.
type queue struct {
	mu     sync.Mutex
	events []*discordgo.Event
	lost   bool
	wake   chan struct{}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) push(e *discordgo.Event) {
	q.mu.Lock()
	if len(q.events) < queueLimit {
		q.events = append(q.events, e)
	} else {
		q.lost = true
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop returns the next event, nil if there is none, and says once that some were
// dropped before what comes now.
func (q *queue) pop() (e *discordgo.Event, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) > 0 {
		e, q.events = q.events[0], q.events[1:]
		return e, false
	}
	lost, q.lost = q.lost, false
	return nil, lost
}

// intake turns the gateway's events into the sink's, one after the other. It alone
// decides about order: when a session is new, what was missed before it comes first.
type intake struct {
	a     *Adapter
	sink  chat.Sink
	queue *queue
	began time.Time
	// gather is how long a new session waits for its guilds.
	gather time.Duration
	// since and awaited belong to a session that is new: what is later than since was
	// missed, in the guilds that have not come yet too.
	since   string
	awaited map[string]bool
	// caught are messages that were fetched and may come from the gateway once more.
	caught map[string]bool
	tasks  sync.WaitGroup
}

// run takes in events until ctx ends.
func (in *intake) run(ctx context.Context) {
	defer in.tasks.Wait()
	for ctx.Err() == nil {
		e, lost := in.queue.pop()
		switch {
		case e != nil:
			in.event(ctx, e)
		case lost:
			in.a.log.Warn("events were dropped while the store was away; they are fetched")
			in.reread(ctx)
		default:
			select {
			case <-in.queue.wake:
			case <-ctx.Done():
			}
		}
	}
}

// event handles one event. It is a door: an event that makes the code panic is
// skipped.
func (in *intake) event(ctx context.Context, e *discordgo.Event) {
	defer func() {
		if r := recover(); r != nil {
			in.a.log.Error("an event cannot be read and is skipped", zap.String("type", e.Type), zap.Any("panic", r))
		}
	}()
	var err error
	switch e.Type {
	case "READY":
		err = in.ready(ctx, e.RawData)
	case "RESUMED":
		in.connected(ctx)
	case "GUILD_CREATE":
		err = in.guild(ctx, e.RawData)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE", "CHANNEL_DELETE", "THREAD_DELETE":
		err = in.channel(e)
	case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE":
		err = in.message(ctx, e.Type, e.RawData)
	case "INTERACTION_CREATE":
		err = in.interaction(ctx, e.RawData)
	}
	if err != nil && ctx.Err() == nil {
		in.a.log.Warn("an event cannot be read and is skipped", zap.String("type", e.Type), zap.Error(err))
	}
}

// connected tells that events flow.
func (in *intake) connected(ctx context.Context) {
	in.a.tell(ctx, in.sink, chat.Connected, "")
}

// ready begins a new session: who the bot is, and what was missed before.
func (in *intake) ready(ctx context.Context, raw json.RawMessage) error {
	var r struct {
		User   user `json:"user"`
		Guilds []struct {
			ID string `json:"id"`
		} `json:"guilds"`
		Application struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	in.a.introduce(r.User, r.Application.ID)
	in.connected(ctx)
	in.awaited, in.caught = map[string]bool{}, map[string]bool{}
	for _, g := range r.Guilds {
		in.awaited[g.ID] = true
	}
	held := in.guilds(ctx)
	in.reread(ctx)
	for _, e := range held {
		in.event(ctx, e)
	}
	return nil
}

// guilds waits until the guilds of a new session have told their channels, and
// returns what else came meanwhile.
func (in *intake) guilds(ctx context.Context) (held []*discordgo.Event) {
	patience := time.NewTimer(in.gather)
	defer patience.Stop()
	in.since = ""
	for len(in.awaited) > 0 {
		e, _ := in.queue.pop()
		switch {
		case e == nil:
			select {
			case <-in.queue.wake:
			case <-patience.C:
				return held
			case <-ctx.Done():
				return held
			}
		case e.Type == "GUILD_CREATE":
			in.event(ctx, e)
		default:
			held = append(held, e)
			if e.Type == "READY" {
				return held // a newer session
			}
		}
	}
	return held
}

// guild learns a guild's channels. One that comes late is caught up with then.
func (in *intake) guild(ctx context.Context, raw json.RawMessage) error {
	var g struct {
		ID       string    `json:"id"`
		Channels []channel `json:"channels"`
		Threads  []channel `json:"threads"`
		Roles    []struct {
			ID   string `json:"id"`
			Tags struct {
				Bot string `json:"bot_id"`
			} `json:"tags"`
		} `json:"roles"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return err
	}
	self := in.a.self().ID
	for _, r := range g.Roles {
		if r.Tags.Bot == self && self != "" {
			in.a.places.own(r.ID)
		}
	}
	var all []channel
	for _, c := range append(g.Channels, g.Threads...) {
		c.Guild = g.ID
		all = append(all, c)
	}
	in.a.places.put(all...)
	late := in.awaited[g.ID] && in.since != ""
	delete(in.awaited, g.ID)
	if late {
		in.fetchAll(ctx, all)
	}
	return nil
}

func (in *intake) channel(e *discordgo.Event) error {
	var c channel
	if err := json.Unmarshal(e.RawData, &c); err != nil {
		return err
	}
	if e.Type == "CHANNEL_DELETE" || e.Type == "THREAD_DELETE" {
		in.a.places.remove(c.ID)
	} else {
		in.a.places.put(c)
	}
	return nil
}

// message hands on what people say, change and remove.
func (in *intake) message(ctx context.Context, kind string, raw json.RawMessage) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	if kind == "MESSAGE_CREATE" && in.caught[m.ID] {
		delete(in.caught, m.ID)
		return nil
	}
	return in.take(ctx, kind, m, true)
}

// take decodes a message's event, which may need to ask where it was, and stores it.
// live says that it comes as it happens, so that nobody has reacted to it before, unless
// it comes again.
func (in *intake) take(ctx context.Context, kind string, m message, live bool) error {
	c, err := in.where(ctx, m.Channel, m.Guild)
	if err != nil {
		return err
	}
	var ev chat.Event
	switch kind {
	case "MESSAGE_CREATE":
		_, again := in.a.recent.get(m.ID)
		ev = in.a.message(c, m)
		if live && !again {
			in.a.recent.mark(m.ID, "", true)
		}
	case "MESSAGE_UPDATE":
		ev = in.a.edit(c, m)
	default:
		ev = in.a.deletion(c, m)
	}
	if ev != nil {
		in.store(ctx, ev)
	}
	return nil
}

// where finds the channel of an event. A direct chat needs no question.
func (in *intake) where(ctx context.Context, id, guild string) (channel, error) {
	if guild == "" {
		if c, ok := in.a.places.known(id); ok && c.Guild != "" {
			return c, nil
		}
		return channel{ID: id, Kind: discordgo.ChannelTypeDM}, nil
	}
	for try := 0; ; try++ {
		c, err := in.a.place(ctx, id)
		var api *apiError
		if err == nil || ctx.Err() != nil || errors.As(err, &api) && api.status < http.StatusInternalServerError && api.status != http.StatusTooManyRequests {
			return c, err
		}
		in.a.log.Warn("the channel of an event cannot be asked for", zap.Error(err))
		wait(ctx, in.a.heal<<min(try, 5), err)
	}
}

// store hands an event to the sink until it is durable, or ctx ends: what comes
// after it waits (DUP-004).
func (in *intake) store(ctx context.Context, ev chat.Event) {
	for try := 0; ctx.Err() == nil; try++ {
		err := in.sink(ctx, ev)
		if err == nil {
			if try > 0 {
				in.connected(ctx)
			}
			return
		}
		if ctx.Err() == nil && try == 0 {
			in.a.tell(ctx, in.sink, chat.Reconnecting, fmt.Sprintf("an event could not be stored: %v", err))
		}
		wait(ctx, in.a.heal<<min(try, 5), nil)
	}
}

// wait sleeps for d, or as long as a rate limit asked, or less if ctx ends.
func wait(ctx context.Context, d time.Duration, err error) {
	var api *apiError
	if errors.As(err, &api) && api.after > 0 {
		d = api.after
	}
	healing.Pause(ctx, d)
}
