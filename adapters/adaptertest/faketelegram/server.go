package faketelegram

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is one running Bot API server with one bot. All its methods may be called
// from any goroutine.
type Server struct {
	opt      options
	spec     *spec
	methods  map[string]method
	listener net.Listener
	http     *http.Server
	handlers sync.WaitGroup
	closing  chan struct{}

	mu      sync.Mutex
	world   world
	queue   queue
	limiter limiter
	record  record
	fail    faults
	changed signal
}

// method answers one API method with a result or a refusal.
type method func(*Server, *request) (any, error)

// options is what New was told.
type options struct {
	token     string
	username  string
	limits    *Limits
	latency   time.Duration
	now       func() time.Time
	calls     bool
	noHistory bool
	onChange  func(Change)
}

// Option changes what New makes.
type Option func(*options)

// WithLatency makes each call take that long besides its work: half before and
// half after it takes effect.
func WithLatency(d time.Duration) Option { return func(o *options) { o.latency = d } }

// WithClock replaces the clock of rate limits and of the times in the record.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// RecordCalls keeps every call for Calls. It costs memory per call.
func RecordCalls() Option { return func(o *options) { o.calls = true } }

// WithoutHistory keeps only the newest version of each message.
func WithoutHistory() Option { return func(o *options) { o.noHistory = true } }

// OnChange calls f after each change, in the goroutine of the call that made it and
// before that call is answered. f may call the server; it must not block.
func OnChange(f func(Change)) Option { return func(o *options) { o.onChange = f } }

var tokenPattern = regexp.MustCompile(`^[1-9]\d{0,18}:[\w-]+$`)

// New starts a server on a free loopback port. Call Close when done.
func New(opts ...Option) *Server {
	s := &Server{
		opt:     options{token: "4200000042:fake-token_of-the_test-bot", username: "parley_test_bot", now: time.Now},
		spec:    loadSpec(),
		methods: methods(),
		closing: make(chan struct{}),
		world:   newWorld(),
		queue:   newQueue(),
		record:  newRecord(),
	}
	for _, o := range opts {
		o(&s.opt)
	}
	if s.opt.limits != nil {
		s.limiter = newLimiter(*s.opt.limits)
	}
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		panic("faketelegram: " + err.Error())
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve)}
	s.handlers.Go(func() { _ = s.http.Serve(s.listener) })
	return s
}

// Close ends all calls under way and waits for them. It may be called once.
func (s *Server) Close() {
	s.mu.Lock()
	close(s.closing)
	s.queue.stopWebhook()
	s.mu.Unlock()
	_ = s.http.Close()
	s.handlers.Wait()
}

// URL is the server's address, for api_base: no slash at the end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Token is the only token that the server accepts.
func (s *Server) Token() string { return s.opt.token }

// BotUsername is the bot's name without the @.
func (s *Server) BotUsername() string { return s.opt.username }

// BotID is the bot's user id.
func (s *Server) BotID() int64 {
	id, _, _ := strings.Cut(s.opt.token, ":")
	return number(id)
}

func (s *Server) bot() User {
	return User{ID: s.BotID(), IsBot: true, FirstName: "Parley", Username: s.opt.username}
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
	if path, ok := strings.CutPrefix(r.URL.Path, "/file/bot"); ok {
		s.serveFile(w, r, path)
		return
	}
	token, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	switch {
	case !ok || !strings.HasPrefix(r.URL.Path, "/bot") || !tokenPattern.MatchString(token):
		respond(w, nil, refuse(http.StatusNotFound, "Not Found", 0, 0))
	case token != s.opt.token:
		respond(w, nil, unauthorized())
	default:
		s.call(w, r, name)
	}
}

func unauthorized() *refusal { return refuse(http.StatusUnauthorized, "Unauthorized", 0, 0) }

// call takes one API call through decoding, faults, latency and its method.
func (s *Server) call(w http.ResponseWriter, r *http.Request, name string) {
	canonical, known := s.spec.byLowerName[strings.ToLower(name)]
	if !known {
		canonical = name
	}
	req, err := decode(w, r, canonical)
	fault := s.begin(req)
	s.pause(r.Context(), s.opt.latency/2)
	if fault != nil && !fault.AfterEffect {
		s.misbehave(w, r, fault)
		return
	}
	var result any
	switch {
	case err != nil:
	case !known:
		err = refuse(http.StatusNotFound, "Not Found: method not found", 0, 0)
	default:
		result, err = s.perform(req)
	}
	s.pause(r.Context(), s.opt.latency-s.opt.latency/2)
	if fault != nil {
		s.misbehave(w, r, fault)
		return
	}
	respond(w, result, err)
}

// perform checks a call against the description and runs it.
func (s *Server) perform(r *request) (any, error) {
	violations, err := s.spec.check(r)
	for _, v := range violations {
		s.violation(v)
	}
	if err != nil {
		s.violation(Violation{r.method, "", "refused: " + err.Error()})
		return nil, err
	}
	return s.methods[r.method](s, r)
}

// pause waits for d, or until the client or the server goes away.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.closing:
	}
}

func methods() map[string]method {
	return map[string]method{
		"getMe":                  (*Server).getMe,
		"getChat":                (*Server).getChat,
		"getFile":                (*Server).getFile,
		"getUpdates":             (*Server).getUpdates,
		"getWebhookInfo":         (*Server).getWebhookInfo,
		"setWebhook":             (*Server).setWebhook,
		"deleteWebhook":          (*Server).deleteWebhook,
		"getMyCommands":          (*Server).getMyCommands,
		"setMyCommands":          (*Server).setMyCommands,
		"sendMessage":            (*Server).sendMessage,
		"sendDocument":           (*Server).sendDocument,
		"sendPhoto":              (*Server).sendPhoto,
		"sendMessageDraft":       (*Server).sendMessageDraft,
		"sendChatAction":         (*Server).sendChatAction,
		"editMessageText":        (*Server).editMessageText,
		"editMessageReplyMarkup": (*Server).editMessageReplyMarkup,
		"deleteMessage":          (*Server).deleteMessage,
		"setMessageReaction":     (*Server).setMessageReaction,
		"answerCallbackQuery":    (*Server).answerCallbackQuery,
	}
}

func (s *Server) getMe(*request) (any, error) {
	return wireBot{User: s.bot(), JoinGroups: true, ReadAll: true, Topics: true}, nil
}

func (s *Server) setMyCommands(r *request) (any, error) {
	var commands []Command
	r.json("commands", &commands)
	if len(commands) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range commands {
		if !commandName.MatchString(c.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := length(c.Description); n == 0 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	s.mu.Lock()
	s.record.commands[menuKey(r)] = commands
	s.mu.Unlock()
	s.notify(Change{Kind: CommandsSet})
	return true, nil
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (s *Server) getMyCommands(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Command{}, s.record.commands[menuKey(r)]...), nil
}

// menuKey names a command menu by scope and language.
func menuKey(r *request) string {
	var scope struct {
		Type string `json:"type"`
	}
	r.json("scope", &scope)
	if scope.Type == "" {
		scope.Type = "default"
	}
	return scope.Type + "/" + r.params["language_code"]
}

func (s *Server) sendChatAction(r *request) (any, error) {
	if !slices.Contains(s.spec.Actions, r.params["action"]) {
		return nil, badRequest("wrong parameter action in request")
	}
	s.mu.Lock()
	c, err := s.world.reach(r.params["chat_id"])
	if err == nil {
		err = c.checkThread(r.int("message_thread_id"), true)
	}
	if err == nil {
		c.act(Action{Name: r.params["action"], Thread: r.int("message_thread_id"), At: s.opt.now()})
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.notify(Change{Kind: ActionShown, Chat: c.id, Text: r.params["action"]})
	return true, nil
}
