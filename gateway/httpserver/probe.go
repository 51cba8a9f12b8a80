package httpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"parley/config/secret"
)

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

func readyz(ready func(context.Context) []Problem) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problems := ready(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		isReady := !slices.ContainsFunc(problems, func(p Problem) bool { return !p.Degraded })
		if !isReady {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(struct {
			Ready    bool      `json:"ready"`
			Problems []Problem `json:"problems"`
		}{isReady, append([]Problem{}, problems...)})
	})
}

// operatorsOnly lets in whoever holds the admin token, and processes on this
// machine. A forwarded request comes from a proxy on this machine, not from it,
// and a foreign Host from a page whose name was bound to this address.
func operatorsOnly(cfg Config, next http.Handler) http.Handler {
	guard := NewGuard(cfg)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !holdsToken(r, cfg.AdminToken) && (!fromLoopback(r) || !guard.hostAllowed(r)) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
			http.Error(w, "metrics need the loopback address or the header Authorization: Bearer with http.admin_token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func holdsToken(r *http.Request, token secret.String) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token.Empty() {
		return false
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func fromLoopback(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
