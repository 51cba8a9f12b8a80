package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// What every request is held to. A handler that streams moves its own write
// deadline along with each write.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 5 * time.Second
	maxHeader     = 64 << 10
	maxBody       = 8 << 20
)

// Deps is what the server shows and serves.
type Deps struct {
	Log *zap.Logger
	// Ready returns what keeps the process from being ready; nothing means ready.
	Ready func(context.Context) []Problem
	// Metrics is what /metrics shows.
	Metrics prometheus.Gatherer
}

// Problem is one reason for not being ready.
type Problem struct {
	Component string `json:"component"`
	Reason    string `json:"reason"`
	// Degraded problems are listed, and leave the rest ready.
	Degraded bool `json:"degraded,omitempty"`
}

// Server is the one listener.
type Server struct {
	cfg      Config
	log      *zap.Logger
	http     *http.Server
	listener net.Listener
	// mounted is nil until Mount.
	mounted atomic.Pointer[http.ServeMux]
	// closing ends the streams as soon as the server begins to stop.
	closing context.Context
	close   context.CancelFunc
}

// New makes a server; it does not listen yet.
func New(cfg Config, d Deps) (*Server, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if d.Log == nil || d.Ready == nil || d.Metrics == nil {
		return nil, errors.New("httpserver: Log, Ready and Metrics are required")
	}
	s := &Server{cfg: cfg, log: d.Log}
	s.closing, s.close = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthz)
	mux.Handle("GET /readyz", readyz(d.Ready))
	mux.Handle("GET /metrics", operatorsOnly(cfg, promhttp.HandlerFor(d.Metrics, promhttp.HandlerOpts{})))
	mux.HandleFunc("/", s.rest)
	s.http = &http.Server{
		Handler:           s.streams(harden(panicDoor(d.Log, limits(mux)))),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          zap.NewStdLog(d.Log),
	}
	return s, nil
}

// Mount adds the handlers of the adapters, by http.ServeMux pattern, once there are
// any: until then health can be asked for, and all else is told to come again. It is
// called once.
func (s *Server) Mount(routes map[string]http.Handler) {
	mux := http.NewServeMux()
	for pattern, h := range routes {
		mux.Handle(pattern, h)
	}
	s.mounted.Store(mux)
}

func (s *Server) rest(w http.ResponseWriter, r *http.Request) {
	mux := s.mounted.Load()
	if mux == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "parley is starting; /readyz says what it waits for", http.StatusServiceUnavailable)
		return
	}
	mux.ServeHTTP(w, r)
}

// Listen binds the address, so that a taken port is known before anything else
// starts. It is called once, before Run.
func (s *Server) Listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	s.listener = l
	return nil
}

// Addr is the bound address, with the real port if the configuration says 0; it
// is nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// URL is where a browser finds the server: the public URL where there is one, else
// the bound address, with a name of this machine for "all addresses". It is empty
// before Listen. It ends with a slash.
func (s *Server) URL() string {
	if s.cfg.PublicURL != "" {
		u, err := url.Parse(s.cfg.PublicURL)
		if err == nil {
			return u.JoinPath("/").String()
		}
	}
	if s.listener == nil {
		return ""
	}
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// Run serves until ctx ends, then ends streams at once, lets other requests
// finish for a few seconds, and returns nil. It listens first if Listen was not
// called. Any other end is an error.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	defer s.close()
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	s.log.Info("http server listens", zap.Stringer("address", s.listener.Addr()))
	select {
	case err := <-served:
		return fmt.Errorf("http server: %w", err)
	case <-ctx.Done():
	}
	s.close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := s.http.Shutdown(drain); err != nil {
		s.log.Warn("http requests were cut at shutdown", zap.Error(err))
		_ = s.http.Close()
	}
	<-served
	return nil
}
