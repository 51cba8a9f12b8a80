package faketelegram_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/adaptertest/faketelegram"

	"github.com/google/go-cmp/cmp"
)

// updateIDs polls once and returns the ids of what it got.
func updateIDs(t *testing.T, s *faketelegram.Server, p params) []int64 {
	t.Helper()
	a := call(t, s, "getUpdates", p)
	var list []struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(a.Result, &list); err != nil {
		t.Fatalf("getUpdates: %+v, %v", a, err)
	}
	var ids []int64
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}

// TestConfirmation: updates come again until an offset confirms them (RST-002,
// DUP-004, RST-006).
func TestConfirmation(t *testing.T) {
	s := start(t)
	var sent []int64
	for _, text := range []string{"a", "b", "c"} {
		id, _ := s.Send(7, ann, text)
		sent = append(sent, id)
	}
	for _, c := range []struct {
		name string
		p    params
		want []int64
	}{
		{"first", params{}, sent},
		{"again", params{}, sent},
		{"limited", params{"limit": "2"}, sent[:2]},
		{"confirmed", params{"offset": jsonText(sent[1])}, sent[1:]},
		{"gone for good", params{}, sent[1:]},
		{"from the end", params{"offset": "-1"}, sent[2:]},
		{"all", params{"offset": jsonText(sent[2] + 1)}, nil},
	} {
		if got := updateIDs(t, s, c.p); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if c := s.Counters(); c.Confirmed != 3 || c.Pending != 0 {
		t.Errorf("counters %+v", c)
	}
}

func TestLongPoll(t *testing.T) {
	s := start(t)
	got := make(chan []int64, 1)
	go func() {
		a, err := try(s, "getUpdates", params{"timeout": "50"})
		var list []struct {
			ID int64 `json:"update_id"`
		}
		if err == nil {
			_ = json.Unmarshal(a.Result, &list)
		}
		var ids []int64
		for _, u := range list {
			ids = append(ids, u.ID)
		}
		got <- ids
	}()
	if err := s.Wait(t.Context(), (*faketelegram.Server).Polling); err != nil {
		t.Fatal(err)
	}
	id, _ := s.Send(7, ann, "hello")
	if ids := <-got; !cmp.Equal(ids, []int64{id}) {
		t.Errorf("got %v, want %d", ids, id)
	}
}

// TestConflict: the newer poll ends the older one (REC-004).
func TestConflict(t *testing.T) {
	s := start(t)
	older := make(chan answer, 1)
	go func() {
		a, _ := try(s, "getUpdates", params{"timeout": "50"})
		older <- a
	}()
	if err := s.Wait(t.Context(), (*faketelegram.Server).Polling); err != nil {
		t.Fatal(err)
	}
	updateIDs(t, s, params{})
	want := "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	if a := <-older; a.Code != http.StatusConflict || a.Description != want {
		t.Errorf("older poll: %+v", a)
	}
}

// TestWebhookExcludesPolling (CFG-003).
func TestWebhookExcludesPolling(t *testing.T) {
	s := start(t)
	s.SetWebhook("https://example.org/left-behind")
	s.Send(7, ann, "kept")
	a := call(t, s, "getUpdates", params{})
	if a.Code != http.StatusConflict || !strings.Contains(a.Description, "webhook is active") {
		t.Errorf("poll: %+v", a)
	}
	if info := call(t, s, "getWebhookInfo", nil); !strings.Contains(string(info.Result), `"url":"https://example.org/left-behind"`) {
		t.Errorf("info: %s", info.Result)
	}
	call(t, s, "deleteWebhook", params{"drop_pending_updates": "false"})
	if ids := updateIDs(t, s, params{}); len(ids) != 1 {
		t.Errorf("%d updates after deleteWebhook, want 1", len(ids))
	}
}

// TestAllowedUpdates: the list is remembered between calls (CFG-002).
func TestAllowedUpdates(t *testing.T) {
	s := start(t)
	id := send(t, s, params{"chat_id": "7", "text": "card"})
	message := json.Number(id)
	n, _ := message.Int64()
	press := func() int64 {
		u, _ := s.Press(7, n, "yes", ann)
		return u
	}
	s.RememberAllowed("message")
	if press() != 0 {
		t.Error("a button came although only messages were asked for")
	}
	call(t, s, "getUpdates", params{"allowed_updates": `["message","callback_query"]`})
	if press() == 0 {
		t.Error("a button was lost although it was asked for")
	}
	if s.React(7, n, ann, "👍") != 0 {
		t.Error("a reaction came unasked")
	}
	call(t, s, "getUpdates", params{"allowed_updates": `[]`})
	if press() == 0 || s.React(7, n, ann, "👍") != 0 {
		t.Error("an empty list is not the default list")
	}
}

func TestWebhookDelivery(t *testing.T) {
	s := start(t)
	var calls atomic.Int32
	bodies := make(chan string, 4)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "s3cret" || calls.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		bodies <- string(body)
	}))
	defer hook.Close()
	if a := call(t, s, "setWebhook", params{"url": hook.URL, "secret_token": "s3cret"}); !a.OK {
		t.Fatalf("setWebhook: %+v", a)
	}
	s.Send(7, ann, "pushed")
	first, again := <-bodies, <-bodies
	if first != again || !strings.Contains(first, `"text":"pushed"`) {
		t.Errorf("delivered %s and %s", first, again)
	}
	confirmed := func(s *faketelegram.Server) bool { return s.Counters().Confirmed == 1 }
	if err := s.Wait(t.Context(), confirmed); err != nil {
		t.Fatal(err)
	}
}

func TestPollEndsWithItsClient(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/bot"+s.Token()+"/getUpdates?timeout=50", nil)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	if err := s.Wait(t.Context(), (*faketelegram.Server).Polling); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("the poll was answered")
	}
	gone := func(s *faketelegram.Server) bool { return !s.Polling() }
	if err := s.Wait(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
}

func TestIncoming(t *testing.T) {
	s := start(t)
	s.Open(faketelegram.Room{ID: -1000000000001, Title: "Forum", Forum: true, Topics: []int64{5}})
	_, first := s.Send(-1000000000001, ann, "😀 /stop@parley_test_bot for @bob")
	s.Post(faketelegram.Incoming{Chat: -1000000000001, From: ann, Text: "see", Thread: 5, ReplyTo: first, Quote: "/stop",
		File: &faketelegram.File{Name: "a.txt", MIME: "text/plain", Data: []byte("abc")}})
	s.Post(faketelegram.Incoming{Chat: -1000000000001, From: ann, Text: "general", Thread: 77}) // TOP-004
	s.Raw(`{"update_id":1,"message":{"message_id":50,"date":1,"chat":{"id":-1000000000002,"type":"supergroup"},"text":{"new":"shape"}}}`)
	s.Edit(-1000000000001, first, "/stop")
	var got []map[string]any
	if err := json.Unmarshal(call(t, s, "getUpdates", nil).Result, &got); err != nil {
		t.Fatal(err)
	}
	for _, u := range got {
		delete(u, "update_id")
		for _, m := range u {
			m := m.(map[string]any)
			delete(m, "date")
			delete(m, "chat")
			delete(m, "from")
			delete(m, "edit_date")
			if reply, ok := m["reply_to_message"].(map[string]any); ok {
				m["reply_to_message"] = reply["message_id"]
			}
		}
	}
	var want []map[string]any
	if err := json.Unmarshal([]byte(`[
		{"message":{"message_id":1,"text":"😀 /stop@parley_test_bot for @bob","entities":[
			{"type":"bot_command","offset":3,"length":21},{"type":"mention","offset":29,"length":4}]}},
		{"message":{"message_id":2,"message_thread_id":5,"is_topic_message":true,"reply_to_message":1,"caption":"see",
			"quote":{"text":"/stop","position":3,"is_manual":true},
			"document":{"file_id":"file-1","file_unique_id":"ufile-1","file_name":"a.txt","mime_type":"text/plain","file_size":3}}},
		{"message":{"message_id":3,"message_thread_id":77,"text":"general"}},
		{"message":{"message_id":50,"text":{"new":"shape"}}},
		{"edited_message":{"message_id":1,"text":"/stop","entities":[{"type":"bot_command","offset":0,"length":5}]}}
	]`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("updates (-want +got)\n%s", diff)
	}
	if a := call(t, s, "sendMessage", params{"chat_id": "-1000000000002", "text": "known now", "reply_parameters": `{"message_id":50}`}); !a.OK {
		t.Errorf("chat of a raw update: %+v", a)
	}
}

func TestFiles(t *testing.T) {
	s := start(t)
	small := &faketelegram.File{Name: "a.txt", Data: []byte("abc")}
	large := &faketelegram.File{Name: "b.bin", Size: 25 << 20} // ATT-007
	s.Post(faketelegram.Incoming{Chat: 7, From: ann, File: small})
	s.Post(faketelegram.Incoming{Chat: 7, From: ann, File: large})
	if a := call(t, s, "getFile", params{"file_id": large.ID()}); a.Description != "Bad Request: file is too big" {
		t.Errorf("25 MB: %+v", a)
	}
	var f struct {
		Path string `json:"file_path"`
	}
	if err := json.Unmarshal(call(t, s, "getFile", params{"file_id": small.ID()}).Result, &f); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(s.URL() + "/file/bot" + s.Token() + "/" + f.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "abc" {
		t.Errorf("downloaded %q, %v", body, err)
	}
}

// clock is a clock that a test moves.
type clock struct{ now atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(1_800_000_000, c.now.Load()) }
func (c *clock) advance(d time.Duration) { c.now.Add(int64(d)) }
