package discord

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

const (
	// openLimit bounds the TCP and WebSocket handshakes.
	openLimit = 15 * time.Second
	// leastPause is the least time between a loss and the next try: what the library
	// does late about the old connection would else hit the new one.
	leastPause = 300 * time.Millisecond
	mostPause  = time.Minute
	// settled is how long a connection must have held for the waits to begin anew.
	settled = 10 * time.Second
)

// connection is the link to the gateway. The library speaks the protocol and keeps
// the session for RESUME, and leaves a connection on which five heartbeats in a row
// are not acknowledged. When to connect, and when a silent connection is dead, is
// decided here, since the library tries for ever after fatal close codes and waits for
// ever on a silent socket.
type connection struct {
	session *discordgo.Session
	idle    time.Duration // without a frame for so long it is dead
	deliver func(*discordgo.Event)
	// lost is told about each loss and each failed try. Its error ends the link.
	lost func(ctx context.Context, err error) error

	mu   sync.Mutex
	conn *guard
}

// run keeps the link up until ctx ends or lost says that it is of no use.
func (l *connection) run(ctx context.Context) error {
	down := make(chan struct{}, 1)
	defer l.session.AddHandler(func(*discordgo.Session, *discordgo.Disconnect) {
		select {
		case down <- struct{}{}:
		default:
		}
	})()
	defer l.session.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) { l.deliver(e) })()
	l.session.Dialer = l.dialer(ctx)
	for failed := 0; ; failed++ {
		select {
		case <-down:
		default:
		}
		began := time.Now()
		err := l.session.Open()
		if err == nil {
			select {
			case <-down:
			case <-ctx.Done():
			}
			err = l.closed()
			if ctx.Err() != nil {
				_ = l.session.Close() // its goroutines have ended when it returns
				return nil
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if fatal := l.lost(ctx, err); fatal != nil {
			return fatal
		}
		if time.Since(began) > settled {
			failed = 0
		}
		l.pause(ctx, failed)
	}
}

func (l *connection) pause(ctx context.Context, failed int) {
	d := min(leastPause<<min(failed, 8), mostPause)
	t := time.NewTimer(d + time.Duration(rand.Int64N(int64(leastPause))))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// closed is why the gateway closed the last connection, nil if it did not say.
func (l *connection) closed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if code := l.conn.code(); code != 0 {
		return &websocket.CloseError{Code: code}
	}
	return nil
}
