package fakediscord

import "encoding/json"

// Link is what the gateway has seen of its clients so far.
type Link struct {
	Connected  bool // a session has a connection
	Opened     int  // connections, whatever became of them
	Identified int
	Resumed    int
	CloseCodes []int // that clients sent
	Intents    int   // of the newest session
}

// Link returns it.
func (s *Server) Link() Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.gateway
	l := Link{Opened: g.opened, Identified: g.identified, Resumed: g.resumed, CloseCodes: append([]int{}, g.closeCodes...)}
	for _, x := range g.sessions {
		l.Connected = l.Connected || x.conn != nil
		if x.conn != nil || l.Intents == 0 {
			l.Intents = x.intents
		}
	}
	return l
}

// connections runs f on each that has a session.
func (s *Server) connections(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.gateway.sessions {
		if x.conn != nil {
			f(x.conn)
		}
	}
}

// Cut ends all gateway connections without a word.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.gateway.sessions {
		x.drop()
	}
}

// AskReconnect sends RECONNECT (op 7).
func (s *Server) AskReconnect() { s.connections(func(c *conn) { c.send(payload{Op: opReconnect}) }) }

// Invalidate ends all sessions: INVALID_SESSION (op 9), which cannot be resumed; the
// connections stay, for a new IDENTIFY.
func (s *Server) Invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.gateway.sessions {
		if x.conn != nil {
			x.conn.send(payload{Op: opInvalid, D: json.RawMessage("false")})
		}
		delete(s.gateway.sessions, id)
	}
}

// CloseAll closes all connections with a code.
func (s *Server) CloseAll(code int) { s.connections(func(c *conn) { c.end(code) }) }

// RefuseNext closes the next connections with these codes, after their IDENTIFY or
// RESUME.
func (s *Server) RefuseNext(codes ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.refuse = append(s.gateway.refuse, codes...)
}

// InvalidNext answers so many RESUMEs with INVALID_SESSION.
func (s *Server) InvalidNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.invalid = n
}

// ReplayTwice makes RESUME replay what the client had already (DUP-003).
func (s *Server) ReplayTwice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.twice = true
}

// Freeze makes all open connections half-open: nothing comes over them any more, and
// nobody says so.
func (s *Server) Freeze() {
	s.connections(func(c *conn) {
		c.mu.Lock()
		c.frozen = true
		c.mu.Unlock()
	})
}

// Mute acknowledges no heartbeat while it is on; events go on.
func (s *Server) Mute(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.muted = on
}

// Silence accepts connections and says nothing, not even HELLO, while it is on.
func (s *Server) Silence(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway.silent = on
}

// Dispatch sends any event to all sessions.
func (s *Server) Dispatch(event string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(0, event, data)
}
