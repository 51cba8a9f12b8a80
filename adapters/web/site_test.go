package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"parley/adapters/web"
	"parley/config/secret"
	"parley/gateway/chat"
	"parley/gateway/httpserver"
)

func TestMain(m *testing.M) {
	// The databases' server outlives the tests.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("parley/store.(*Private).watchOver"))
}

const token = "a-token-of-the-test"

// errAway is what a database that is away answers.
var errAway = errors.New("the database is away")

var address = chat.Address{Account: web.Account, Chat: "main"}

// site is the page behind the real server.
type site struct {
	t        *testing.T
	adapter  *web.Adapter
	timeline *timeline
	events   chan chat.Event // what the sink took
	url      string
	client   *http.Client
	stop     func()

	mu     sync.Mutex
	refuse error // what the sink answers
}

// start serves the page on listen and signs the client in.
func start(t *testing.T, tl *timeline, listen string) *site {
	t.Helper()
	s := serve(t, tl, listen, token)
	if res, _ := s.do("GET", "/?token="+token, ""); res.StatusCode != http.StatusOK {
		t.Fatalf("signing in: %d", res.StatusCode)
	}
	return s
}

func serve(t *testing.T, tl *timeline, listen, token string) *site {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s := &site{t: t, timeline: tl, events: make(chan chat.Event, 100), client: &http.Client{Jar: jar, Transport: transport}}
	cfg := httpserver.Config{Listen: listen}
	guard := httpserver.NewGuard(cfg)
	s.adapter, err = web.New(web.DefaultConfig(), web.Deps{
		Log: zap.NewNop(), Timeline: tl, Directory: tl, Token: secret.New(token), Guard: guard.Wrap,
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpserver.New(cfg, httpserver.Deps{
		Log: zap.NewNop(), Ready: func(context.Context) []httpserver.Problem { return nil },
		Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Mount(s.adapter.Routes())
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + server.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	connected := make(chan struct{})
	var once sync.Once
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		err := s.adapter.Run(ctx, func(_ context.Context, ev chat.Event) error {
			if c, ok := ev.(chat.ConnectionChanged); ok {
				if c.State == chat.Connected {
					once.Do(func() { close(connected) })
				}
				return nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.refuse != nil {
				return s.refuse
			}
			s.events <- ev
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		transport.CloseIdleConnections()
	})
	t.Cleanup(s.stop)
	<-connected
	return s
}

func (s *site) setRefuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// do makes a request like the page's own; headers are "Name: value" and replace
// those, an empty value removes one.
func (s *site) do(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Origin", s.url)
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, string(b)
}

// post sends JSON as the page does.
func (s *site) post(path string, v any) (int, string) {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	res, body := s.do("POST", path, string(b))
	return res.StatusCode, body
}

// send posts as the bot.
func (s *site) send(m chat.Outgoing) chat.MessageID {
	s.t.Helper()
	id, err := s.adapter.Send(s.t.Context(), address, m)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *site) edit(id chat.MessageID, m chat.Outgoing) {
	s.t.Helper()
	if err := s.adapter.Edit(s.t.Context(), address, id, m); err != nil {
		s.t.Fatal(err)
	}
}

// message is a JSON body of POST /api/messages.
type message struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// entry and update are what the page is told.
type entry struct {
	ID       chat.MessageID  `json:"id"`
	Client   string          `json:"client"`
	Mine     bool            `json:"mine"`
	Text     string          `json:"text"`
	HTML     string          `json:"html"`
	Progress []string        `json:"progress"`
	Buttons  [][]chat.Button `json:"buttons"`
	Live     bool            `json:"live"`
}

type update struct {
	Order    []chat.MessageID `json:"order"`
	Entries  []entry          `json:"entries"`
	Commands []struct {
		Name string `json:"name"`
	} `json:"commands"`
	Notices []struct {
		Ack  string `json:"ack"`
		Text string `json:"text"`
	} `json:"notices"`
	Typing int64 `json:"typing"`
}

// stream is an open event stream.
type stream struct {
	t    *testing.T
	body *bufio.Reader
	last string // the id of the last event
	// close leaves.
	close func()
}

func (s *site) stream(after string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		s.t.Fatalf("the stream is %d %s", res.StatusCode, got)
	}
	st := &stream{t: s.t, body: bufio.NewReader(res.Body)}
	st.close = sync.OnceFunc(func() { cancel(); _ = res.Body.Close() })
	s.t.Cleanup(st.close)
	return st
}

// event reads the next event and decodes its data.
func (st *stream) event(want string, into any) {
	st.t.Helper()
	var kind, data string
	for {
		line, err := st.body.ReadString('\n')
		if err != nil {
			st.t.Fatal(err)
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			break
		}
		switch k, v, _ := strings.Cut(line, ": "); k {
		case "event":
			kind = v
		case "id":
			st.last = v
		case "data":
			data = v
		}
	}
	if kind != want {
		st.t.Fatalf("got event %s %s, want %s", kind, data, want)
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		st.t.Fatal(err)
	}
}

// until reads updates until one satisfies ok.
func (st *stream) until(ok func(update) bool) update {
	st.t.Helper()
	for {
		var u update
		st.event("update", &u)
		if ok(u) {
			return u
		}
	}
}
