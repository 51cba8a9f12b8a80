package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/gateway/chat"
)

func TestTimeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	tl := w.Timeline()
	here, there := chat.Address{Account: "web/main", Chat: "c"}, chat.Address{Account: "web/main", Chat: "c", Thread: "t"}
	entries := []chat.Entry{
		{Key: "1", From: ann, Text: "hello"},
		{Key: "2", Text: "so far", Live: true, Progress: []string{"⚙"}, Buttons: [][]chat.Button{{{Label: "Stop", Data: "s"}}}},
		{Key: strings.Repeat("long", 1000), Text: "third \x00"},
	}
	for i := range entries {
		id, err := tl.Append(ctx, here, entries[i])
		w.check(err)
		entries[i].ID = id
	}
	same := func(limit int, want []chat.Entry) {
		t.Helper()
		got, err := tl.List(ctx, here, limit)
		w.check(err)
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(chat.Entry{}, "At")); d != "" {
			t.Error(d)
		}
	}
	again, err := tl.Append(ctx, here, chat.Entry{Key: "1", Text: "another"})
	w.check(err)
	if again != entries[0].ID {
		t.Errorf("the same key was added twice: %s and %s", again, entries[0].ID)
	}
	// An answer whose live message was added by a process that died before it knew.
	again, err = tl.Append(ctx, here, chat.Entry{Key: "2", Text: "the answer"})
	w.check(err)
	entries[1] = chat.Entry{ID: entries[1].ID, Key: "2", Text: "the answer"}
	same(10, entries)
	if again != entries[1].ID {
		t.Errorf("the same key was added twice: %s and %s", again, entries[1].ID)
	}
	_, err = tl.Append(ctx, there, chat.Entry{Key: "1", Text: "elsewhere"})
	w.check(err)
	entries[1] = chat.Entry{ID: entries[1].ID, Key: "2", Text: "done"}
	w.check(tl.Replace(ctx, here, entries[1].ID, entries[1]))
	same(10, entries)
	same(2, entries[1:])
	w.check(tl.Remove(ctx, here, entries[0].ID))
	same(10, entries[1:])
	for _, err := range []error{
		tl.Remove(ctx, here, entries[0].ID), tl.Replace(ctx, here, entries[0].ID, entries[0]),
		tl.Replace(ctx, there, entries[1].ID, entries[1]), tl.Replace(ctx, here, "x", entries[1]),
	} {
		if !errors.Is(err, chat.ErrGone) {
			t.Errorf("got %v, want ErrGone", err)
		}
	}
}

// watching wakes its channel after each change of a chat; it returns once changes
// are seen.
func (w *world) watching(of chat.Address) (<-chan struct{}, func()) {
	changes := make(chan struct{}, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Timeline().Watch(ctx, of, func() { changes <- struct{}{} }); err != nil {
			w.t.Error(err)
		}
	})
	return changes, func() { cancel(); wg.Wait() }
}

func (w *world) changed(changes <-chan struct{}) {
	w.t.Helper()
	select {
	case <-changes:
	case <-time.After(timelineWait):
		w.t.Fatal("a change was not seen")
	}
}

// timelineWait is less than the slow way needs, so that it cannot help.
const timelineWait = 8 * time.Second

// A change is seen by every process, also after the listening connection was killed
// (PGS-001); watchers share that connection, and it is closed with the last of them.
func TestTimelineWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.other()
	chats := []chat.Address{{Account: "web/main", Chat: "a"}, {Account: "web/main", Chat: "b"}}
	listeners := func() int {
		return query[int](w, `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
	}
	a, stopA := w.watching(chats[0])
	w.changed(a) // listening has begun
	b, stopB := w.watching(chats[1])
	say := func(r *world, to chat.Address, key string) {
		t.Helper()
		_, err := r.Timeline().Append(t.Context(), to, chat.Entry{Key: key, Text: key})
		w.check(err)
	}
	say(o, chats[0], "1")
	w.changed(a)
	say(w, chats[1], "2")
	w.changed(b)
	if len(a) != 0 {
		t.Error("a watcher was woken for another chat")
	}
	if n := listeners(); n != 1 {
		t.Errorf("%d listening connections, want one", n)
	}
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
	w.changed(a)
	w.changed(b)
	stopA()
	say(o, chats[1], "3")
	w.changed(b)
	stopB()
	w.eventually("the listener's end", func() bool { return listeners() == 0 })
	c, stopC := w.watching(chats[0])
	w.changed(c)
	stopC()
}
