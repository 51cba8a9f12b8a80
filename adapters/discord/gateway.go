package discord

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
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
// the session for RESUME; when to connect, and when a connection is dead, is decided
// here, since the library tries for ever after fatal close codes, waits for ever on
// a silent socket, and ends the session when acknowledgements are missing.
type connection struct {
	session *discordgo.Session
	idle    time.Duration // without a frame, or an acknowledgement, for so long it is dead
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
			l.watch(ctx, down)
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

// watch waits for the end of a connection, and ends one whose heartbeats are not
// acknowledged before the library does: it would close the session with it.
func (l *connection) watch(ctx context.Context, down <-chan struct{}) {
	tick := time.NewTicker(l.idle / 4)
	defer tick.Stop()
	for {
		select {
		case <-down:
			return
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.session.RLock()
			last := l.session.LastHeartbeatAck
			l.session.RUnlock()
			if now.Sub(last) > l.idle {
				l.mu.Lock()
				l.conn.kill()
				l.mu.Unlock()
			}
		}
	}
}

// dialer makes connections that end with ctx and with silence.
func (l *connection) dialer(ctx context.Context) *websocket.Dialer {
	return &websocket.Dialer{
		HandshakeTimeout: openLimit, Proxy: http.ProxyFromEnvironment,
		NetDialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{Timeout: openLimit}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			g := &guard{Conn: c, idle: l.idle}
			g.stop = context.AfterFunc(ctx, g.kill)
			l.mu.Lock()
			l.conn = g
			l.mu.Unlock()
			return g, nil
		},
	}
}

// guard bounds silence on a connection, and ends it without the library's close
// frame, whose 1000 would end the session that is to be resumed.
type guard struct {
	net.Conn
	idle time.Duration
	stop func() bool
}

func (g *guard) kill() { _ = g.Conn.Close() }

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	if err := g.Conn.SetReadDeadline(time.Now().Add(g.idle)); err != nil {
		return 0, err
	}
	return g.Conn.Read(p)
}

// closeFrame is the first byte of a close frame. The library writes each frame at
// once.
const closeFrame = 0x88

// Write implements net.Conn.
func (g *guard) Write(p []byte) (int, error) {
	if len(p) > 0 && p[0] == closeFrame {
		g.kill()
		return 0, net.ErrClosed
	}
	if err := g.Conn.SetWriteDeadline(time.Now().Add(openLimit)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// SetDeadline and the two others implement net.Conn: the guard sets its own.
func (g *guard) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (g *guard) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (g *guard) SetWriteDeadline(time.Time) error { return nil }

// Close implements net.Conn.
func (g *guard) Close() error {
	g.stop()
	return g.Conn.Close()
}
