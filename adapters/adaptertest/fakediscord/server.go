package fakediscord

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is one running Discord with one bot. All its methods may be called from
// any goroutine.
type Server struct {
	opt      options
	listener net.Listener
	http     *http.Server
	handlers sync.WaitGroup
	closing  chan struct{}

	mu       sync.Mutex
	lastID   int64
	ahead    time.Duration
	world    world
	routes   []route
	gateway  gateway
	limiter  limiter
	record   record
	fail     faults
	pending  map[string]*interaction // by id
	tokens   map[string]*interaction // by token
	commands []Command
	changed  chan struct{}
}

// options is what New was told.
type options struct {
	token     string
	limits    *Limits
	now       func() time.Time
	content   bool
	heartbeat time.Duration
	latency   time.Duration
	brief     bool
	onChange  func(Change)
}

// Option changes what New makes.
type Option func(*options)

// WithLimits turns rate limits on.
func WithLimits(l Limits) Option { return func(o *options) { o.limits = &l } }

// WithoutContentIntent is a bot whose message content intent is switched off in the
// developer portal.
func WithoutContentIntent() Option { return func(o *options) { o.content = false } }

// WithHeartbeat sets the interval that HELLO asks for; 41.25 s else.
func WithHeartbeat(d time.Duration) Option { return func(o *options) { o.heartbeat = d } }

// WithLatency makes each call take that long besides its work: half before and half
// after it takes effect.
func WithLatency(d time.Duration) Option { return func(o *options) { o.latency = d } }

// WithoutHistory forgets what messages said before.
func WithoutHistory() Option { return func(o *options) { o.brief = true } }

// OnChange calls f after each change. f must not call the server, nor block.
func OnChange(f func(Change)) Option { return func(o *options) { o.onChange = f } }

// ChangeKind says what changed.
type ChangeKind int

// What may change.
const (
	Connected  ChangeKind = iota // a session has begun
	HandedOut                    // what a person wrote was sent to the bot
	TextPosted                   // the bot has posted or edited; Text is as people see it
)

// Change tells a waiting benchmark what has just happened.
type Change struct {
	Kind    ChangeKind
	Channel string
	Text    string
	At      time.Time
}

// change tells of a change. The lock must be held.
func (s *Server) change(kind ChangeKind, channel, markup string) {
	if s.opt.onChange != nil {
		s.opt.onChange(Change{kind, channel, Shown(markup), s.opt.now()})
	}
}

// The ids of the bot and of its application.
const (
	BotID         = "900000000000000001"
	ApplicationID = "900000000000000002"
	// BotRole is the role that Discord makes for the bot in each guild.
	BotRole = "900000000000000003"
)

// Token is what the bot is known by at first.
const Token = "OTAwMDAwMDAwMDAwMDAwMDAx.fake-1.a-token-of-the-fake-bot-000000"

// New starts a server on a free loopback port. Call Close when done.
func New(opts ...Option) *Server {
	s := &Server{
		opt:     options{token: Token, now: time.Now, content: true, heartbeat: 41250 * time.Millisecond},
		closing: make(chan struct{}), changed: make(chan struct{}),
		world: newWorld(), routes: routes(),
		gateway: gateway{sessions: map[string]*session{}},
		pending: map[string]*interaction{}, tokens: map[string]*interaction{},
	}
	for _, o := range opts {
		o(&s.opt)
	}
	if s.opt.limits != nil {
		s.limiter = limiter{limits: *s.opt.limits, on: true, buckets: map[string]*bucket{}}
	}
	var lc net.ListenConfig
	var err error
	if s.listener, err = lc.Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		panic("fakediscord: " + err.Error())
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	s.handlers.Go(func() { _ = s.http.Serve(s.listener) })
	return s
}

// Close ends all calls and connections under way and waits for them. It may be
// called once.
func (s *Server) Close() {
	s.mu.Lock()
	close(s.closing)
	for _, x := range s.gateway.sessions {
		x.drop()
	}
	for c := range s.gateway.waiting {
		c.cut()
	}
	s.mu.Unlock()
	_ = s.http.Close()
	s.handlers.Wait()
}

// URL is the API's address, for api_base.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/api/v9" }

// CurrentToken is the only token that the server accepts.
func (s *Server) CurrentToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opt.token
}

// Revoke replaces the bot's token: nothing accepts the former one any more.
func (s *Server) Revoke() {
	s.mu.Lock()
	s.opt.token = "revoked"
	s.mu.Unlock()
}

// AllowContent switches the message content intent on or off, as in the portal.
func (s *Server) AllowContent(on bool) {
	s.mu.Lock()
	s.opt.content = on
	s.mu.Unlock()
}

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
	switch path, ok := strings.CutPrefix(r.URL.Path, "/api/v"); {
	case strings.HasPrefix(r.URL.Path, "/gateway"):
		s.serveGateway(w, r)
	case strings.HasPrefix(r.URL.Path, "/attachments/"):
		s.serveAttachment(w, r)
	case ok:
		_, path, _ = strings.Cut(path, "/")
		s.serveAPI(w, r, "/"+path)
	default:
		http.NotFound(w, r)
	}
}

// epoch is the first second of 2015, from which Discord counts.
const epoch = 1420070400000

// snowflake makes an id that is later than all before it. The lock must be held.
func (s *Server) snowflake() string {
	id := (s.opt.now().Add(s.ahead).UnixMilli() - epoch) << 22
	if id <= s.lastID {
		id = s.lastID + 1
	}
	s.lastID = id
	return strconv.FormatInt(id, 10)
}

// younger compares two snowflakes.
func younger(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

// touch wakes whoever waits. The lock must be held.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns once ok is true, or with the error of ctx. It asks again after each
// change.
func (s *Server) Wait(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("fakediscord: it did not happen: %w", context.Cause(ctx))
		}
	}
}
