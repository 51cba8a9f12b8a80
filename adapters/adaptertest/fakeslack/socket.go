package fakeslack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// sockets is what is due to the bot and over which links. The server's lock guards
// it.
type sockets struct {
	tickets map[string]bool
	links   []*link
	due     []*envelope
	opened  int
	closed  bool
}

// link is one WebSocket of the bot.
type link struct {
	conn    *websocket.Conn
	out     sync.Mutex
	leaving bool
	silent  bool // nothing goes through, but nobody knows
}

// envelope is an event on its way.
type envelope struct {
	id      string
	typ     string
	payload json.RawMessage
	attempt int
	link    *link
	timer   *time.Timer
}

// channel is the conversation that an event is about, if a message of a person is in
// it.
func (e *envelope) channel() string {
	var in struct {
		Event struct {
			Channel string `json:"channel"`
			Bot     string `json:"bot_id"`
		} `json:"event"`
	}
	if json.Unmarshal(e.payload, &in) != nil || in.Event.Bot != "" {
		return ""
	}
	return in.Event.Channel
}

func (s *Server) connectionsOpen(*request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opt.requestURL != "" {
		return nil, refuse("socket_mode_not_enabled")
	}
	if s.sockets.tickets == nil {
		s.sockets.tickets = map[string]bool{}
	}
	ticket := s.world.id("T")
	s.sockets.tickets[ticket] = true
	return answer{"url": "ws" + strings.TrimPrefix(s.root(), "http") + "/link/?ticket=" + ticket + "&app_id=" + AppID}, nil
}

// serveSocket serves one WebSocket. Its ticket is good once.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	ok := s.sockets.tickets[ticket]
	delete(s.sockets.tickets, ticket)
	s.mu.Unlock()
	if !ok {
		http.Error(w, "this ticket is not good", http.StatusForbidden)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	l := &link{conn: conn}
	defer func() { _ = conn.Close() }()
	s.mu.Lock()
	if s.sockets.closed {
		s.mu.Unlock()
		return
	}
	l.write(fmt.Sprintf(`{"type":"hello","num_connections":1,"debug_info":{"host":"fake"},"connection_info":{"app_id":%q}}`, AppID))
	s.sockets.links = append(s.sockets.links, l)
	s.sockets.opened++
	for _, e := range s.sockets.due {
		if e.link == nil {
			s.send(e)
		}
	}
	s.tell(Connected, "", "")
	s.mu.Unlock()
	s.flush()
	stop := make(chan struct{})
	s.handlers.Go(func() { s.ping(l, stop) })
	s.read(l)
	close(stop)
	s.drop(l)
}

// ping keeps the link alive as long as it is not silent.
func (s *Server) ping(l *link, stop chan struct{}) {
	tick := time.NewTicker(s.opt.ping)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if !look(s, func() bool { return l.silent }) {
			l.out.Lock()
			_ = l.conn.WriteControl(websocket.PingMessage, []byte("Ping from fake"), time.Now().Add(time.Second))
			l.out.Unlock()
		}
	}
}

// read takes acknowledgements until the link ends.
func (s *Server) read(l *link) {
	for {
		_, raw, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			ID string `json:"envelope_id"`
		}
		if json.Unmarshal(raw, &ack) == nil && ack.ID != "" {
			s.acknowledge(ack.ID)
			s.flush()
		}
	}
}

func (s *Server) acknowledge(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sockets.due, func(e *envelope) bool { return e.id == id })
	if i < 0 {
		return
	}
	e := s.sockets.due[i]
	if e.timer != nil {
		e.timer.Stop()
	}
	s.sockets.due = slices.Delete(s.sockets.due, i, i+1)
	s.record.acks = append(s.record.acks, Ack{id, e.typ, e.attempt})
	s.tell(Acknowledged, e.channel(), "")
}

// drop ends a link: what it has not acknowledged goes over another one.
func (s *Server) drop(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets.links = slices.DeleteFunc(s.sockets.links, func(x *link) bool { return x == l })
	for _, e := range s.sockets.due {
		if e.link == l {
			e.link = nil
			s.send(e)
		}
	}
	s.changed.fire()
}

// due makes an event due, over a socket or to the request URL. The lock is held.
func (s *Server) due(typ string, payload any) {
	raw, err := json.Marshal(payload)
	if err != nil {
		panic("fakeslack: " + err.Error())
	}
	if s.sockets.closed {
		return
	}
	if s.opt.requestURL != "" {
		s.handlers.Go(func() { s.request(typ, raw) })
		return
	}
	e := &envelope{typ: typ, payload: raw}
	s.sockets.due = append(s.sockets.due, e)
	s.send(e)
}

// send puts an envelope on the newest link that stays, under a new id, and again if
// it is not acknowledged in time. Without a link it waits for one. The lock is held.
func (s *Server) send(e *envelope) {
	if e.timer != nil {
		e.timer.Stop()
	}
	if s.sockets.closed || len(s.sockets.links) == 0 {
		return
	}
	l := s.sockets.links[len(s.sockets.links)-1]
	for _, x := range s.sockets.links {
		if !x.leaving {
			l = x
		}
	}
	if e.id != "" {
		e.attempt++
	}
	e.id, e.link = s.world.id("env-"), l
	reason := ""
	if e.attempt > 0 {
		reason = "timeout"
	}
	raw, _ := json.Marshal(map[string]any{
		"envelope_id": e.id, "type": e.typ, "payload": e.payload, "accepts_response_payload": e.typ != "events_api",
		"retry_attempt": e.attempt, "retry_reason": reason,
	})
	if !l.silent {
		l.write(string(raw))
	}
	e.timer = time.AfterFunc(s.opt.retry, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if slices.Contains(s.sockets.due, e) {
			s.send(e)
		}
	})
}

// write sends a frame; an error shows when reading.
func (l *link) write(s string) {
	l.out.Lock()
	defer l.out.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = l.conn.WriteMessage(websocket.TextMessage, []byte(s))
}

// end closes everything. The lock is held.
func (w *sockets) end() {
	w.closed = true
	for _, l := range w.links {
		_ = l.conn.Close()
	}
	for _, e := range w.due {
		if e.timer != nil {
			e.timer.Stop()
		}
	}
}

// Links is how many sockets are open, and Opened how many there ever were.
func (s *Server) Links() int { return look(s, func() int { return len(s.sockets.links) }) }

// Opened is how many sockets there ever were.
func (s *Server) Opened() int { return look(s, func() int { return s.sockets.opened }) }

// Due is how many envelopes are not acknowledged.
func (s *Server) Due() int { return look(s, func() int { return len(s.sockets.due) }) }

// Frame writes raw bytes to the newest socket, as a message of its own.
func (s *Server) Frame(raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets.links[len(s.sockets.links)-1].write(raw)
}

// Envelope makes an envelope of any type and payload due.
func (s *Server) Envelope(typ string, payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due(typ, payload)
}

// Disconnect asks the bot to leave its sockets (REC-007). They stay open until it
// does, or until Cut.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.sockets.links {
		l.leaving = true
		l.write(fmt.Sprintf(`{"type":"disconnect","reason":%q,"debug_info":{"host":"fake"}}`, reason))
	}
}

// Cut breaks every socket without a word.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.sockets.links {
		_ = l.conn.NetConn().Close()
	}
}

// Silence makes the open sockets let nothing through, pings included, while they
// seem to be open (REC-020).
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.sockets.links {
		l.silent = true
	}
}
