package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"parley/adapters/web"
	"parley/config/secret"
	"parley/gateway/chat"
)

func TestSignIn(t *testing.T) {
	s := serve(t, newTimeline(t), "127.0.0.1:0", token)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, body := s.do("GET", "/", "")
	if res.StatusCode != 401 || !strings.Contains(body, "printed a URL") {
		t.Errorf("without a cookie: %d %s", res.StatusCode, body)
	}
	for _, path := range []string{"/api/transcript", "/api/sessions", "/api/events"} {
		if res, _ := s.do("GET", path, ""); res.StatusCode != 401 {
			t.Errorf("%s without a cookie: %d", path, res.StatusCode)
		}
	}
	if code, _ := s.post("/api/messages", message{"00000001", "hi"}); code != 401 || s.timeline.count() != 0 {
		t.Errorf("a message without a cookie: %d", code)
	}
	if strings.Contains(body, "not valid here") {
		t.Error("a token that nobody gave is called wrong")
	}
	if res, body := s.do("GET", "/?token=guess", ""); res.StatusCode != 401 || len(res.Cookies()) != 0 || !strings.Contains(body, "not valid here") {
		t.Errorf("a wrong token: %d %s", res.StatusCode, body)
	}
	whole := url.Values{"token": {" " + s.url + "/" + s.adapter.StartPath() + "\n"}}
	if res, _ := s.do("GET", "/?"+whole.Encode(), ""); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Errorf("the whole URL pasted for the token: %d", res.StatusCode)
	}
	s.client.Jar, _ = cookiejar.New(nil)
	res, _ = s.do("GET", "/"+s.adapter.StartPath(), "")
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Errorf("the printed URL: %d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	cookies := res.Cookies()
	if len(cookies) != 1 {
		t.Fatalf("cookies: %v", cookies)
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, token) {
		t.Errorf("cookie %v", c)
	}
	if res, body := s.do("GET", "/", ""); res.StatusCode != 200 || !strings.Contains(body, `id="composer"`) {
		t.Errorf("with the cookie: %d", res.StatusCode)
	}
}

func TestCookieOutlivesARestartButNotItsToken(t *testing.T) {
	first := start(t, newTimeline(t), "127.0.0.1:0")
	u, err := url.Parse(first.url)
	if err != nil {
		t.Fatal(err)
	}
	cookies := first.client.Jar.Cookies(u)
	for _, tc := range []struct {
		token string
		want  int
	}{{token, 200}, {"another", 401}} {
		s := serve(t, newTimeline(t), "127.0.0.1:0", tc.token)
		u, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		s.client.Jar.SetCookies(u, cookies)
		if res, _ := s.do("GET", "/", ""); res.StatusCode != tc.want {
			t.Errorf("token %s: %d, want %d", tc.token, res.StatusCode, tc.want)
		}
	}
}

// One decision for every kind of request (ACC-008): reading, writing, pressing.
func TestForeignPagesAreRefused(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	body := `{"id":"00000001","text":"hi"}`
	for _, tc := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"rebound name reads", "GET", "/api/transcript", []string{"Host: evil.example"}, 403},
		{"rebound name opens the page", "GET", "/", []string{"Host: evil.example"}, 403},
		{"foreign page reads", "GET", "/api/transcript", []string{"Origin: https://evil.example"}, 403},
		{"foreign page posts", "POST", "/api/messages", []string{"Origin: https://evil.example"}, 403},
		{"foreign page presses", "POST", "/api/buttons", []string{"Origin: https://evil.example"}, 403},
		{"foreign page stops", "POST", "/api/stop", []string{"Origin: https://evil.example"}, 403},
		{"no origin", "POST", "/api/messages", []string{"Origin: "}, 403},
		{"a form's content type", "POST", "/api/messages", []string{"Content-Type: text/plain"}, 415},
		{"own page", "POST", "/api/messages", nil, 202},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if res, got := s.do(tc.method, tc.path, body, tc.headers...); res.StatusCode != tc.want {
				t.Errorf("got %d %s, want %d", res.StatusCode, got, tc.want)
			}
		})
	}
	if n := len(s.events); n != 1 {
		t.Errorf("%d events got through, want 1", n)
	}
}

func TestPageLoadsNothingForeign(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	res, body := s.do("GET", "/", "")
	policy := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(body, "http://") || strings.Contains(body, "https://") || strings.Contains(body, " style=") {
		t.Error("the page names another site or has inline style")
	}
	res, _ = s.do("GET", "/static/app.js", "")
	if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/javascript") {
		t.Errorf("app.js is %q", got)
	}
	if again, _ := s.do("GET", "/static/app.js", "", "If-None-Match: "+res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("unchanged app.js: %d", again.StatusCode)
	}
	if res, _ := s.do("GET", "/static/nothing.js", ""); res.StatusCode != 404 {
		t.Errorf("a file that is not there: %d", res.StatusCode)
	}
}

// A client that sends again because it saw no answer is counted once (DUP-001).
func TestMessageCountsOnce(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	for range 3 {
		if code, body := s.post("/api/messages", message{"00000001", "hello"}); code != 202 {
			t.Fatalf("%d %s", code, body)
		}
	}
	first := (<-s.events).(chat.MessageReceived)
	if first.Text != "hello" || !first.ForBot || first.Kind != chat.Direct || first.From.ID != "web:local" || first.Address != address {
		t.Errorf("event %+v", first)
	}
	for range 2 {
		if again := (<-s.events).Meta(); again.Key != first.Key || again.Message != first.Message {
			t.Errorf("sent again: key %s, first %s", again.Key, first.Key)
		}
	}
	list, err := s.timeline.List(t.Context(), address, 10)
	if err != nil || len(list) != 1 {
		t.Errorf("%d entries, %v", len(list), err)
	}
}

func TestMessageIsAcknowledgedOnceDurable(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	s.setRefuse(errors.New("a private detail"))
	code, body := s.post("/api/messages", message{"00000001", "hello"})
	if code != 503 || strings.Contains(body, "private") {
		t.Errorf("not durable: %d %s", code, body)
	}
	s.setRefuse(nil)
	s.timeline.setFail(errors.New("the database is away"))
	if code, _ := s.post("/api/messages", message{"00000002", "hello"}); code != 503 {
		t.Errorf("not stored: %d", code)
	}
	s.timeline.setFail(nil)
	if code, _ := s.post("/api/messages", message{"00000001", "hello"}); code != 202 {
		t.Errorf("sent again: %d", code)
	}
	if got := (<-s.events).(chat.MessageReceived).Text; got != "hello" {
		t.Errorf("event %q", got)
	}
}

func TestMessageSizes(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	long := strings.Repeat("ä", 200_000)
	for _, tc := range []struct {
		name string
		body any
		want int
		say  string
	}{
		{"200,000 characters", message{"00000001", long}, 202, ""},
		{"over 1 MB", message{"00000002", strings.Repeat("x", 1<<20)}, 413, "larger than 1 MB"},
		{"5 MB", message{"00000003", strings.Repeat("x", 5<<20)}, 413, "larger than 1 MB"},
		{"NUL bytes", message{"00000005", "a\x00b"}, 202, ""},
		{"lone surrogates", json.RawMessage(`{"id":"00000006","text":"a\ud800b"}`), 202, ""},
		{"empty", message{"00000004", " \n"}, 400, "empty"},
		{"no id", message{"", "x"}, 400, "id"},
		{"not JSON", "text", 400, "JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, body := s.post("/api/messages", tc.body)
			if code != tc.want || !strings.Contains(body, tc.say) {
				t.Errorf("%d %.200s", code, body)
			}
		})
	}
	if got := s.received().Text; got != long {
		t.Errorf("the long text has %d bytes", len(got))
	}
	s.received()
	if got := s.received().Text; got != "a\ufffdb" {
		t.Errorf("the surrogate became %q", got)
	}
}

// A crash between the entry and its event must not leave a message that nobody
// answers (RST-001): the next start offers it again, under the same key.
func TestMessageOfACrashIsOfferedAgain(t *testing.T) {
	tl := newTimeline(t)
	s := start(t, tl, "127.0.0.1:0")
	s.setRefuse(errors.New("crash"))
	s.post("/api/messages", message{"00000001", "hello"})
	s.stop()
	tl.setAge(2 * time.Hour)
	late := start(t, tl, "127.0.0.1:0")
	late.stop()
	if n := len(late.events); n != 0 {
		t.Errorf("%d events of long ago were offered", n)
	}
	tl.setAge(0)
	again := start(t, tl, "127.0.0.1:0")
	ev := (<-again.events).(chat.MessageReceived)
	if ev.Text != "hello" || ev.Kind != chat.Direct {
		t.Errorf("offered %+v", ev)
	}
	if code, _ := again.post("/api/messages", message{"00000001", "hello"}); code != 202 {
		t.Errorf("the page's own retry: %d", code)
	}
	if retry := (<-again.events).Meta(); retry.Key != ev.Key {
		t.Errorf("keys differ: %s, %s", retry.Key, ev.Key)
	}
}

// The stop's answer to requests that come while nothing takes events in.
func TestEventsAreRefusedOutsideRun(t *testing.T) {
	a, err := web.New(web.DefaultConfig(), web.Deps{
		Log: zap.NewNop(), Timeline: newTimeline(t), Directory: newTimeline(t), Token: secret.New(token),
		Guard: func(h http.Handler) http.Handler { return h },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Send(t.Context(), address, chat.Outgoing{Key: "1", Text: "deliveries work without Run"}); err != nil {
		t.Error(err)
	}
	if _, err := web.New(web.DefaultConfig(), web.Deps{Log: zap.NewNop()}); err == nil {
		t.Error("a page without a guard was made")
	}
}

// Live text is pushed and not written; a no-op edit is a success and says nothing
// (STR-005, STR-018); the final edit is durable and replaces what was live
// (STR-010, STR-024).
func TestLiveTextStaysInMemory(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	st := s.stream("")
	st.event("hello", &struct{}{})
	st.until(func(update) bool { return true })
	id := s.send(chat.Outgoing{Key: "a", Text: "", Live: true, Progress: []string{"looking"}})
	st.until(func(u update) bool { return len(u.Entries) == 1 && u.Entries[0].Live && len(u.Order) == 1 })
	writes := s.timeline.count()
	for _, text := range []string{"Hel", "Hello **wor", "Hello **wor", "Hello **world**"} {
		s.edit(id, chat.Outgoing{Key: "a", Text: text, Live: true})
	}
	u := st.until(func(u update) bool {
		return len(u.Entries) == 1 && strings.Contains(u.Entries[0].HTML, "<strong>world")
	})
	if !u.Entries[0].Live || u.Order != nil {
		t.Errorf("live update %+v", u)
	}
	if n := s.timeline.count(); n != writes {
		t.Errorf("%d writes for live edits", n-writes)
	}
	list, _ := s.timeline.List(t.Context(), address, 1)
	if !list[0].Live {
		t.Error("the entry is not there, or not live")
	}
	s.edit(id, chat.Outgoing{Key: "a", Text: "Hello, world."})
	u = st.until(func(u update) bool { return len(u.Entries) == 1 && !u.Entries[0].Live })
	if want := `<p dir="auto">Hello, world.</p>` + "\n"; u.Entries[0].HTML != want || u.Entries[0].Text != "Hello, world." {
		t.Errorf("final %+v", u.Entries[0])
	}
	list, _ = s.timeline.List(t.Context(), address, 1)
	if list[0].Live || list[0].Text != "Hello, world." {
		t.Errorf("stored %+v", list[0])
	}
}

func TestEditOfAMessageThatIsGone(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	for _, live := range []bool{true, false} {
		err := s.adapter.Edit(t.Context(), address, "99", chat.Outgoing{Text: "x", Live: live})
		if !errors.Is(err, chat.ErrGone) {
			t.Errorf("live %v: %v", live, err)
		}
	}
	id := s.send(chat.Outgoing{Key: "a", Text: "x"})
	for range 2 {
		if err := s.adapter.Delete(t.Context(), address, id); err != nil {
			t.Errorf("deleting: %v", err)
		}
	}
}

// A repeated send leaves one message, and Find knows it (STR-021, DEL-004).
func TestSendCountsOnce(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	id := s.send(chat.Outgoing{Key: "k", Text: "answer"})
	if again := s.send(chat.Outgoing{Key: "k", Text: "answer"}); again != id {
		t.Errorf("ids %s, %s", id, again)
	}
	if got, ok, err := s.adapter.Find(t.Context(), address, chat.Attempt{Key: "k"}); got != id || !ok || err != nil {
		t.Errorf("find: %s %v %v", got, ok, err)
	}
	if _, ok, err := s.adapter.Find(t.Context(), address, chat.Attempt{Key: "other"}); ok || err != nil {
		t.Errorf("found what was not sent: %v", err)
	}
}

func TestStreamResumesWhereItWas(t *testing.T) {
	tl := newTimeline(t)
	s := start(t, tl, "127.0.0.1:0")
	s.send(chat.Outgoing{Key: "1", Text: "one"})
	var h struct{ Fresh bool }
	st := s.stream("")
	st.event("hello", &h)
	first := st.until(func(update) bool { return true })
	if !h.Fresh || len(first.Entries) != 1 {
		t.Fatalf("first: %v %+v", h, first)
	}
	st.close()
	s.send(chat.Outgoing{Key: "2", Text: "two"})
	back := s.stream(st.last)
	back.event("hello", &h)
	u := back.until(func(update) bool { return true })
	if h.Fresh || len(u.Entries) != 1 || u.Entries[0].Text != "two" || len(u.Order) != 2 {
		t.Errorf("resumed: %v %+v", h, u)
	}
	s.stop()
	restarted := start(t, tl, "127.0.0.1:0")
	anew := restarted.stream(back.last)
	anew.event("hello", &h)
	if u := anew.until(func(update) bool { return true }); !h.Fresh || len(u.Entries) != 2 {
		t.Errorf("after a restart: %v %+v", h, u)
	}
}

// What another replica posts appears on this one's pages.
func TestOtherReplicasPagesAreWoken(t *testing.T) {
	tl := newTimeline(t)
	a, b := start(t, tl, "127.0.0.1:0"), start(t, tl, "127.0.0.1:0")
	st := b.stream("")
	st.event("hello", &struct{}{})
	id := a.send(chat.Outgoing{Key: "1", Text: "from a", Live: true})
	st.until(func(u update) bool { return len(u.Entries) == 1 && u.Entries[0].Live })
	a.edit(id, chat.Outgoing{Key: "1", Text: "done by a"})
	st.until(func(u update) bool { return len(u.Entries) == 1 && u.Entries[0].Text == "done by a" })
	// The other replica takes the message over, its memory does not win afterwards.
	id = a.send(chat.Outgoing{Key: "2", Live: true})
	a.edit(id, chat.Outgoing{Key: "2", Text: "half", Live: true})
	own := a.stream("")
	own.event("hello", &struct{}{})
	b.edit(id, chat.Outgoing{Key: "2", Text: "whole, by b"})
	own.until(func(u update) bool {
		return slices.ContainsFunc(u.Entries, func(e entry) bool { return e.ID == id && e.Text == "whole, by b" })
	})
}

func TestButtons(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	id := s.send(chat.Outgoing{Key: "card", Text: "May I?", Buttons: [][]chat.Button{{{Label: "Allow", Data: "yes"}, {Label: "Deny", Data: "no"}}}})
	st := s.stream("")
	st.event("hello", &struct{}{})
	st.until(func(u update) bool { return len(u.Entries) == 1 && len(u.Entries[0].Buttons) == 1 })
	press := map[string]string{"id": "press-0001", "message": string(id), "data": "yes"}
	for range 2 {
		if code, body := s.post("/api/buttons", press); code != 202 {
			t.Fatalf("%d %s", code, body)
		}
	}
	ev := (<-s.events).(chat.ButtonPressed)
	if ev.Data != "yes" || ev.Message != id || ev.From.ID != "web:local" {
		t.Errorf("event %+v", ev)
	}
	if again := (<-s.events).Meta(); again.Key != ev.Key {
		t.Errorf("the same press has keys %s and %s", ev.Key, again.Key)
	}
	if err := s.adapter.AckButton(t.Context(), ev, "Allowed"); err != nil {
		t.Error(err)
	}
	u := st.until(func(u update) bool { return len(u.Notices) == 1 })
	if u.Notices[0].Ack != "press-0001" || u.Notices[0].Text != "Allowed" {
		t.Errorf("notice %+v", u.Notices)
	}
	s.edit(id, chat.Outgoing{Key: "card", Text: "Allowed."})
	press["id"] = "press-0002"
	if code, body := s.post("/api/buttons", press); code != 409 || !strings.Contains(body, "no longer there") {
		t.Errorf("a button that is gone: %d %s", code, body)
	}
}

func TestStopTypingCommandsAndSessions(t *testing.T) {
	s := start(t, newTimeline(t), "127.0.0.1:0")
	if code, _ := s.post("/api/stop", map[string]string{"id": "stop-0001"}); code != 202 {
		t.Errorf("stop: %d", code)
	}
	if _, ok := (<-s.events).(chat.StopPressed); !ok {
		t.Error("no stop event")
	}
	st := s.stream("")
	st.event("hello", &struct{}{})
	st.until(func(update) bool { return true })
	if err := s.adapter.Typing(t.Context(), address); err != nil {
		t.Error(err)
	}
	st.until(func(u update) bool { return u.Typing > 0 })
	s.send(chat.Outgoing{Key: "1", Text: "done"})
	st.until(func(u update) bool { return u.Typing == 0 && len(u.Entries) == 1 })
	if err := s.adapter.PublishCommands(t.Context(), []chat.CommandInfo{{Name: "new"}, {Name: "stop"}}); err != nil {
		t.Error(err)
	}
	st.until(func(u update) bool { return len(u.Commands) == 2 })

	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.timeline.setSessions(chat.SessionInfo{ID: "s1", Title: "Trip", Current: true, Messages: 3, At: at})
	_, body := s.do("GET", "/api/sessions", "")
	want := `[{"id":"s1","title":"Trip","current":true,"messages":3,"at":"2026-01-02T03:04:05Z"}]` + "\n"
	if d := cmp.Diff(want, body); d != "" {
		t.Error(d)
	}
	if _, body := s.do("GET", "/api/transcript", ""); !strings.Contains(body, `"text":"done"`) {
		t.Errorf("transcript %s", body)
	}
}
