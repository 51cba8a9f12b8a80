package fakediscord

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The gateway's opcodes.
const (
	opDispatch   = 0
	opHeartbeat  = 1
	opIdentify   = 2
	opPresence   = 3
	opResume     = 6
	opReconnect  = 7
	opMembers    = 8
	opInvalid    = 9
	opHello      = 10
	opHeartbeats = 11
)

// The intents that matter here.
const (
	intentGuilds   = 1 << 0
	intentMembers  = 1 << 1
	intentPresence = 1 << 8
	intentMessages = 1 << 9
	intentDirect   = 1 << 12
	intentContent  = 1 << 15
	allIntents     = 1<<26 - 1
)

// payload is a frame of the gateway.
type payload struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
	S  *int64          `json:"s"`
	T  *string         `json:"t"`
}

// gateway is everything about connections. The server's lock guards it.
type gateway struct {
	sessions   map[string]*session
	waiting    map[*conn]bool // connections without a session
	opened     int
	identified int
	resumed    int
	closeCodes []int // that clients sent
	silent     bool  // accept connections and say nothing
	muted      bool  // acknowledge no heartbeats
	refuse     []int // close codes for the next IDENTIFY or RESUME
	invalid    int   // so many RESUMEs are answered with INVALID_SESSION
	twice      bool  // a RESUME replays what the client had already, too
}

// session is one session of the gateway; it outlives its connection.
type session struct {
	id      string
	intents int
	seq     int64
	history []payload
	conn    *conn
}

// send numbers an event, keeps it for RESUME and sends it.
func (x *session) send(event string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("fakediscord: " + err.Error())
	}
	x.seq++
	n := x.seq
	p := payload{Op: opDispatch, D: raw, S: &n, T: &event}
	x.history = append(x.history, p)
	if x.conn != nil {
		x.conn.send(p)
	}
}

func (x *session) drop() {
	if x.conn != nil {
		x.conn.cut()
		x.conn = nil
	}
}

// dispatch sends an event to all sessions with the intent. The lock must be held.
func (s *Server) dispatch(intent int, event string, data any) {
	s.each(intent, func(x *session) { x.send(event, data) })
}

func (s *Server) each(intent int, f func(*session)) {
	for _, x := range s.gateway.sessions {
		if intent == 0 || x.intents&intent != 0 {
			f(x)
		}
	}
}

// conn is one connection. Its writer goroutine alone writes.
type conn struct {
	ws       *websocket.Conn
	compress bool
	deflate  *zlib.Writer // the writer's own
	mu       sync.Mutex
	out      []payload
	frozen   bool
	wake     chan struct{}
	done     chan struct{}
	once     sync.Once
	close    int // code to close with after what is queued
}

func (c *conn) send(p payload) {
	c.mu.Lock()
	c.out = append(c.out, p)
	c.mu.Unlock()
	c.ring()
}

func (c *conn) ring() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// cut ends the TCP connection without a word.
func (c *conn) cut() {
	c.once.Do(func() { close(c.done) })
	_ = c.ws.NetConn().Close()
}

// end closes with a code after what is queued.
func (c *conn) end(code int) {
	c.mu.Lock()
	c.close = code
	c.mu.Unlock()
	c.ring()
}

// write is the connection's writer.
func (c *conn) write() {
	for {
		c.mu.Lock()
		out, code := c.out, c.close
		if c.frozen {
			out, code = nil, 0
		} else {
			c.out = nil
		}
		c.mu.Unlock()
		for _, p := range out {
			if c.writeOne(p) != nil {
				return
			}
		}
		if code != 0 {
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "fake"), time.Now().Add(time.Second))
			return
		}
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
	}
}

// compressFrom is the size from which frames are compressed, if the client can.
const compressFrom = 512

func (c *conn) writeOne(p payload) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if !c.compress || len(b) < compressFrom {
		return c.ws.WriteMessage(websocket.TextMessage, b)
	}
	var z bytes.Buffer
	if c.deflate == nil {
		c.deflate = zlib.NewWriter(&z)
	} else {
		c.deflate.Reset(&z)
	}
	if _, err := c.deflate.Write(b); err != nil {
		return err
	}
	if err := c.deflate.Close(); err != nil {
		return err
	}
	return c.ws.WriteMessage(websocket.BinaryMessage, z.Bytes())
}

func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{ws: ws, wake: make(chan struct{}, 1), done: make(chan struct{})}
	var writer sync.WaitGroup
	writer.Go(c.write)
	defer writer.Wait()
	defer c.cut()
	s.mu.Lock()
	if s.gateway.waiting == nil {
		s.gateway.waiting = map[*conn]bool{}
	}
	s.gateway.waiting[c] = true
	s.gateway.opened++
	silent := s.gateway.silent
	s.touch()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.gateway.waiting, c)
		s.mu.Unlock()
	}()
	if !silent {
		hello, _ := json.Marshal(object{"heartbeat_interval": s.opt.heartbeat.Milliseconds()})
		c.send(payload{Op: opHello, D: hello})
	}
	s.converse(c)
}

// converse reads a connection until its end.
func (s *Server) converse(c *conn) {
	var x *session
	for {
		_, b, err := c.ws.ReadMessage()
		if err != nil {
			s.lost(c, x, err)
			return
		}
		var p payload
		if json.Unmarshal(b, &p) != nil {
			c.end(4002)
			continue
		}
		s.mu.Lock()
		if x != nil && s.gateway.sessions[x.id] != x {
			x = nil // invalidated
		}
		switch {
		case p.Op == opHeartbeat:
			if !s.gateway.muted {
				c.send(payload{Op: opHeartbeats})
			}
		case p.Op == opIdentify && x == nil, p.Op == opResume && x == nil:
			x = s.begins(c, p)
		case p.Op == opIdentify, p.Op == opResume:
			c.end(4005)
		case x == nil:
			c.end(4003)
		case p.Op == opPresence, p.Op == opMembers:
		default:
			c.end(4001)
		}
		s.touch()
		s.mu.Unlock()
	}
}

// lost is the end of a connection: its session waits for RESUME unless the client
// closed it in order.
func (s *Server) lost(c *conn, x *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ce := (*websocket.CloseError)(nil); errors.As(err, &ce) {
		s.gateway.closeCodes = append(s.gateway.closeCodes, ce.Code)
		if x != nil && (ce.Code == websocket.CloseNormalClosure || ce.Code == websocket.CloseGoingAway) {
			delete(s.gateway.sessions, x.id)
		}
	}
	if x != nil && x.conn == c {
		x.conn = nil
	}
	s.touch()
}

// begins answers IDENTIFY and RESUME. The lock is held.
func (s *Server) begins(c *conn, p payload) *session {
	var d struct {
		Token    string `json:"token"`
		Compress bool   `json:"compress"`
		Intents  int    `json:"intents"`
		Session  string `json:"session_id"`
		Seq      int64  `json:"seq"`
	}
	if json.Unmarshal(p.D, &d) != nil {
		c.end(4002)
		return nil
	}
	g := &s.gateway
	code := 0
	if len(g.refuse) > 0 {
		code, g.refuse = g.refuse[0], g.refuse[1:]
	}
	switch {
	case code != 0:
	case strings.TrimPrefix(d.Token, "Bot ") != s.opt.token:
		code = 4004
	case p.Op == opIdentify && d.Intents&^allIntents != 0:
		code = 4013
	case p.Op == opIdentify && (d.Intents&(intentMembers|intentPresence) != 0 || d.Intents&intentContent != 0 && !s.opt.content):
		code = 4014
	}
	if code != 0 {
		c.end(code)
		return nil
	}
	if p.Op == opResume {
		return s.resume(c, d.Session, d.Seq)
	}
	c.compress = d.Compress
	g.identified++
	s.change(Connected, "", "")
	x := &session{id: fmt.Sprintf("session-%d", g.identified), intents: d.Intents, conn: c}
	g.sessions[x.id] = x
	guilds := []object{}
	for id := range s.world.guilds {
		guilds = append(guilds, object{"id": id, "unavailable": true})
	}
	x.send("READY", object{
		"v": 9, "user": botUser(), "guilds": guilds, "session_id": x.id, "resume_gateway_url": "ws://" + s.listener.Addr().String() + "/gateway",
		"application": object{"id": ApplicationID, "flags": 0},
	})
	for id := range s.world.guilds {
		if x.intents&intentGuilds != 0 {
			x.send("GUILD_CREATE", s.guildJSON(id))
		}
	}
	return x
}

// resume goes on with a session, or says that there is none.
func (s *Server) resume(c *conn, id string, seq int64) *session {
	g := &s.gateway
	x := g.sessions[id]
	if g.invalid > 0 {
		g.invalid--
		delete(g.sessions, id)
		x = nil
	}
	if x == nil {
		c.send(payload{Op: opInvalid, D: json.RawMessage("false")})
		return nil
	}
	if seq > x.seq {
		c.end(4007)
		return nil
	}
	c.compress = true
	g.resumed++
	x.drop()
	x.conn = c
	from := seq
	if g.twice {
		from = 0
	}
	for _, p := range x.history {
		if *p.S > from && *p.T != "READY" && *p.T != "RESUMED" {
			c.send(p)
		}
	}
	x.send("RESUMED", object{})
	return x
}
