package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	lib "github.com/slack-go/slack"
	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/healing"
)

const (
	// helloLimit is how long a new socket may take to say hello.
	helloLimit = 20 * time.Second
	// drainLimit is how long an old socket stays open beside its successor.
	drainLimit = 30 * time.Second
	// frameLimit is the largest event that is read; beyond it only the envelope's id
	// is, so that it does not come for ever (REC-003).
	frameLimit = 8 << 20
	// backlog is how many envelopes wait for the store before the sockets are read
	// no further.
	backlog = 256
)

// frame is a message of a socket.
type frame struct {
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`
	Reason   string          `json:"reason"`
}

// arrival is an envelope and the socket that its acknowledgement goes to.
type arrival struct {
	frame
	link *link
}

// link is one socket. Its reader is one goroutine; acknowledgements come from
// another.
type link struct {
	conn *websocket.Conn
	out  sync.Mutex
	// left is closed when no more events should be expected of it: it ended, or
	// Slack asked to leave it (REC-007).
	left chan struct{}
	once sync.Once
	err  error // why it ended; set before left is closed
}

func (l *link) leave(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.left)
	})
}

// acknowledge tells Slack that an envelope is dealt with. An error needs nothing:
// the envelope comes again and is known then.
func (l *link) acknowledge(id string) error {
	l.out.Lock()
	defer l.out.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return l.conn.WriteJSON(map[string]string{"envelope_id": id})
}

// errNoAppToken stands for what Slack would answer to no token.
var errNoAppToken = lib.SlackErrorResponse{Err: "not_authed"}

// runSockets keeps a socket open for ever. When Slack refreshes one, its successor is
// opened while the old one is still read.
func (a *Adapter) runSockets(ctx context.Context, heal *healing.Link) error {
	if a.cfg.AppToken.Empty() {
		return a.credential(errNoAppToken, true)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan arrival, backlog)
	running.Go(func() { a.takeIn(ctx, heal.Sink, arrivals) })
	for ctx.Err() == nil {
		l, err := a.dial(ctx)
		if err != nil {
			if cred := a.credential(err, true); cred != nil {
				return cred
			}
			wait(ctx, heal, err)
			continue
		}
		heal.Connected(ctx)
		running.Go(func() { a.read(ctx, l, arrivals) })
		<-l.left
		if l.err != nil {
			wait(ctx, heal, l.err)
		}
	}
	return nil
}

// dial opens a socket and waits until it says hello.
func (a *Adapter) dial(ctx context.Context) (*link, error) {
	octx, cancel := limited(ctx)
	defer cancel()
	_, address, err := a.api.StartSocketModeContext(octx)
	if err != nil {
		return nil, err
	}
	hctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: helloLimit}
	conn, resp, err := d.DialContext(hctx, address, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("slack: open a socket: %w", err)
	}
	l := &link{conn: conn, left: make(chan struct{})}
	stop := context.AfterFunc(hctx, func() { _ = conn.Close() })
	defer stop()
	var hello frame
	if err := conn.ReadJSON(&hello); err != nil || hello.Type != "hello" {
		_ = conn.Close()
		if hello.Type == "disconnect" {
			err = errors.New(disconnected(hello.Reason))
		}
		return nil, fmt.Errorf("slack: a socket without a hello: %w", err)
	}
	return l, nil
}

// disconnected puts Slack's reason into words.
func disconnected(reason string) string {
	if reason == "link_disabled" {
		return "Socket Mode is switched off for the app: switch it on (the app's page, Socket Mode)"
	}
	return "Slack asked to leave the socket (" + reason + ")"
}

// read hands a socket's envelopes on until it ends. A socket that shows no sign of
// life is closed (REC-020).
func (a *Adapter) read(ctx context.Context, l *link, arrivals chan<- arrival) {
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	defer stop()
	defer func() { _ = l.conn.Close() }()
	defer l.leave(nil)
	alive := func() error { return l.conn.SetReadDeadline(time.Now().Add(a.deps.Silence)) }
	pong := l.conn.PingHandler()
	l.conn.SetPingHandler(func(data string) error {
		_ = alive()
		l.out.Lock()
		defer l.out.Unlock()
		return pong(data)
	})
	var drain *time.Timer
	defer func() {
		if drain != nil {
			drain.Stop()
		}
	}()
	for {
		_ = alive()
		f, err := readFrame(l.conn)
		if err != nil {
			l.leave(fmt.Errorf("slack: the socket broke: %w", err))
			return
		}
		switch {
		case f.Type == "disconnect" && f.Reason == "link_disabled":
			l.leave(errors.New(disconnected(f.Reason)))
			return
		case f.Type == "disconnect" && drain == nil:
			drain = time.AfterFunc(drainLimit, func() { _ = l.conn.Close() })
			l.leave(nil)
		case f.Envelope != "":
			select {
			case arrivals <- arrival{f, l}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// envelopeID finds the id in a frame that cannot be read as a whole.
var envelopeID = regexp.MustCompile(`"envelope_id"\s*:\s*"([^"]{1,200})"`)

// readFrame reads one message. What cannot be parsed, or is too large, keeps the id
// of its envelope, if it has one, so that it can be acknowledged.
func readFrame(conn *websocket.Conn) (frame, error) {
	var f frame
	_, r, err := conn.NextReader()
	if err != nil {
		return f, err
	}
	raw, err := io.ReadAll(io.LimitReader(r, frameLimit))
	if err != nil {
		return f, err
	}
	rest, err := io.Copy(io.Discard, r)
	if err != nil {
		return f, err
	}
	if rest > 0 || json.Unmarshal(raw, &f) != nil {
		f = frame{}
		if m := envelopeID.FindSubmatch(raw); m != nil {
			f.Envelope = string(m[1])
		}
	}
	return f, nil
}

// takeIn hands the events of all sockets to the sink in the order in which they
// came, and acknowledges each when it is durable. One that cannot be stored is tried
// again until it can; the others wait behind it.
func (a *Adapter) takeIn(ctx context.Context, sink chat.Sink, arrivals <-chan arrival) {
	for {
		select {
		case <-ctx.Done():
			return
		case in := <-arrivals:
			for failed := 0; ; failed++ {
				err := a.take(ctx, sink, in.Type, in.Payload)
				if err == nil {
					break
				}
				a.log.Warn("an event could not be stored", zap.Error(err))
				if healing.Pause(ctx, healing.Growing(a.deps.Heal, failed)); ctx.Err() != nil {
					return
				}
			}
			if err := in.link.acknowledge(in.Envelope); err != nil {
				a.log.Debug("acknowledge", zap.Error(err))
			}
		}
	}
}

// take hands what an envelope holds to the sink. What cannot be read is logged and
// taken: it would come again for ever.
func (a *Adapter) take(ctx context.Context, sink chat.Sink, kind string, payload json.RawMessage) error {
	events, err := a.events(ctx, kind, payload)
	if err != nil {
		a.log.Warn("an event cannot be read and is skipped", zap.String("type", kind), zap.Int("bytes", len(payload)), zap.Error(err))
		return nil
	}
	for _, ev := range events {
		if err := sink(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}
