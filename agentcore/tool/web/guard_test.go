package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/agentcore/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a fetcher whose names and connections are the test's own: every public
// address leads to the server, and what was dialled is noted.
type rig struct {
	t      *testing.T
	f      *fetcher
	tool   tool.Tool
	server *httptest.Server

	mu     sync.Mutex
	names  map[string][][]netip.Addr // an answer for each time it is asked
	asked  map[string]int
	dialed []string
}

const public = "93.184.215.14"

func newRig(t *testing.T, h http.Handler, cfg Config, e Extractor) *rig {
	t.Helper()
	r := &rig{t: t, names: map[string][][]netip.Addr{}, asked: map[string]int{}}
	r.server = httptest.NewServer(h)
	t.Cleanup(r.server.Close)
	g, err := newGuard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.lookup = r.lookup
	g.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		r.mu.Lock()
		r.dialed = append(r.dialed, address)
		r.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, r.server.Listener.Addr().String())
	}
	r.f = newFetcher(g, e)
	if r.tool, err = r.f.tool(); err != nil {
		t.Fatal(err)
	}
	r.host("site.example", public)
	return r
}

// host sets the answers for a name; each is a list of addresses parted by blanks.
func (r *rig) host(name string, answers ...string) {
	r.names[name] = nil
	for _, answer := range answers {
		var addrs []netip.Addr
		for _, a := range strings.Fields(answer) {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		r.names[name] = append(r.names[name], addrs)
	}
}

func (r *rig) lookup(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answers := r.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	n := min(r.asked[host], len(answers)-1)
	r.asked[host]++
	return answers[n], nil
}

func (r *rig) fetch(u string, more ...any) tool.Result {
	r.t.Helper()
	return r.in(r.t.Context(), u, more...)
}

func (r *rig) in(ctx context.Context, u string, more ...any) tool.Result {
	r.t.Helper()
	fields := map[string]any{"url": u}
	for i := 0; i < len(more); i += 2 {
		fields[more[i].(string)] = more[i+1]
	}
	args, err := json.Marshal(fields)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := r.tool.Run(ctx, tool.Call{Arguments: args})
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func (r *rig) fails(res tool.Result, want string) {
	r.t.Helper()
	if !res.Failed || !strings.Contains(res.Text, want) {
		r.t.Errorf("got %+v, want a failure with %q", res, want)
	}
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, s)
	}
}

const notPublic = "leads to an address that is not public"

// TOL-001: no address that is not public is dialled, however it is written and
// whatever name leads to it.
func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	r := newRig(t, text("fine"), Config{}, nil)
	for _, a := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.169.254",
		"192.0.0.192", "100.100.100.200", "168.63.129.16", "198.18.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1",
		"::", "::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
		"::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1",
	} {
		literal := a
		if strings.Contains(a, ":") {
			literal = "[" + strings.ReplaceAll(a, "%", "%25") + "]"
		}
		r.fails(r.fetch("http://"+literal+"/"), notPublic)
		r.host("evil.example", a)
		r.fails(r.fetch("https://evil.example/latest/meta-data/"), notPublic)
		r.host("evil.example", public+" "+a)
		r.fails(r.fetch("http://evil.example/"), notPublic)
	}
	// What a resolver makes of other ways to write an address.
	for _, name := range []string{"2130706433", "0x7f.1", "127.1", "0177.0.0.1", "localhost", "localhost."} {
		r.host(name, "127.0.0.1")
		r.fails(r.fetch("http://"+name+":8080/"), notPublic)
	}
	if len(r.dialed) != 0 {
		t.Errorf("dialled: %v", r.dialed)
	}
	for _, a := range []string{public, "1.1.1.1", "2606:4700::1111", "172.32.0.1", "100.128.0.1"} {
		r.host("good.example", a)
		if res := r.fetch("http://good.example/"); res.Failed || !strings.Contains(res.Untrusted, "fine") {
			t.Errorf("%s: %+v", a, res)
		}
	}
}

// TOL-001: what was checked is what is dialled; a name's second answer is not asked for.
func TestRebindingLeadsNowhere(t *testing.T) {
	r := newRig(t, text("fine"), Config{}, nil)
	r.host("rebind.example", public, "127.0.0.1")
	if res := r.fetch("http://rebind.example/"); res.Failed {
		t.Error(res.Text)
	}
	if r.asked["rebind.example"] != 1 || fmt.Sprint(r.dialed) != "["+public+":80]" {
		t.Errorf("asked %d times, dialled %v", r.asked["rebind.example"], r.dialed)
	}
	r.fails(r.fetch("http://rebind.example/"), notPublic)
	if len(r.dialed) != 1 {
		t.Errorf("dialled %v", r.dialed)
	}
}

// TOL-001: each redirect is checked like the first address.
func TestRedirectsAreChecked(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if to := req.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		text("fine")(w, req)
	}), Config{}, nil)
	r.host("inside.example", "10.0.0.1")
	r.host("rebind.example", public, "127.0.0.1")
	for to, want := range map[string]string{
		"http://169.254.169.254/latest/meta-data/iam/security-credentials/": notPublic,
		"http://inside.example/":                           notPublic,
		"http://[::ffff:127.0.0.1]:8080/":                  notPublic,
		"http://user:secret@site.example/":                 "user name or password",
		"file:///etc/passwd":                               "only http and https",
		"gopher://site.example/":                           "only http and https",
		"http://site.example:22/":                          "port 22 is not one of the web",
		"http://site.example:6667/":                        "port 6667",
		"http://rebind.example/?to=http://rebind.example/": notPublic,
	} {
		res := r.fetch("http://site.example/?to=" + url.QueryEscape(to))
		r.fails(res, want)
		if strings.Contains(res.Text, "secret") {
			t.Errorf("it tells the password: %s", res.Text)
		}
	}
	if res := r.fetch("http://site.example/?to=http://site.example/end"); res.Failed || !strings.Contains(res.Untrusted, "URL: http://site.example/end\n") {
		t.Errorf("got %+v", res)
	}
}

func TestRedirectsEnd(t *testing.T) {
	n := 0
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n++
		http.Redirect(w, req, fmt.Sprintf("/%d", n), http.StatusFound)
	}), Config{}, nil)
	r.fails(r.fetch("http://site.example/"), "redirects more than 5 times")
	if n != maxRedirects+1 {
		t.Errorf("%d requests", n)
	}
}

func TestWhatIsNoWebAddress(t *testing.T) {
	r := newRig(t, text("fine"), Config{}, nil)
	for u, want := range map[string]string{
		"":                                "only http and https",
		"site.example":                    "only http and https",
		"ftp://site.example/":             "only http and https",
		"javascript:alert(1)":             "That is no URL",
		"http:site.example":               "That is no URL",
		"http://":                         "has no host",
		"http://user@site.example/":       "user name or password",
		"http://:pass@site.example/":      "user name or password",
		"http://site.example:0/":          "no valid port",
		"http://site.example:99999/":      "no valid port",
		"https://site.example:25/":        "port 25",
		"http://site.example:6379x/":      "That is no URL",
		"http://a b/":                     "That is no URL",
		"http://nowhere.example/":         "no such host",
		"http://site.example\\@evil.com/": "That is no URL",
	} {
		r.fails(r.fetch(u), want)
	}
	if len(r.dialed) != 0 {
		t.Errorf("dialled: %v", r.dialed)
	}
}

// What the owner permits is reached, and nothing beside it.
func TestPermits(t *testing.T) {
	r := newRig(t, text("fine"), Config{AllowPrivate: []string{"wiki.lan", "10.1.0.0/16", "192.168.1.5:8080", "fd00:ec2::254", "mail.lan:25"}}, nil)
	r.host("wiki.lan", "10.9.9.9")
	r.host("mail.lan", "10.9.9.9")
	r.host("other.lan", "10.9.9.9")
	r.host("ten.lan", "10.1.2.3")
	for _, u := range []string{
		"http://wiki.lan/", "http://WIKI.lan:8080/", "http://wiki.lan./", "http://10.1.255.1/", "http://ten.lan/", "http://192.168.1.5:8080/",
		"http://[fd00:ec2::254]/", "http://mail.lan:25/",
	} {
		r.host("wiki.lan.", "10.9.9.9")
		r.host("WIKI.lan", "10.9.9.9")
		if res := r.fetch(u); res.Failed {
			t.Errorf("%s: %s", u, res.Text)
		}
	}
	for _, u := range []string{"http://other.lan/", "http://10.2.0.1/", "http://192.168.1.5/", "http://192.168.1.6:8080/", "http://mail.lan/", "http://127.0.0.1/"} {
		r.fails(r.fetch(u), notPublic)
	}
	// A permitted name does not open the metadata service.
	r.host("wiki.lan", "169.254.169.254")
	r.fails(r.fetch("http://wiki.lan/"), notPublic)
	for _, bad := range []string{"", "http://wiki.lan", "a b", "x:99999", "x:0", "wiki.lan/path", "10.0.0.0/99"} {
		if errs := (Config{AllowPrivate: []string{bad}}).Validate(); len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "tools.web.allow_private: ") {
			t.Errorf("%q: %v", bad, errs)
		}
	}
}

// No proxy of the environment sees a request.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	proxied := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied = true }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	r := newRig(t, text("fine"), Config{}, nil)
	if res := r.fetch("http://site.example/"); res.Failed || proxied {
		t.Errorf("%+v, proxied: %v", res, proxied)
	}
	if tr := r.f.client.Transport.(*http.Transport); tr.Proxy != nil {
		t.Error("the transport asks for a proxy")
	}
}

// The ways of a server not to come to an end.
func TestServersThatDoNotEnd(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/silent":
			<-req.Context().Done()
		case "/drip":
			for req.Context().Err() == nil {
				fmt.Fprintln(w, "drip")
				if err := http.NewResponseController(w).Flush(); err != nil {
					return
				}
				select {
				case <-release:
				case <-time.After(time.Millisecond):
				}
			}
		case "/endless":
			line := strings.Repeat("endless ", 1000) + "\n"
			for {
				if _, err := fmt.Fprint(w, line); err != nil {
					return
				}
			}
		case "/headers":
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "the beginning")
		}
	}), Config{}, nil)
	defer close(release)
	r.f.limit = 100 * time.Millisecond
	r.fails(r.fetch("http://site.example/silent"), "took more than 100ms")
	if res := r.fetch("http://site.example/drip"); res.Failed || !strings.Contains(res.Text, "longer than is read here") {
		t.Errorf("got %+v", res)
	}
	r.f.limit = fetchTime
	res := r.fetch("http://site.example/endless")
	if res.Failed || len(res.Untrusted) > pageLimit+1000 || !strings.Contains(res.Text, "longer than is read here") {
		t.Errorf("%s", res.Text)
	}
	r.fails(r.fetch("http://site.example/headers"), "could not be fetched")
	if res := r.fetch("http://site.example/cut"); res.Failed || !strings.Contains(res.Untrusted, "the beginning") || !strings.Contains(res.Text, "longer") {
		t.Errorf("got %+v", res)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if res := r.in(ctx, "http://site.example/silent"); !res.Failed || res.Outcome != "interrupted" {
		t.Errorf("got %+v", res)
	}
}
