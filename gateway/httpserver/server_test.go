package httpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"parley/config/secret"
	"parley/gateway/httpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running server on a free port.
type fixture struct {
	url    string
	server *httpserver.Server
	logs   *observer.ObservedLogs
	stop   func() error
	client *http.Client
}

func start(t *testing.T, cfg httpserver.Config, d httpserver.Deps, routes ...map[string]http.Handler) *fixture {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	d.Log = zap.New(core)
	if d.Ready == nil {
		d.Ready = func(context.Context) []httpserver.Problem { return nil }
	}
	if d.Metrics == nil {
		d.Metrics = prometheus.NewRegistry()
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	s, err := httpserver.New(cfg, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		s.Mount(r)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	transport := &http.Transport{}
	f := &fixture{url: "http://" + s.Addr().String(), server: s, logs: logs, client: &http.Client{Transport: transport}}
	var result error
	stopped := false
	f.stop = func() error {
		if !stopped {
			cancel()
			result, stopped = <-done, true
			transport.CloseIdleConnections()
		}
		return result
	}
	t.Cleanup(func() {
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// get asks with headers given as "Name: value"; "Host" sets the host.
func (f *fixture) do(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	res, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestHealthIsAlwaysOK(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{Ready: func(context.Context) []httpserver.Problem {
		return []httpserver.Problem{{Component: "database", Reason: "down"}}
	}})
	res, body := f.do(t, "GET", "/healthz", "")
	if res.StatusCode != 200 || body != "ok\n" {
		t.Errorf("got %d %q", res.StatusCode, body)
	}
}

func TestReadyTellsWhatIsMissing(t *testing.T) {
	var problems []httpserver.Problem
	f := start(t, httpserver.Config{}, httpserver.Deps{Ready: func(context.Context) []httpserver.Problem { return problems }})
	res, body := f.do(t, "GET", "/readyz", "")
	if res.StatusCode != 200 || strings.TrimSpace(body) != `{"ready":true,"problems":[]}` {
		t.Errorf("ready: got %d %q", res.StatusCode, body)
	}
	problems = []httpserver.Problem{{Component: "telegram/main", Reason: "connecting"}}
	res, body = f.do(t, "GET", "/readyz", "")
	var got struct {
		Ready    bool
		Problems []httpserver.Problem
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 503 || got.Ready {
		t.Errorf("not ready: got %d %q", res.StatusCode, body)
	}
	if d := cmp.Diff(problems, got.Problems); d != "" {
		t.Error(d)
	}
	problems = []httpserver.Problem{{Component: "telegram/main", Reason: "the token is refused", Degraded: true}}
	res, body = f.do(t, "GET", "/readyz", "")
	if res.StatusCode != 200 || !strings.Contains(body, `"degraded":true`) {
		t.Errorf("degraded: got %d %q", res.StatusCode, body)
	}
}

func TestMetricsAreForOperators(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_probe_total"})
	reg.MustRegister(c)
	f := start(t, httpserver.Config{AdminToken: secret.New("s3cret")}, httpserver.Deps{Metrics: reg})
	for _, tc := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"loopback", nil, 200},
		{"through a proxy", []string{"X-Forwarded-For: 8.8.8.8"}, 401},
		{"rebound name", []string{"Host: evil.example"}, 401},
		{"proxy with token", []string{"X-Forwarded-For: 8.8.8.8", "Authorization: Bearer s3cret"}, 200},
		{"proxy with wrong token", []string{"X-Forwarded-For: 8.8.8.8", "Authorization: Bearer s3cre"}, 401},
		{"proxy with no scheme", []string{"X-Forwarded-For: 8.8.8.8", "Authorization: s3cret"}, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, body := f.do(t, "GET", "/metrics", "", tc.headers...)
			if res.StatusCode != tc.want {
				t.Errorf("got %d, want %d: %s", res.StatusCode, tc.want, body)
			}
			if tc.want == 200 && !strings.Contains(body, "parley_probe_total 0") {
				t.Errorf("no metric in %q", body)
			}
			if strings.Contains(body, "s3cret") {
				t.Error("the token is in the answer")
			}
		})
	}
	t.Run("no token configured", func(t *testing.T) {
		f := start(t, httpserver.Config{}, httpserver.Deps{})
		if res, _ := f.do(t, "GET", "/metrics", "", "X-Real-Ip: 8.8.8.8", "Authorization: Bearer "); res.StatusCode != 401 {
			t.Errorf("an empty token opened metrics: %d", res.StatusCode)
		}
	})
}

func TestPanicCostsOneRequestAndLeavesAnID(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{}, map[string]http.Handler{
		"/boom": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a private detail") }),
		"/late": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic("late")
		}),
	})
	res, body := f.do(t, "GET", "/boom", "")
	id, ok := strings.CutPrefix(strings.TrimSpace(body), "internal error ")
	if res.StatusCode != 500 || !ok {
		t.Fatalf("got %d %q", res.StatusCode, body)
	}
	entries := f.logs.FilterField(zap.String("id", id)).All()
	if len(entries) != 1 || entries[0].ContextMap()["panic"] != "a private detail" {
		t.Errorf("the log does not explain id %s: %v", id, f.logs.All())
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", f.url+"/late", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := f.client.Do(req); err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil {
			t.Error("a cut answer looks complete")
		}
	}
	if res, _ := f.do(t, "GET", "/healthz", ""); res.StatusCode != 200 {
		t.Error("the server died")
	}
}

func TestEveryAnswerIsHardened(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{}, map[string]http.Handler{
		"/page": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
		}),
	})
	for _, path := range []string{"/healthz", "/nothing", "/page"} {
		res, _ := f.do(t, "GET", path, "")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		policy := res.Header.Get("Content-Security-Policy")
		if path == "/page" != (policy == "default-src 'self'") || policy == "" {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{}, map[string]http.Handler{
		"/take": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
		}),
	})
	if res, _ := f.do(t, "POST", "/take", strings.Repeat("x", 9<<20)); res.StatusCode != 413 {
		t.Errorf("9 MB: %d", res.StatusCode)
	}
	if res, _ := f.do(t, "POST", "/take", strings.Repeat("x", 1<<20)); res.StatusCode != 200 {
		t.Errorf("1 MB: %d", res.StatusCode)
	}
}

func TestStopEndsStreamsAndFinishesRequests(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	f := start(t, httpserver.Config{}, httpserver.Deps{}, map[string]http.Handler{
		"/events": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: hello\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(release)
		}),
		"/work": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(inside)
			<-release // the stream has ended, this request has not
			if r.Context().Err() == nil {
				_, _ = io.WriteString(w, "finished")
			}
		}),
	})
	req, err := http.NewRequestWithContext(t.Context(), "GET", f.url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	stream := bufio.NewReader(res.Body)
	if line, err := stream.ReadString('\n'); err != nil || line != "data: hello\n" {
		t.Fatalf("%q %v", line, err)
	}
	work := make(chan string, 1)
	go func() {
		_, body := f.do(t, "GET", "/work", "")
		work <- body
	}()
	<-inside
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	if body := <-work; body != "finished" {
		t.Errorf("the request was cut: %q", body)
	}
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream did not end cleanly: %v", err)
	}
}

func TestGuard(t *testing.T) {
	free := func(t *testing.T, cfg httpserver.Config) *fixture {
		g := httpserver.NewGuard(cfg)
		return start(t, cfg, httpserver.Deps{}, map[string]http.Handler{
			"/page": g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") })),
		})
	}
	local := free(t, httpserver.Config{Listen: "127.0.0.1:0", PublicURL: "https://chat.example.org"})
	all := free(t, httpserver.Config{Listen: "0.0.0.0:0"})
	_, port, _ := net.SplitHostPort(all.server.Addr().String())
	all.url = "http://127.0.0.1:" + port
	own := strings.TrimPrefix(local.url, "http://")
	for _, tc := range []struct {
		name    string
		f       *fixture
		method  string
		headers []string
		want    int
	}{
		{"own address", local, "GET", nil, 200},
		{"localhost", local, "GET", []string{"Host: localhost:1234"}, 200},
		{"IPv6 loopback", local, "GET", []string{"Host: [::1]:1234"}, 200},
		{"public name", local, "GET", []string{"Host: chat.example.org"}, 200},
		{"rebound name", local, "GET", []string{"Host: evil.example"}, 403},
		{"name that ends alike", local, "GET", []string{"Host: localhost.evil.example"}, 403},
		{"other address", local, "GET", []string{"Host: 10.0.0.9"}, 403},
		{"foreign page reads", local, "GET", []string{"Origin: https://evil.example"}, 403},
		{"own page posts", local, "POST", []string{"Origin: http://" + own}, 200},
		{"public page posts", local, "POST", []string{"Host: chat.example.org", "Origin: https://chat.example.org"}, 200},
		{"public page through a proxy that keeps no host", local, "POST", []string{"Origin: https://chat.example.org"}, 200},
		{"foreign page posts", local, "POST", []string{"Origin: https://evil.example"}, 403},
		{"other port posts", local, "POST", []string{"Origin: http://127.0.0.1:1"}, 403},
		{"sandboxed page posts", local, "POST", []string{"Origin: null"}, 403},
		{"no origin posts", local, "POST", nil, 403},
		{"all addresses: the one asked", all, "GET", nil, 200},
		{"all addresses: another", all, "GET", []string{"Host: 10.0.0.9"}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if res, body := tc.f.do(t, tc.method, "/page", "", tc.headers...); res.StatusCode != tc.want {
				t.Errorf("got %d, want %d: %s", res.StatusCode, tc.want, body)
			}
		})
	}
}

func TestURL(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{})
	if got := f.server.URL(); got != f.url+"/" {
		t.Errorf("bound: %q", got)
	}
	all := start(t, httpserver.Config{Listen: "0.0.0.0:0"}, httpserver.Deps{})
	u, err := url.Parse(all.server.URL())
	if err != nil || u.Hostname() != "localhost" || u.Port() == "0" {
		t.Errorf("all addresses: %q", all.server.URL())
	}
	public := start(t, httpserver.Config{PublicURL: "https://chat.example.org/p"}, httpserver.Deps{})
	if got := public.server.URL(); got != "https://chat.example.org/p/" {
		t.Errorf("public: %q", got)
	}
}

func TestListenIsHostAndPort(t *testing.T) {
	for listen, fine := range map[string]bool{"127.0.0.1:8080": true, ":0": true, "[::1]:80": true, "8080": false, "127.0.0.1:99999": false, "h:port": false} {
		if errs := (httpserver.Config{Listen: listen}).Validate(); (len(errs) == 0) != fine {
			t.Errorf("%q: %v", listen, errs)
		}
	}
}

func TestTakenPortIsSaidAtOnce(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{})
	s, err := httpserver.New(httpserver.Config{Listen: f.server.Addr().String()}, httpserver.Deps{
		Log: zap.NewNop(), Ready: func(context.Context) []httpserver.Problem { return nil }, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "http.listen") {
		t.Errorf("got %v", err)
	}
}

func TestNewRefusesAWrongConfig(t *testing.T) {
	_, err := httpserver.New(httpserver.Config{Listen: "nonsense", PublicURL: "also nonsense"}, httpserver.Deps{})
	for _, key := range []string{"http.listen", "http.public_url"} {
		if err == nil || !strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("%s is not in %v", key, err)
		}
	}
}

// While nothing is mounted yet, health can be asked for and the rest is told to wait.
func TestBeforeAnythingIsMounted(t *testing.T) {
	f := start(t, httpserver.Config{}, httpserver.Deps{Ready: func(context.Context) []httpserver.Problem {
		return []httpserver.Problem{{Component: "database", Reason: "away"}}
	}})
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/": 503, "/webhook/telegram/main": 503} {
		resp, err := f.client.Get(f.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	f.server.Mount(map[string]http.Handler{"GET /{$}": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	for path, want := range map[string]int{"/": 200, "/webhook/telegram/main": 404} {
		resp, err := f.client.Get(f.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("mounted, %s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}
