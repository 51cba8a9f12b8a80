package httpserver

import (
	"context"
	"crypto/rand"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"
)

// strictPolicy is the content security policy of answers that set none of their
// own: nothing loads, nothing runs, nobody frames.
const strictPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// harden sets the headers that every answer carries; a handler that serves a page
// replaces the policy by its own.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", strictPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// limits bounds body and time. The server's own timeouts would cut streams, so
// that deadlines are set per request.
func limits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout))
		if r.ContentLength != 0 {
			_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, r)
	})
}

// streams ends server-sent events when the server begins to stop: they would never
// end by themselves, and other requests shall finish.
func (s *Server) streams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(s.closing, cancel)()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// panicDoor turns a panic of a handler into a 500 with an id that is in the log.
func panicDoor(log *zap.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tracker{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel itself is the panic's value
				panic(p)
			}
			id := rand.Text()[:10]
			log.Error("http handler panicked", zap.String("id", id), zap.String("method", r.Method),
				zap.String("path", r.URL.Path), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			if t.started {
				panic(http.ErrAbortHandler) // the client must see a cut answer, not a complete one
			}
			http.Error(w, "internal error "+id, http.StatusInternalServerError)
		}()
		next.ServeHTTP(t, r)
	})
}

// tracker knows whether an answer has begun.
type tracker struct {
	http.ResponseWriter
	started bool
}

func (t *tracker) WriteHeader(code int) { t.started = true; t.ResponseWriter.WriteHeader(code) }

func (t *tracker) Write(b []byte) (int, error) { t.started = true; return t.ResponseWriter.Write(b) }

// Unwrap lets http.ResponseController reach the connection.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
