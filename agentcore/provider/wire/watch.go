package wire

import (
	"context"
	"fmt"
	"io"
	"time"
)

// silence ends a request whose server has nothing more to say.
type silence struct {
	limit time.Duration
	begun bool
}

func (s *silence) Error() string {
	if s.begun {
		return fmt.Sprintf("the answer stopped for %s", s.limit)
	}
	return fmt.Sprintf("no answer within %s", s.limit)
}

// watch cancels a request after too long a silence. It belongs to one goroutine.
type watch struct {
	timer  *time.Timer
	idle   time.Duration
	begun  bool
	cancel context.CancelCauseFunc
}

func newWatch(first, idle time.Duration, cancel context.CancelCauseFunc) *watch {
	w := &watch{idle: idle, cancel: cancel}
	w.timer = time.AfterFunc(first, func() { cancel(&silence{limit: first}) })
	return w
}

// alive is called for every piece of the answer.
func (w *watch) alive() {
	if w.begun {
		w.timer.Reset(w.idle)
		return
	}
	w.begun = true
	w.timer.Stop()
	idle, cancel := w.idle, w.cancel
	w.timer = time.AfterFunc(idle, func() { cancel(&silence{limit: idle, begun: true}) })
}

// shorten lowers the limit from now on.
func (w *watch) shorten(limit time.Duration) {
	if limit < w.idle {
		w.idle = limit
		w.timer.Reset(limit)
	}
}

func (w *watch) stop() { w.timer.Stop() }

// lively tells the watch of every read that brought something.
type lively struct {
	io.Reader
	watch *watch
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.watch.alive()
	}
	return n, err
}
