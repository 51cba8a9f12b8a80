package faketelegram_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/adaptertest/faketelegram"

	"github.com/google/go-cmp/cmp"
)

func TestMessagesAndVersions(t *testing.T) {
	var now clock
	s := start(t, faketelegram.WithClock(now.Now))
	_, question := s.Send(7, ann, "Question?")
	at := now.Now()
	id := send(t, s, params{"chat_id": "7", "text": " <b>one</b> &amp; two\n", "parse_mode": "HTML",
		"link_preview_options": `{"is_disabled":true}`, "reply_parameters": fmt.Sprintf(`{"message_id":%d}`, question),
		"reply_markup": `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}`})
	now.advance(time.Second)
	call(t, s, "editMessageText", params{"chat_id": "7", "message_id": id, "text": "three"})
	gone := send(t, s, params{"chat_id": "7", "text": "gone"})
	call(t, s, "deleteMessage", params{"chat_id": "7", "message_id": gone})

	keyboard := [][]faketelegram.Button{{{Text: "Yes", Data: "y"}}}
	want := []faketelegram.Message{{ID: 2, Text: "three", ReplyTo: question, SentAt: at, EditedAt: at.Add(time.Second),
		Versions: []faketelegram.Version{
			{Text: "one & two", HTML: " <b>one</b> &amp; two\n", Keyboard: keyboard, At: at},
			{Text: "three", At: at.Add(time.Second)},
		}}}
	if diff := cmp.Diff(want, s.Chat(7).Messages()); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
	if d := s.Chat(7).Deleted(); len(d) != 1 || d[0].Text != "gone" {
		t.Errorf("deleted %+v", d)
	}
}

// TestSmallEffects covers reactions, typing, drafts, buttons and the menu.
func TestSmallEffects(t *testing.T) {
	s := start(t)
	_, theirs := s.Send(7, ann, "hi")
	card := send(t, s, params{"chat_id": "7", "text": "card"})
	call(t, s, "setMessageReaction", params{"chat_id": "7", "message_id": fmt.Sprint(theirs), "reaction": `[{"type":"emoji","emoji":"👀"}]`})
	call(t, s, "sendChatAction", params{"chat_id": "7", "action": "typing"})
	call(t, s, "setMyCommands", params{"commands": `[{"command":"stop","description":"Stop"}]`})
	for _, text := range []string{"par", "<i>partial</i>"} {
		call(t, s, "sendMessageDraft", params{"chat_id": "7", "draft_id": "4", "text": text, "parse_mode": "HTML"})
	}
	_, query := s.Press(7, 2, "yes", ann)
	call(t, s, "answerCallbackQuery", params{"callback_query_id": query, "text": "Done"})

	c := s.Chat(7)
	if got := c.Reactions(theirs); !cmp.Equal(got, []string{"👀"}) {
		t.Errorf("reactions %v", got)
	}
	if got := c.Actions(); len(got) != 1 || got[0].Name != "typing" {
		t.Errorf("actions %v", got)
	}
	if got := c.Drafts(); len(got) != 1 || got[0].Text != "partial" || got[0].Updates != 2 {
		t.Errorf("drafts %v", got)
	}
	if got := s.CallbackAnswers(); len(got) != 1 || got[0].Query != query || got[0].Text != "Done" {
		t.Errorf("callback answers %v", got)
	}
	if got := s.Commands(); !cmp.Equal(got, []faketelegram.Command{{Command: "stop", Description: "Stop"}}) {
		t.Errorf("commands %v", got)
	}
	send(t, s, params{"chat_id": "7", "text": "final"})
	if got := c.Drafts(); len(got) != 0 {
		t.Errorf("drafts after the message: %v", got)
	}
	s.Remove(7, 2) // STR-014
	if a := call(t, s, "editMessageText", params{"chat_id": "7", "message_id": card, "text": "x"}); a.Description != "Bad Request: message to edit not found" {
		t.Errorf("edit of what the person deleted: %+v", a)
	}
	if v := s.Violations(); len(v) > 0 {
		t.Errorf("violations %v", v)
	}
}

// TestEntitiesAsStored: what the real server makes of formatting before it stores it.
func TestEntitiesAsStored(t *testing.T) {
	s := start(t)
	type e = faketelegram.Entity
	for html, want := range map[string][]e{
		"\n<b>a</b> ":                                   {{Type: "bold", Offset: 0, Length: 1}},
		"<b>a <code>b</code> c</b>":                     {{Type: "bold", Offset: 0, Length: 2}, {Type: "code", Offset: 2, Length: 1}, {Type: "bold", Offset: 3, Length: 2}},
		"<code><i>x</i></code>":                         {{Type: "code", Offset: 0, Length: 1}},
		`<a href="localhost">x</a>`:                     nil,
		`<a href="https://a.b/?q=1&amp;r">x</a>`:        {{Type: "text_link", Offset: 0, Length: 1, URL: "https://a.b/?q=1&r"}},
		`<pre><code class="language-go">x</code></pre>`: {{Type: "pre", Offset: 0, Length: 1, Language: "go"}},
	} {
		send(t, s, params{"chat_id": "7", "text": html, "parse_mode": "HTML"})
		last, _ := s.Chat(7).Last()
		if diff := cmp.Diff(want, last.Entities); diff != "" {
			t.Errorf("%s (-want +got)\n%s", html, diff)
		}
	}
	send(t, s, params{"chat_id": "7", "text": strings.Repeat("<b>a</b> ", 120), "parse_mode": "HTML"})
	if last, _ := s.Chat(7).Last(); len(last.Entities) != 100 {
		t.Errorf("%d entities kept, want 100", len(last.Entities))
	}
}

func TestUpload(t *testing.T) {
	s := start(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, field, name, data, want string
	}{
		{"sendDocument", "document", "a.txt", "abc", ""},
		{"sendDocument", "document", "a.txt", "", "Bad Request: file must be non-empty"},
		{"sendPhoto", "photo", "a.png", picture.String(), ""},
		{"sendPhoto", "photo", "a.png", "no picture", "Bad Request: IMAGE_PROCESS_FAILED"},
		{"sendPhoto", "picture", "a.png", picture.String(), "Bad Request: there is no photo in the request"},
	} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		_ = w.WriteField("chat_id", "7")
		_ = w.WriteField("caption", "see")
		part, _ := w.CreateFormFile(c.field, c.name)
		_, _ = part.Write([]byte(c.data))
		w.Close()
		resp, err := http.Post(s.URL()+"/bot"+s.Token()+"/"+c.method, w.FormDataContentType(), &body)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := read(resp); err != nil || a.Description != c.want {
			t.Errorf("%s: %+v, %v; want %q", c.method, a, err, c.want)
		}
	}
	m := s.Chat(7).Messages()
	if len(m) != 2 || string(m[0].File.Data) != "abc" || m[1].File.Kind != "photo" || m[0].Text != "see" {
		t.Errorf("messages %+v", m)
	}
}

func TestTopics(t *testing.T) {
	s := start(t)
	s.Open(faketelegram.Room{ID: -1000000000001, Forum: true})
	_, thread := s.OpenTopic(-1000000000001, ann, "Plans")
	to := params{"chat_id": "-1000000000001", "text": "x", "message_thread_id": fmt.Sprint(thread)}
	send(t, s, to)
	send(t, s, params{"chat_id": "-1000000000001", "text": "x"})
	send(t, s, params{"chat_id": "-1000000000001", "text": "x", "reply_parameters": `{"message_id":2}`})
	for _, m := range s.Chat(-1000000000001).Messages() {
		if want := map[int64]int64{2: thread, 3: 0, 4: thread}[m.ID]; m.Thread != want {
			t.Errorf("message %d is in thread %d, want %d", m.ID, m.Thread, want)
		}
	}
	s.CloseTopic(-1000000000001, thread)
	if a := call(t, s, "sendMessage", to); a.Description != "Bad Request: TOPIC_CLOSED" {
		t.Errorf("closed: %+v", a)
	}
	s.DeleteTopic(-1000000000001, thread)
	if a := call(t, s, "sendMessage", to); a.Description != "Bad Request: message thread not found" {
		t.Errorf("deleted: %+v", a)
	}
}

// TestFaults: a call goes wrong before or after it takes effect (DEL-004, STR-008).
func TestFaults(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		name   string
		fault  *faketelegram.Fault
		effect bool
	}{
		{"cut before", faketelegram.CutBefore, false},
		{"cut after", faketelegram.CutAfter, true},
		{"gateway", faketelegram.BadGateway, false},
	} {
		before := len(s.Chat(7).Messages())
		s.FailNext("sendMessage", c.fault)
		if a, err := try(s, "sendMessage", params{"chat_id": "7", "text": "x"}); err == nil {
			t.Errorf("%s: answered %+v", c.name, a)
		}
		if effect := len(s.Chat(7).Messages()) > before; effect != c.effect {
			t.Errorf("%s: effect %v, want %v", c.name, effect, c.effect)
		}
	}
	s.Fail(func(c faketelegram.Call) *faketelegram.Fault {
		if c.Method == "sendMessage" && c.Params["text"] == "much" {
			return faketelegram.TooManyRequests(9)
		}
		return nil
	})
	a := call(t, s, "sendMessage", params{"chat_id": "7", "text": "much"})
	if a.Code != 429 || a.Parameters.RetryAfter != 9 || a.Description != "Too Many Requests: retry after 9" {
		t.Errorf("429: %+v", a)
	}
	send(t, s, params{"chat_id": "7", "text": "little"})
}

// TestHang: the call took effect and its client gives up (DEL-004, REC-005).
func TestHang(t *testing.T) {
	s := start(t)
	s.FailNext("sendMessage", faketelegram.HangAfter)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 100 * time.Millisecond}
	defer client.CloseIdleConnections()
	resp, err := client.Get(s.URL() + "/bot" + s.Token() + "/sendMessage?chat_id=7&text=x")
	if err == nil {
		resp.Body.Close()
	}
	if !os.IsTimeout(err) {
		t.Errorf("%v, want a timeout", err)
	}
	if got := s.Chat(7).Texts(); !cmp.Equal(got, []string{"x"}) {
		t.Errorf("texts %q", got)
	}
}

func TestLimits(t *testing.T) {
	var now clock
	s := start(t, faketelegram.WithClock(now.Now), faketelegram.WithLimits(faketelegram.Limits{ChatBurst: 3}))
	retry := func(method string, p params) int {
		t.Helper()
		return call(t, s, method, p).Parameters.RetryAfter
	}
	id := send(t, s, params{"chat_id": "7", "text": "1"})
	edit := params{"chat_id": "7", "message_id": id, "text": "2"}
	if n := retry("editMessageText", edit); n != 0 {
		t.Errorf("second of three: retry after %d", n)
	}
	send(t, s, params{"chat_id": "7", "text": "3"})
	if n := retry("sendMessage", params{"chat_id": "7", "text": "4"}); n != 1 {
		t.Errorf("fourth at once: retry after %d, want 1", n)
	}
	now.advance(time.Second)
	if n := retry("sendMessage", params{"chat_id": "7", "text": "4"}); n != 0 {
		t.Errorf("a second later: retry after %d", n)
	}

	s.Open(faketelegram.Room{ID: -5})
	for range 20 {
		now.advance(time.Second)
		send(t, s, params{"chat_id": "-5", "text": "x"})
	}
	if n := retry("sendMessage", params{"chat_id": "-5", "text": "x"}); n != 41 {
		t.Errorf("the 21st message of a minute: retry after %d, want 41", n)
	}
	now.advance(41 * time.Second)
	send(t, s, params{"chat_id": "-5", "text": "x"})
	now.advance(time.Second)

	sent := 0
	for i := range int64(40) {
		s.Open(faketelegram.Room{ID: 100 + i})
		if retry("sendMessage", params{"chat_id": fmt.Sprint(100 + i), "text": "x"}) == 0 {
			sent++
		}
	}
	if sent != 30 {
		t.Errorf("%d messages at once over all chats, want 30", sent)
	}
}

func TestWaitAndOnChange(t *testing.T) {
	var mu sync.Mutex
	var kinds []faketelegram.ChangeKind
	s := start(t, faketelegram.RecordCalls(), faketelegram.OnChange(func(c faketelegram.Change) {
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, c.Kind)
	}))
	done := make(chan error, 1)
	go func() {
		done <- s.Chat(7).Wait(t.Context(), func(c *faketelegram.Chat) bool {
			last, ok := c.Last()
			return ok && last.Text == "second"
		})
	}()
	id := send(t, s, params{"chat_id": "7", "text": "first"})
	call(t, s, "editMessageText", params{"chat_id": "7", "message_id": id, "text": "second"})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []faketelegram.ChangeKind{faketelegram.CallMade, faketelegram.MessageSent, faketelegram.CallMade, faketelegram.MessageEdited}
	if !cmp.Equal(kinds, want) {
		t.Errorf("changes %v, want %v", kinds, want)
	}
	if calls := s.Calls("editMessageText"); len(calls) != 1 || calls[0].Params["text"] != "second" {
		t.Errorf("calls %v", calls)
	}
}

// BenchmarkEdits is the cost of one edit in one of a thousand chats, client included.
func BenchmarkEdits(b *testing.B) {
	s := faketelegram.New(faketelegram.WithoutHistory())
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for i := range int64(1000) {
		s.Open(faketelegram.Room{ID: i + 1})
		if _, err := try(s, "sendMessage", params{"chat_id": fmt.Sprint(i + 1), "text": "x"}); err != nil {
			b.Fatal(err)
		}
	}
	text := "<b>word</b> " + strings.Repeat("word ", 100)
	for n := 0; b.Loop(); n++ {
		id := fmt.Sprint(n%1000 + 1)
		a, err := try(s, "editMessageText", params{"chat_id": id, "message_id": id, "text": fmt.Sprint(text, n), "parse_mode": "HTML"})
		if err != nil || !a.OK {
			b.Fatal(a, err)
		}
	}
}
