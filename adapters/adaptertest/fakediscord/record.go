package fakediscord

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Fault is one way to go wrong. The zero value cuts the connection before the call
// takes effect.
type Fault struct {
	AfterEffect bool    // do what the call asks first
	Late        bool    // do it when [Server.Land] is called
	Hang        bool    // never answer; ends when the client or the server goes away
	Status      int     // answer with this status; 0: cut the connection
	Code        int     // Discord's own code
	Message     string  // of the JSON error
	RetryAfter  float64 // seconds, of a 429
	Global      bool    // the 429 is for everything the bot does
	Body        string  // instead of JSON, as HTML
}

// The usual faults.
var (
	// CutBefore cuts the connection and does nothing else, CutAfter does what the call
	// asks first (DEL-004).
	CutBefore = &Fault{}
	CutAfter  = &Fault{AfterEffect: true}
	// LandsLate cuts the connection; what the call asks for happens all the same, at
	// [Server.Land].
	LandsLate = &Fault{Late: true}
	// Hang does nothing and never answers.
	Hang = &Fault{Hang: true}
	// BadGateway is the page of a proxy.
	BadGateway = &Fault{Status: http.StatusBadGateway, Body: "<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"}
	// Cloudflare is the page that a bot gets which made too many invalid requests.
	Cloudflare = &Fault{Status: http.StatusTooManyRequests, RetryAfter: 7, Body: "<html><body>error code: 1015</body></html>"}
)

// TooManyRequests is a 429 that asks to wait.
func TooManyRequests(seconds float64) *Fault {
	return &Fault{Status: http.StatusTooManyRequests, RetryAfter: seconds, Message: "You are being rate limited."}
}

// Refusal is a JSON error with Discord's code, for example 403, 50013.
func Refusal(status, code int, message string) *Fault {
	return &Fault{Status: status, Code: code, Message: message}
}

// faults decides which calls go wrong.
type faults struct {
	hook func(Request) *Fault
	late []func()
}

// Land does what the calls asked for that are still on their way, after the connection
// that brought them has gone (DEL-004).
func (s *Server) Land() {
	s.mu.Lock()
	late := s.fail.late
	s.fail.late = nil
	s.mu.Unlock()
	for _, do := range late {
		do()
	}
}

// Fail asks f about each call before it takes effect; nil lets it pass. f replaces
// the former one; nil ends it. It must not call the server.
func (s *Server) Fail(f func(Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail.hook = f
}

// FailNext makes the next call go wrong whose method is that and whose path has that
// ending; "" matches every path.
func (s *Server) FailNext(method, ending string, f *Fault) {
	left := 1
	s.Fail(func(r Request) *Fault {
		if left == 0 || r.Method != method || !strings.HasSuffix(r.Path, ending) {
			return nil
		}
		left--
		return f
	})
}

// record is what the server remembers about calls.
type record struct {
	calls      []Request
	violations []string
	rejected   []string // answers with 400
	limited    int
	missing    []string // permissions that no guild grants
}

const maxKept = 1000

func (s *Server) begin(r *request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.calls = append(s.record.calls, r.Request)
	s.touch()
	if s.fail.hook == nil {
		return nil
	}
	return s.fail.hook(r.Request)
}

// violate keeps what a careful client would not have done. The lock must be held.
func (s *Server) violate(r *request, what string) {
	if len(s.record.violations) < maxKept {
		s.record.violations = append(s.record.violations, fmt.Sprintf("%s %s: %s", r.Method, r.Path, what))
	}
}

// Violations lists what a correct client would not have done.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.violations)
}

// Rejected lists the calls that were answered with 400, and why.
func (s *Server) Rejected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.rejected)
}

// Limited is how many calls were answered with 429 from WithLimits.
func (s *Server) Limited() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.limited
}

// Made is how many REST calls there were.
func (s *Server) Made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.record.calls)
}

// Calls lists the calls of a method whose path contains a text.
func (s *Server) Calls(method, containing string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Request
	for _, c := range s.record.calls {
		if c.Method == method && strings.Contains(c.Path, containing) {
			found = append(found, c)
		}
	}
	return found
}

// Grant sets what the bot's role lacks in every guild, by name of the permission.
func (s *Server) Grant(without ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.missing = without
}

// permissions are all but the missing ones.
func (r *record) permissions() int64 {
	bits := map[string]int64{AddReactions: 1 << 6, View: 1 << 10, SendMessages: 1 << 11, ReadHistory: 1 << 16, CreateThreads: 1 << 35}
	all := int64(1)<<50 - 1
	all &^= 1 << 3 // no administrator
	for _, m := range r.missing {
		all &^= bits[m]
	}
	return all
}

// misbehave answers as the fault says.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request, f *Fault) {
	switch {
	case f.Hang:
		s.hang(r.Context())
		panic(http.ErrAbortHandler)
	case f.Status == 0:
		panic(http.ErrAbortHandler)
	case f.Body != "":
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter))
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	case f.Status == http.StatusTooManyRequests:
		(&tooMany{after: f.RetryAfter, global: f.Global}).write(w)
	default:
		respond(w, nil, refuse(f.Status, f.Code, f.Message))
	}
}

func (s *Server) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closing:
	}
}
