package discord

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// dialer makes connections that end with ctx and with silence.
func (l *connection) dialer(ctx context.Context) *websocket.Dialer {
	guarded := func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		g := &guard{Conn: c, idle: l.idle}
		g.stop = context.AfterFunc(ctx, g.kill)
		l.mu.Lock()
		l.conn = g
		l.mu.Unlock()
		return g, nil
	}
	return &websocket.Dialer{
		HandshakeTimeout: openLimit,
		NetDialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			return guarded((&net.Dialer{Timeout: openLimit}).DialContext(ctx, network, addr))
		},
		// The guard has to stand inside of the encryption, to see the frames.
		NetDialTLSContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			return guarded(dialTLS(ctx, network, addr))
		},
	}
}

// dialTLS makes an encrypted connection, through the environment's proxy if there is
// one.
func dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: addr}})
	if err != nil {
		return nil, err
	}
	to := addr
	if proxy != nil {
		to = proxy.Host
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, to)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		err = throughProxy(c, proxy, addr)
	}
	secure := tls.Client(c, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	if err == nil {
		err = secure.HandshakeContext(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return secure, nil
}

// throughProxy asks an HTTP proxy for a tunnel.
func throughProxy(c net.Conn, proxy *url.URL, addr string) error {
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
		r.Header.Set("Proxy-Authorization", r.Header.Get("Authorization"))
		r.Header.Del("Authorization")
	}
	if err := c.SetDeadline(time.Now().Add(openLimit)); err != nil {
		return err
	}
	if err := r.Write(c); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("discord: the proxy %s answers %s", proxy.Host, resp.Status)
	}
	return c.SetDeadline(time.Time{})
}

// guard bounds silence on a connection, notes the code with which the gateway closes
// it, of which the library tells nobody, and ends it without the library's own close
// frame, whose 1000 would end the session that is to be resumed.
type guard struct {
	net.Conn
	idle   time.Duration
	stop   func() bool
	frames frames
	closed atomic.Int32
}

func (g *guard) kill() { _ = g.Conn.Close() }

// code is the gateway's close code; 0 if there was none.
func (g *guard) code() int {
	if g == nil {
		return 0
	}
	return int(g.closed.Load())
}

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	if err := g.Conn.SetReadDeadline(time.Now().Add(g.idle)); err != nil {
		return 0, err
	}
	n, err := g.Conn.Read(p)
	if code := g.frames.see(p[:n]); code != 0 {
		g.closed.Store(int32(code))
	}
	return n, err
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

// frames follows the frames of a WebSocket from the answer to its upgrade on, to find
// the one that closes it.
type frames struct {
	rest     []byte // the beginning of a header
	skip     uint64 // what is left of a payload
	upgraded bool
}

// see reads on, and returns the code of a close frame.
func (f *frames) see(p []byte) (code int) {
	f.rest = append(f.rest, p...)
	if !f.upgraded {
		end := bytes.Index(f.rest, []byte("\r\n\r\n"))
		if end < 0 {
			return 0
		}
		f.rest, f.upgraded = f.rest[end+4:], true
	}
	for {
		if n := uint64(len(f.rest)); f.skip > 0 {
			used := min(n, f.skip)
			f.rest, f.skip = f.rest[used:], f.skip-used
		}
		head, size := header(f.rest)
		if head == 0 {
			f.rest = append([]byte(nil), f.rest...) // let go of what was read
			return code
		}
		if f.rest[0] == closeFrame && size >= 2 {
			if len(f.rest) < head+2 {
				return code
			}
			code = int(binary.BigEndian.Uint16(f.rest[head:]))
		}
		f.rest, f.skip = f.rest[head:], size
	}
}

// header reads a frame's header: its own length, 0 if it is not whole, and that of
// the payload.
func header(b []byte) (head int, size uint64) {
	if len(b) < 2 {
		return 0, 0
	}
	switch size = uint64(b[1] & 0x7f); {
	case size == 126 && len(b) >= 4:
		return 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case size == 127 && len(b) >= 10:
		return 10, binary.BigEndian.Uint64(b[2:])
	case size < 126:
		return 2, size
	}
	return 0, 0
}
