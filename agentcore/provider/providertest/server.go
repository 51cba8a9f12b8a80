// Package providertest judges what parley sends to models and plays the models: a
// strict fake of OpenAI's chat completions and Responses and of Anthropic's Messages
// over real HTTP, and a conformance suite for every llm.Provider. It is for tests
// only.
//
// The server refuses what the real APIs refuse (shapes after the vendors' own
// specifications, cut down to what the fake looks into) and, beyond that, what the
// strictest of the servers that imitate them refuse: two messages of one role in a
// row, blank texts, repeated call ids. Signatures and encrypted thinking are good
// only for the model that the fake gave them as.
//
//	srv := providertest.NewServer(t, providertest.Options{Rate: 50})
//	srv.Enqueue(providertest.Answer{Text: "hello"})        // the next answers, in order
//	srv.Respond(func(r providertest.Request) providertest.Answer { … }) // all others
//	… base_url: srv.BaseURL() …
//
// Without script and responder it answers by Keywords.
package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Options are how strict and how fast a server is. The zero value accepts every
// key and model and answers at once.
type Options struct {
	// Addr is where to listen; empty: a free port of 127.0.0.1.
	Addr string
	// Key is the only accepted key; empty: every one.
	Key string
	// Models are the known models; empty: every one.
	Models []string
	// Window is the models' context in tokens of four bytes; 0: endless.
	Window int
	// Parallel bounds the requests that are answered at the same time; more get a 429
	// with RetryAfter. 0: no bound.
	Parallel   int
	RetryAfter string
	// FirstToken and Rate (tokens a second; 0: at once) hold for answers that say
	// nothing else.
	FirstToken time.Duration
	Rate       float64
	// Lenient accepts the fields that other servers have added: reasoning_content,
	// reasoning_details, extra_content.
	Lenient bool
	// Forget keeps no bodies of requests, for long runs.
	Forget bool
}

// Server is a fake model server. It is safe for concurrent use.
type Server struct {
	opts   Options
	http   *http.Server
	listen net.Listener
	served sync.WaitGroup

	mu        sync.Mutex
	script    []Answer
	respond   func(Request) Answer
	exchanges []*Exchange
	active    int
	peak      int
	changed   chan struct{} // closed and replaced at each change
}

// Exchange is one request and how it was answered.
type Exchange struct {
	Request Request
	// Status is what was answered; 0 while nothing was.
	Status int
	// Refusal is why a request was refused as invalid; empty if it was not.
	Refusal string
	// FirstToken and LastToken are when these were written, Ended when the answer was
	// over.
	FirstToken, LastToken, Ended time.Time
	// Gone: the client left before the end.
	Gone bool
}

// NewServer starts a server that is closed with the test.
func NewServer(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, err := Start(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Start starts a server; Close it.
func Start(o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, listen: l, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.speak(chatAPI{}))
	mux.HandleFunc("POST /v1/responses", s.speak(responsesAPI{}))
	mux.HandleFunc("POST /v1/messages", s.speak(messagesAPI{}))
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNotFound, problem(&refusal{message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}))
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(l) })
	return s, nil
}

// Close cuts every connection and waits for the listener.
func (s *Server) Close() {
	_ = s.http.Close()
	s.served.Wait()
}

// BaseURL is what goes into the configuration.
func (s *Server) BaseURL() string { return "http://" + s.listen.Addr().String() + "/v1" }

// Enqueue adds answers, each for one valid request; they come before the responder.
func (s *Server) Enqueue(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, answers...)
}

// Respond sets what answers requests that the script does not; nil: Keywords.
func (s *Server) Respond(f func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// Exchanges returns all requests so far, in the order of their arrival.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Exchange, len(s.exchanges))
	for i, x := range s.exchanges {
		out[i] = *x
	}
	return out
}

// Last returns the newest request; it fails the test if there is none.
func (s *Server) Last(tb testing.TB) Request {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.exchanges) == 0 {
		tb.Fatal("the model server got no request")
	}
	return s.exchanges[len(s.exchanges)-1].Request
}

// Refusals returns why requests were refused as invalid. A test of anything that
// talks to models ends with none.
func (s *Server) Refusals() (out []string) {
	for _, x := range s.Exchanges() {
		if x.Refusal != "" {
			out = append(out, x.Refusal)
		}
	}
	return out
}

// Peak returns how many requests were answered at the same time, at most.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Active returns how many requests are being answered.
func (s *Server) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// Await returns once ok holds for the exchanges; it fails the test after 10 s.
func (s *Server) Await(tb testing.TB, ok func([]Exchange) bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok(s.Exchanges()) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tb.Fatalf("the model server waited in vain; it saw %d requests", len(s.Exchanges()))
		}
	}
}

// AwaitRequests waits for n requests in all.
func (s *Server) AwaitRequests(tb testing.TB, n int) {
	tb.Helper()
	s.Await(tb, func(all []Exchange) bool { return len(all) >= n })
}

// AwaitGone waits until n clients have left before the end of their answer.
func (s *Server) AwaitGone(tb testing.TB, n int) {
	tb.Helper()
	s.Await(tb, func(all []Exchange) bool {
		gone := 0
		for _, x := range all {
			if x.Gone {
				gone++
			}
		}
		return gone >= n
	})
}

// update changes the server's state and wakes those who wait for it.
func (s *Server) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, id := range s.opts.Models {
		list = append(list, model{id, "model", "providertest"})
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// api is one of the APIs that a server speaks.
type api interface {
	// parse reads a request and says what is wrong with it.
	parse(raw []byte, h http.Header, o Options) (Request, *refusal)
	// key is the key that a request brings.
	key(h http.Header) string
	// problem is the API's error object; failure is one inside a stream.
	problem(r *refusal) any
	failure() string
	// voice writes one answer.
	voice(p *player) voice
}

// speak answers requests of an API.
func (s *Server) speak(a api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.complete(a, w, r) }
}

// complete answers one request.
func (s *Server) complete(a api, w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	now := time.Now()
	req, wrong := a.parse(raw, r.Header, s.opts)
	req.At, req.Header = now, r.Header.Clone()
	if !s.opts.Forget {
		req.Body = raw
	}
	x := &Exchange{Request: req}
	busy := false
	s.update(func() {
		x.Request.N = len(s.exchanges)
		s.exchanges = append(s.exchanges, x)
		busy = s.opts.Parallel > 0 && s.active >= s.opts.Parallel
		s.active++
		s.peak = max(s.peak, s.active)
	})
	defer s.update(func() {
		s.active--
		x.Ended = time.Now()
		x.Gone = x.Gone || r.Context().Err() != nil
	})
	switch {
	case s.opts.Key != "" && a.key(r.Header) != s.opts.Key:
		wrong = &refusal{status: http.StatusUnauthorized, message: "Incorrect API key provided.", code: "invalid_api_key"}
	case busy:
		w.Header().Set("Retry-After", s.opts.RetryAfter)
		wrong = &refusal{status: http.StatusTooManyRequests, message: "Too many requests at the same time.", code: "rate_limit_exceeded"}
	case wrong != nil && wrong.invalid():
		s.update(func() { x.Refusal = wrong.message })
	}
	if wrong == nil {
		s.answer(a, w, r, x)
		return
	}
	s.update(func() { x.Status = wrong.status })
	reply(w, wrong.status, a.problem(wrong))
}

// answer takes the next answer of the script, the responder's, or a keyword's.
func (s *Server) answer(an api, w http.ResponseWriter, r *http.Request, x *Exchange) {
	s.mu.Lock()
	respond, req := s.respond, x.Request
	var a Answer
	scripted := len(s.script) > 0
	if scripted {
		a, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	switch {
	case scripted:
	case respond != nil:
		a = respond(req)
	default:
		a = s.keyword(req)
	}
	if a.Rate == 0 {
		a.Rate = s.opts.Rate
	}
	if a.FirstToken == 0 {
		a.FirstToken = s.opts.FirstToken
	}
	p := &player{server: s, w: w, r: r, x: x, a: a, req: req, api: an}
	p.play()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if s, ok := body.(string); ok {
		_, _ = io.WriteString(w, s)
		return
	}
	_ = json.NewEncoder(w).Encode(body)
}
