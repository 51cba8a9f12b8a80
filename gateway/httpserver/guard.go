package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Guard refuses requests that a foreign page could have caused. A name of the
// attacker bound to the loopback address shows in Host, a post from another page
// in Origin. It is for pages with a cookie; webhooks have signatures.
type Guard struct {
	public *url.URL // nil if there is none
	listen string   // the configured host, empty for all addresses
}

// NewGuard allows loopback names, the host of the public URL and the host that
// the server listens on (with all addresses: the one that the request came to).
func NewGuard(cfg Config) Guard {
	var g Guard
	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		g.public = u
	}
	host, _, err := net.SplitHostPort(cfg.Listen)
	if ip, perr := netip.ParseAddr(host); err == nil && (perr != nil || !ip.IsUnspecified()) {
		g.listen = host
	}
	return g
}

// Wrap puts the guard before a handler.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hostAllowed(r) {
			http.Error(w, "this host name is not parley's; set http.public_url to the address in your browser", http.StatusForbidden)
			return
		}
		if !g.originAllowed(r) {
			http.Error(w, "this request comes from another page", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g Guard) hostAllowed(r *http.Request) bool {
	host := strings.ToLower(hostname(r.Host))
	if host == "localhost" || (g.listen != "" && host == strings.ToLower(g.listen)) {
		return true
	}
	if g.public != nil && host == strings.ToLower(g.public.Hostname()) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if g.listen != "" || local == nil {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap() == ip.Unmap()
}

// originAllowed wants the page's own origin wherever a request changes something,
// and nowhere a foreign one.
func (g Guard) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	if g.public != nil && u.Scheme == g.public.Scheme && strings.EqualFold(u.Host, g.public.Host) {
		return true
	}
	return strings.EqualFold(u.Host, r.Host)
}

func hostname(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}
