package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"parley/agentcore/tool"
	"parley/config/secret"
)

const (
	// connectTime bounds connecting and listing tools.
	connectTime = 30 * time.Second
	// awaitTime is how long a call waits for a server that is being started.
	awaitTime = 10 * time.Second
	// steadyTime is how long a server must have been there for its next restart to be
	// soon again; waits grow from firstWait to longestWait.
	steadyTime  = time.Minute
	firstWait   = 500 * time.Millisecond
	longestWait = time.Minute
	// toolLimit bounds the tools of one server.
	toolLimit = 128
	// protocol is asked for, since older servers hang or exit on what is newer; both
	// sides settle on an older one where they must.
	protocol = "2025-11-25"
)

// server is one server and its supervision. Only run connects; calls use the session
// that is there.
type server struct {
	name    string
	cfg     ServerConfig
	log     *zap.Logger
	version string
	// listed is told the tools each time they were asked for.
	listed func(*server, []*sdk.Tool)

	relist chan struct{}
	broken chan *sdk.ClientSession

	mu      sync.Mutex
	session *sdk.ClientSession // nil while it is not there
	up      chan struct{}      // closed when session is set
	why     string             // why it is not there
}

func newServer(name string, cfg ServerConfig, deps Deps) *server {
	return &server{
		name: name, cfg: cfg, log: deps.Log.With(zap.String("mcp_server", name)), version: deps.Version,
		relist: make(chan struct{}, 1), broken: make(chan *sdk.ClientSession, 1), up: make(chan struct{}), why: "it is being started",
	}
}

// run keeps the server there until ctx ends; its process is gone when it returns.
func (s *server) run(ctx context.Context) {
	wait := firstWait
	for {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steadyTime {
			wait = firstWait
		}
		s.down(err)
		s.log.Warn("the MCP server is away and is started again", zap.Error(err), zap.Duration("in", wait))
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		wait = min(2*wait, longestWait)
	}
}

// serve connects and stays until the connection is lost.
func (s *server) serve(ctx context.Context) error {
	link, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer link.close()
	tools, err := s.list(ctx, link.session)
	if err != nil {
		return link.explain(err)
	}
	s.listed(s, tools)
	s.ready(link.session)
	s.log.Info("the MCP server is there", zap.Int("tools", len(tools)))
	lost := make(chan error, 1)
	go func() { lost <- link.session.Wait() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			return link.explain(err)
		case which := <-s.broken:
			if which == link.session {
				return link.explain(nil)
			}
		case <-s.relist:
			tools, err := s.list(ctx, link.session)
			if err != nil {
				return link.explain(err)
			}
			s.listed(s, tools)
		}
	}
}

// link is a connection that is there.
type link struct {
	server  *server
	session *sdk.ClientSession
	process *process // nil over HTTP
}

// connect starts the server or reaches it, within connectTime.
func (s *server) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	client := sdk.NewClient(&sdk.Implementation{Name: "parley", Version: s.version}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.again() },
	})
	l := &link{server: s}
	var transport sdk.Transport
	if s.cfg.URL != "" {
		transport = &sdk.StreamableClientTransport{Endpoint: s.cfg.URL, HTTPClient: s.client(), MaxEventSize: messageLimit}
	} else {
		p, err := startProcess(s.cfg, s.log, s.redact)
		if err != nil {
			return nil, fmt.Errorf("it cannot be started: %s", s.plain(err))
		}
		l.process = p
		transport = &sdk.IOTransport{Reader: p.output, Writer: p.input, MaxLineLength: messageLimit + 1}
	}
	var err error
	l.session, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		err = l.explain(err)
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *link) close() {
	if l.session != nil {
		_ = l.session.Close()
	}
	if l.process != nil {
		l.process.end()
	}
}

// explain says why a connection has ended or did not come about, for the owner.
func (l *link) explain(err error) error {
	var why []string
	if l.process != nil {
		why = append(why, l.process.describeExit())
	}
	if err != nil {
		why = append(why, l.server.plain(err))
	}
	if l.process != nil {
		if last := l.process.complaint(); last != "" {
			why = append(why, "it last said: "+last)
		}
	}
	if len(why) == 0 {
		why = append(why, "its connection was lost")
	}
	return errors.New(strings.Join(why, "; "))
}

// list asks for the tools and keeps those that may be used.
func (s *server) list(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	var tools []*sdk.Tool
	seen := 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("listing its tools: %s", s.plain(err))
		}
		if seen++; seen > 10*toolLimit {
			break // a list without end
		}
		if len(s.cfg.Tools) > 0 && !slices.Contains(s.cfg.Tools, t.Name) {
			continue
		}
		if len(tools) == toolLimit {
			s.log.Warn("the MCP server has too many tools; name those that are to be used in its tools", zap.Int("limit", toolLimit))
			break
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func (s *server) again() {
	select {
	case s.relist <- struct{}{}:
	default:
	}
}

func (s *server) ready(session *sdk.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.why = session, ""
	close(s.up)
}

func (s *server) down(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		s.session, s.up = nil, make(chan struct{})
	}
	s.why = err.Error()
}

// lost says that a call found its connection broken: it is used no more, and run is
// told.
func (s *server) lost(session *sdk.ClientSession) {
	s.mu.Lock()
	if s.session == session {
		s.session, s.up, s.why = nil, make(chan struct{}), "its connection was lost"
	}
	s.mu.Unlock()
	select {
	case s.broken <- session:
	default:
	}
}

// await returns the session, waiting a little for one that is being made.
func (s *server) await(ctx context.Context) (session *sdk.ClientSession, why string) {
	t := time.NewTimer(awaitTime)
	defer t.Stop()
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	select {
	case <-up:
	case <-t.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session, s.why
}

// call runs a tool. Whatever goes wrong is a result.
func (s *server) call(ctx context.Context, name string, args []byte) tool.Result {
	session, why := s.await(ctx)
	if ctx.Err() != nil {
		return tool.Result{Text: "Stopped before it had begun.", Failed: true, Outcome: "interrupted"}
	}
	if session == nil {
		return tool.Result{Text: fmt.Sprintf("The MCP server %s is not there, and is being started again. It was not called.", s.name), Untrusted: why, Failed: true}
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.timeout())
	defer cancel()
	if len(args) == 0 {
		args = []byte("{}")
	}
	r, err := session.CallTool(limited, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		return resultOf(s.name, r)
	case ctx.Err() != nil:
		return tool.Result{Text: "Stopped before it had finished; whether it took effect is not known.", Failed: true, Outcome: "interrupted"}
	case limited.Err() != nil:
		return tool.Failure("The MCP server %s did not answer in %s; whether it took effect is not known.", s.name, s.cfg.timeout())
	case errors.As(err, &refused) && !errors.Is(err, sdk.ErrConnectionClosed) && !errors.Is(err, sdk.ErrSessionMissing):
		return tool.Result{Text: fmt.Sprintf("The MCP server %s refuses the call:", s.name), Untrusted: s.redact(tool.Clip(refused.Message, 2000)), Failed: true}
	}
	s.lost(session)
	s.log.Warn("the MCP server was lost during a call", zap.String("tool", clean(name, 100)), zap.String("error", s.plain(err)))
	return tool.Failure("The connection to the MCP server %s was lost while this was running; whether it took effect is not known: check before you do it again. The server is being started again.", s.name)
}

// client sends the configured headers to the server's own host, and follows nothing
// that leads elsewhere.
func (s *server) client() *http.Client {
	host := ""
	if u, err := url.Parse(s.cfg.URL); err == nil {
		host = u.Host
	}
	return &http.Client{
		Transport:     &withHeaders{next: &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute}, host: host, values: s.cfg.Headers},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type withHeaders struct {
	next   *http.Transport
	host   string
	values map[string]secret.String
}

// RoundTrip implements http.RoundTripper.
func (h *withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == h.host && len(h.values) > 0 {
		r = r.Clone(r.Context())
		for name, value := range h.values {
			r.Header.Set(name, value.Reveal())
		}
	}
	return h.next.RoundTrip(r)
}

// CloseIdleConnections lets http.Client end what is kept open.
func (h *withHeaders) CloseIdleConnections() { h.next.CloseIdleConnections() }

// plain is an error as one line without secrets.
func (s *server) plain(err error) string { return s.redact(clean(err.Error(), 400)) }

// redact covers the server's URL, whose path or query may be a secret, and what its
// environment and headers hold.
func (s *server) redact(text string) string {
	if s.cfg.URL != "" {
		text = strings.ReplaceAll(text, s.cfg.URL, "its URL")
	}
	for _, values := range []map[string]secret.String{s.cfg.Env, s.cfg.Headers} {
		for _, v := range values {
			if shown := v.Reveal(); len(shown) >= 4 {
				text = strings.ReplaceAll(text, shown, secret.Mask)
			}
		}
	}
	return text
}
