package faketelegram

import (
	"io"
	"net/http"
)

// FileDownload is the Method of a Call that downloads a file; its only parameter is
// "path".
const FileDownload = "file"

// Fault is one way to go wrong. The zero value cuts the connection before the call
// takes effect. Several values may share one Fault; it is not changed.
type Fault struct {
	AfterEffect bool   // do what the call asks first
	Hang        bool   // never answer; ends when the client or the server goes away
	Status      int    // answer with this status; 0: cut the connection
	Description string // of a JSON error
	RetryAfter  int    // seconds
	MigrateTo   int64  // migrate_to_chat_id
	Body        string // instead of JSON, as HTML
}

// The usual faults.
var (
	// CutBefore cuts the connection and does nothing else.
	CutBefore = &Fault{}
	// CutAfter does what the call asks and cuts the connection (DEL-004).
	CutAfter = &Fault{AfterEffect: true}
	// HangBefore does nothing and never answers (REC-005).
	HangBefore = &Fault{Hang: true}
	// HangAfter does what the call asks and never answers (DEL-004).
	HangAfter = &Fault{AfterEffect: true, Hang: true}
	// BadGateway is the page of a proxy.
	BadGateway = &Fault{Status: http.StatusBadGateway, Body: "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"}
	// Unauthorized is what a revoked token gets.
	Unauthorized = &Fault{Status: http.StatusUnauthorized, Description: "Unauthorized"}
)

// TooManyRequests is a 429 that asks to wait.
func TooManyRequests(seconds int) *Fault {
	no := tooManyRequests(seconds)
	return &Fault{Status: no.Code, Description: no.Description, RetryAfter: seconds}
}

// Refusal is a JSON error, for example 400, "Bad Request: message to edit not found".
func Refusal(status int, description string) *Fault {
	return &Fault{Status: status, Description: description}
}

// faults decides which calls go wrong.
type faults struct {
	hook func(Call) *Fault
	next map[string][]*Fault
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
	s.record.counters.Calls[r.method]++
	s.record.lastCall++
	call := Call{Number: s.record.lastCall, Method: r.method, Params: r.params, At: s.opt.now()}
	if s.opt.calls {
		s.record.calls = append(s.record.calls, call)
	}
	hook := s.fail.hook
	queued := s.fail.next[r.method]
	if len(queued) > 0 {
		s.fail.next[r.method] = queued[1:]
	}
	s.mu.Unlock()
	s.notify(Change{Kind: CallMade, Text: r.method})
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
	case f.Status == 0:
		panic(http.ErrAbortHandler)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	default:
		respond(w, nil, refuse(f.Status, f.Description, f.RetryAfter, f.MigrateTo))
	}
}
