package fakeslack

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The ids of the one app in the one workspace.
const (
	TeamID  = "T0FAKETEAM"
	AppID   = "A0FAKEAPP"
	BotUser = "U0PARLEYBOT"
	BotID   = "B0PARLEYBOT"
)

// Server is one running workspace with one app. All its methods may be called from
// any goroutine.
type Server struct {
	opt      options
	methods  map[string]method
	known    map[string][]string
	listener net.Listener
	http     *http.Server
	handlers sync.WaitGroup
	closing  chan struct{}

	mu      sync.Mutex
	world   world
	sockets sockets
	record  record
	fail    faults
	changed signal
	told    []Change
	buckets map[string]*bucket
}

// options is what New was told.
type options struct {
	bot, app, secret string
	scopes           []string
	retry            time.Duration
	ping             time.Duration
	stream           time.Duration
	now              func() time.Time
	calls            bool
	requestURL       string
	latency          time.Duration
	brief            bool
	limits           *Limits
	onChange         func(Change)
}

// Option changes what New makes.
type Option func(*options)

// WithScopes grants these scopes only, instead of all.
func WithScopes(scopes ...string) Option { return func(o *options) { o.scopes = scopes } }

// WithRetry sets how long an envelope may stay unacknowledged before it comes again;
// Slack's own 3 s if it is not set.
func WithRetry(d time.Duration) Option { return func(o *options) { o.retry = d } }

// WithPing sets the time between two pings; 5 s if it is not set.
func WithPing(d time.Duration) Option { return func(o *options) { o.ping = d } }

// WithStreamLife sets how long a stream lives; 5 minutes if it is not set.
func WithStreamLife(d time.Duration) Option { return func(o *options) { o.stream = d } }

// RecordCalls keeps every call for Calls.
func RecordCalls() Option { return func(o *options) { o.calls = true } }

// New starts a workspace on a free loopback port. Call Close when done.
func New(opts ...Option) *Server {
	s := &Server{
		opt: options{
			bot: "xoxb-4200000042-fake-token-of-the-bot", app: "xapp-1-A0FAKEAPP-fake-token-of-the-app", secret: "fake-signing-secret-0123456789abcdef",
			retry: 3 * time.Second, ping: 5 * time.Second, stream: 5 * time.Minute, now: time.Now,
		},
		methods: methods(), known: loadSpec(), closing: make(chan struct{}), world: newWorld(), record: newRecord(),
	}
	for _, o := range opts {
		o(&s.opt)
	}
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		panic("fakeslack: " + err.Error())
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve)}
	s.handlers.Go(func() { _ = s.http.Serve(s.listener) })
	return s
}

// Close ends all calls and sockets and waits for them. It may be called once.
func (s *Server) Close() {
	s.mu.Lock()
	close(s.closing)
	s.sockets.end()
	s.mu.Unlock()
	_ = s.http.Close()
	s.handlers.Wait()
}

// URL is the address of the Web API, for api_base.
func (s *Server) URL() string { return s.root() + "/api/" }

func (s *Server) root() string { return "http://" + s.listener.Addr().String() }

// BotToken is the only bot token that the server accepts.
func (s *Server) BotToken() string { return s.opt.bot }

// AppToken is the only app-level token that the server accepts.
func (s *Server) AppToken() string { return s.opt.app }

// SigningSecret signs what is sent to the request URL.
func (s *Server) SigningSecret() string { return s.opt.secret }

// enter registers a handler, unless the server is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return false
	default:
		s.handlers.Add(1)
		return true
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.handlers.Done()
	switch kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); kind {
	case "api":
		s.call(w, r, rest)
	case "link":
		s.serveSocket(w, r)
	case "upload":
		s.serveUpload(w, r, rest)
	case "files":
		s.serveFile(w, r, rest)
	case "hook":
		s.serveHook(w, r, rest)
	case "signin":
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><html><title>Sign in</title></html>"))
	default:
		http.NotFound(w, r)
	}
}

// call takes one API call through decoding, faults and its method.
func (s *Server) call(w http.ResponseWriter, r *http.Request, name string) {
	req, err := decode(w, r, name)
	fault := s.begin(req)
	s.pause(r)
	if fault != nil && fault.Late {
		s.mu.Lock()
		s.fail.late = append(s.fail.late, req)
		s.mu.Unlock()
	}
	if fault != nil && !fault.AfterEffect {
		s.misbehave(w, r, fault)
		return
	}
	var out answer
	if err == nil {
		out, err = s.perform(req)
	}
	s.flush()
	if fault != nil {
		s.misbehave(w, r, fault)
		return
	}
	if name == "auth.test" && err == nil {
		w.Header().Set("X-OAuth-Scopes", strings.Join(s.scopes(), ","))
	}
	respond(w, out, err)
}

// perform checks a call's token, scopes and parameters, and runs it.
func (s *Server) perform(r *request) (answer, error) {
	m, ok := s.methods[r.method]
	if !ok {
		return nil, refuse("unknown_method")
	}
	if err := s.authorize(r, m); err != nil {
		return nil, err
	}
	for name := range r.params {
		if name != "token" && !contains(s.known[r.method], name) {
			s.violation(Violation{r.method, name, "unknown parameter"})
		}
	}
	for _, name := range m.required {
		if r.params[name] == "" {
			return nil, &refusal{Word: "invalid_arguments", Messages: []string{"[ERROR] missing required field: " + name}}
		}
	}
	if err := s.spend(r); err != nil {
		return nil, err
	}
	return m.run(s, r)
}

// authorize checks the token before everything else, as Slack does.
func (s *Server) authorize(r *request, m method) error {
	want := s.opt.bot
	if m.app {
		want = s.opt.app
	}
	switch {
	case r.token == "":
		return refuse("not_authed")
	case r.token == s.opt.bot || r.token == s.opt.app:
		if r.token != want {
			return refuse("not_allowed_token_type")
		}
	default:
		return refuse("invalid_auth")
	}
	if len(m.scopes) > 0 && !containsAny(s.scopes(), m.scopes) {
		return &refusal{Word: "missing_scope", Needed: strings.Join(m.scopes, ","), Provided: strings.Join(s.scopes(), ",")}
	}
	return nil
}

// scopes are those that are granted.
func (s *Server) scopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opt.scopes == nil {
		return allScopes
	}
	return s.opt.scopes
}

// Revoke takes one scope away.
func (s *Server) Revoke(scope string) {
	left := slices.DeleteFunc(slices.Clone(s.scopes()), func(have string) bool { return have == scope })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.scopes = left
}
