package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	timelineChannel = "parley_timeline"
	// timelinePoll is how often watchers look without being notified.
	timelinePoll = 10 * time.Second
)

// Timeline keeps what the built-in chats show; it implements chat.Timeline.
type Timeline struct{ db *DB }

// Timeline returns the timelines of this database.
func (db *DB) Timeline() Timeline { return Timeline{db} }

// Append implements chat.Timeline.
func (t Timeline) Append(ctx context.Context, to chat.Address, e chat.Entry) (chat.MessageID, error) {
	content, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("store: timeline: %w", err)
	}
	var id int64
	err = t.db.batch(ctx, "append to timeline", func(b *pgx.Batch) {
		b.Queue(`INSERT INTO timeline (account, chat, thread, idempotency_key, sender, content) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (account, chat, thread, idempotency_key) DO UPDATE SET content = EXCLUDED.content
				WHERE timeline.sender = '' AND EXCLUDED.sender = ''`,
			text(to.Account), text(to.Chat), text(to.Thread), bounded(e.Key, maxKey), text(e.From), content)
		b.Queue(`SELECT id FROM timeline WHERE account = $1 AND chat = $2 AND thread = $3 AND idempotency_key = $4`,
			text(to.Account), text(to.Chat), text(to.Thread), bounded(e.Key, maxKey)).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
		queueChanged(b, to)
	})
	return chat.MessageID(strconv.FormatInt(id, 10)), err
}

// Replace implements chat.Timeline.
func (t Timeline) Replace(ctx context.Context, to chat.Address, id chat.MessageID, e chat.Entry) error {
	content, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("store: timeline: %w", err)
	}
	return t.change(ctx, "replace in timeline", to, id, `UPDATE timeline SET content = $5`, content)
}

// Remove implements chat.Timeline; an entry that is not there is chat.ErrGone.
func (t Timeline) Remove(ctx context.Context, to chat.Address, id chat.MessageID) error {
	return t.change(ctx, "remove from timeline", to, id, `DELETE FROM timeline`)
}

func (t Timeline) change(ctx context.Context, op string, to chat.Address, id chat.MessageID, verb string, args ...any) error {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return fmt.Errorf("store: %s: %w", op, chat.ErrGone)
	}
	err = t.db.batch(ctx, op, func(b *pgx.Batch) {
		b.Queue(`WITH changed AS (`+verb+` WHERE account = $1 AND chat = $2 AND thread = $3 AND id = $4 RETURNING 1)
			SELECT check_found(count(*)) FROM changed`, append([]any{text(to.Account), text(to.Chat), text(to.Thread), n}, args...)...)
		queueChanged(b, to)
	})
	if errors.Is(err, record.ErrNotFound) {
		return fmt.Errorf("store: %s: %w", op, chat.ErrGone)
	}
	return err
}

// List implements chat.Timeline.
func (t Timeline) List(ctx context.Context, of chat.Address, limit int) ([]chat.Entry, error) {
	var entries []chat.Entry
	err := t.db.read(ctx, "timeline", func(ctx context.Context) error {
		rows, err := t.db.pool.Query(ctx, `SELECT id, sender, content, created_at FROM timeline
			WHERE account = $1 AND chat = $2 AND thread = $3 ORDER BY id DESC LIMIT $4`, text(of.Account), text(of.Chat), text(of.Thread), limit)
		if err != nil {
			return err
		}
		return list(&entries, scanEntry)(rows)
	})
	slices.Reverse(entries)
	return entries, err
}

func scanEntry(row pgx.Row) (e chat.Entry, err error) {
	var id int64
	var from chat.Person
	var content []byte
	var at time.Time
	if err := row.Scan(&id, &from, &content, &at); err != nil {
		return e, err
	}
	if err := json.Unmarshal(content, &e); err != nil {
		return e, fmt.Errorf("timeline entry %d: %w", id, err)
	}
	e.ID, e.From, e.At = chat.MessageID(strconv.FormatInt(id, 10)), from, at
	return e, nil
}

// Watch implements chat.Timeline. All watchers of the process share one listening
// connection. changed is called from the calling goroutine only.
func (t Timeline) Watch(ctx context.Context, of chat.Address, changed func()) error {
	ctx, stop := t.db.until(ctx)
	defer stop()
	w := t.db.chats.join(t.db, of)
	defer t.db.chats.leave(of, w)
	poll := time.NewTicker(timelinePoll)
	defer poll.Stop()
	for {
		select {
		case <-w:
		case <-poll.C:
		case <-ctx.Done():
			return nil
		}
		changed()
	}
}

// queueChanged notifies the watchers of a chat when the transaction commits.
func queueChanged(b *pgx.Batch, of chat.Address) {
	b.Queue(`SELECT pg_notify($1, $2)`, timelineChannel, watchKey(of))
}

// watchKey names a chat in a notification, whose size is limited.
func watchKey(a chat.Address) string { return bounded(a.String(), maxKey) }

// watcher is woken through a channel that holds one wake-up.
type watcher chan struct{}

func (w watcher) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// chatWatch spreads the notifications of one connection over the watchers; it
// listens while there is one.
type chatWatch struct {
	mu       sync.Mutex
	watchers map[string][]watcher
	stop     context.CancelFunc
}

func (c *chatWatch) join(db *DB, of chat.Address) watcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.watchers) == 0 {
		var ctx context.Context
		ctx, c.stop = context.WithCancel(db.closing)
		c.watchers = map[string][]watcher{}
		db.running.Go(func() { db.listen(ctx, timelineChannel, c.wakeAll, c.wake) })
	}
	w := make(watcher, 1)
	c.watchers[watchKey(of)] = append(c.watchers[watchKey(of)], w)
	return w
}

func (c *chatWatch) leave(of chat.Address, w watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := watchKey(of)
	c.watchers[k] = slices.DeleteFunc(c.watchers[k], func(x watcher) bool { return x == w })
	if len(c.watchers[k]) == 0 {
		delete(c.watchers, k)
	}
	if len(c.watchers) == 0 {
		c.stop()
	}
}

func (c *chatWatch) wake(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watchers[key] {
		w.wake()
	}
}

func (c *chatWatch) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ws := range c.watchers {
		for _, w := range ws {
			w.wake()
		}
	}
}
