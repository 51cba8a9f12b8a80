package fakeslack

import (
	"io"
	"net/http"
)

// Fault is one way to go wrong. The zero value cuts the connection before the call
// takes effect. Several values may share one Fault; it is not changed.
type Fault struct {
	AfterEffect bool   // do what the call asks first
	Late        bool   // do it when [Server.Land] is called
	Hang        bool   // never answer; ends when the client or the server goes away
	Status      int    // of Body, or of the refusal; 0: cut the connection, or 200
	Error       string // the word of a refusal
	RetryAfter  int    // seconds
	Body        string // instead of JSON, as HTML
}

// The usual faults.
var (
	// CutBefore cuts the connection and does nothing else.
	CutBefore = &Fault{}
	// CutAfter does what the call asks and cuts the connection (DEL-004).
	CutAfter = &Fault{AfterEffect: true}
	// LandsLate cuts the connection; what the call asks for happens all the same, at
	// [Server.Land].
	LandsLate = &Fault{Late: true}
	// HangAfter does what the call asks and never answers.
	HangAfter = &Fault{AfterEffect: true, Hang: true}
	// BadGateway is the page of a proxy.
	BadGateway = &Fault{Status: http.StatusBadGateway, Body: "<html><head><title>502 Bad Gateway</title></head></html>"}
)

// TooManyRequests is a 429 that asks to wait.
func TooManyRequests(seconds int) *Fault {
	return &Fault{Status: http.StatusTooManyRequests, Error: "ratelimited", RetryAfter: seconds}
}

// Refusal is "ok": false with a word, for example "channel_not_found".
func Refusal(word string) *Fault { return &Fault{Error: word} }

// faults decides which calls go wrong.
type faults struct {
	hook func(Call) *Fault
	next map[string][]*Fault
	late []*request
}

// Land does what the calls asked for that are still on their way, after the connection
// that brought them has gone (DEL-004).
func (s *Server) Land() {
	s.mu.Lock()
	late := s.fail.late
	s.fail.late = nil
	s.mu.Unlock()
	for _, r := range late {
		_, _ = s.perform(r) // nobody is there to be answered
	}
	s.flush()
}

// Fail asks f about each call before it takes effect; nil lets it pass. f must be
// safe for concurrent use and replaces the former one; nil ends it.
func (s *Server) Fail(f func(Call) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail.hook = f
}

// FailNext makes the next calls of a method go wrong, one fault each, before Fail is
// asked. A nil fault lets its call pass.
func (s *Server) FailNext(method string, f ...*Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail.next == nil {
		s.fail.next = map[string][]*Fault{}
	}
	s.fail.next[method] = append(s.fail.next[method], f...)
}

// begin counts and records a call and decides whether it goes wrong.
func (s *Server) begin(r *request) *Fault {
	s.mu.Lock()
	s.record.counts[r.method]++
	call := Call{Method: r.method, Params: r.params, At: s.opt.now()}
	if s.opt.calls {
		s.record.calls = append(s.record.calls, call)
	}
	hook := s.fail.hook
	queued := s.fail.next[r.method]
	if len(queued) > 0 {
		s.fail.next[r.method] = queued[1:]
	}
	s.changed.fire()
	s.mu.Unlock()
	switch {
	case len(queued) > 0:
		return queued[0]
	case hook != nil:
		return hook(call)
	}
	return nil
}

// misbehave answers as the fault says.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request, f *Fault) {
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		panic(http.ErrAbortHandler)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	case f.Error != "":
		respond(w, nil, &refusal{Status: f.Status, Word: f.Error, RetryAfter: f.RetryAfter})
	default:
		panic(http.ErrAbortHandler)
	}
}
