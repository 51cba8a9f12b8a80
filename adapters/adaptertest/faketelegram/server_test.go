package faketelegram_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/adapters/adaptertest/faketelegram"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = faketelegram.User{ID: 7, FirstName: "Ann", Username: "ann"}

// params are the parameters of a call.
type params map[string]string

// answer is the envelope that the server answers with.
type answer struct {
	OK          bool
	Result      json.RawMessage
	Code        int `json:"error_code"`
	Description string
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	}
}

// start makes a server with an open private chat with ann.
func start(t *testing.T, opts ...faketelegram.Option) *faketelegram.Server {
	t.Helper()
	s := faketelegram.New(opts...)
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	s.Open(faketelegram.Room{ID: ann.ID})
	return s
}

// try makes a form-encoded call; err is a failure of the connection.
func try(s *faketelegram.Server, method string, p params) (answer, error) {
	form := url.Values{}
	for k, v := range p {
		form.Set(k, v)
	}
	resp, err := http.PostForm(s.URL()+"/bot"+s.Token()+"/"+method, form)
	if err != nil {
		return answer{}, err
	}
	return read(resp)
}

func read(resp *http.Response) (answer, error) {
	defer resp.Body.Close()
	var a answer
	err := json.NewDecoder(resp.Body).Decode(&a)
	if err == nil && !a.OK && resp.StatusCode != a.Code {
		err = errors.New("status " + resp.Status + " does not fit the error_code")
	}
	return a, err
}

func call(t *testing.T, s *faketelegram.Server, method string, p params) answer {
	t.Helper()
	a, err := try(s, method, p)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return a
}

// send posts a text to ann's chat and returns its id.
func send(t *testing.T, s *faketelegram.Server, p params) string {
	t.Helper()
	a := call(t, s, "sendMessage", p)
	var m struct {
		ID json.Number `json:"message_id"`
	}
	if err := json.Unmarshal(a.Result, &m); err != nil || !a.OK {
		t.Fatalf("sendMessage(%v): %+v, %v", p, a, err)
	}
	return m.ID.String()
}

func TestTokens(t *testing.T) {
	s := start(t)
	for path, want := range map[string]string{
		"/bot" + s.Token() + "/getMe":         "",
		"/bot4200000042:wrong/getMe":          "Unauthorized",
		"/botnonsense/getMe":                  "Not Found",
		"/" + s.Token() + "/getMe":            "Not Found",
		"/bot" + s.Token() + "/noSuch":        "Not Found: method not found",
		"/file/bot4200000042:wrong/x/y":       "Unauthorized",
		"/file/bot" + s.Token() + "/none.txt": "Not Found",
	} {
		resp, err := http.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := read(resp); err != nil || a.Description != want {
			t.Errorf("%s: %+v, %v; want %q", path, a, err, want)
		}
	}
}

func TestBodies(t *testing.T) {
	s := start(t)
	var multi bytes.Buffer
	mw := multipart.NewWriter(&multi)
	_ = mw.WriteField("chat_id", "7")
	_ = mw.WriteField("text", "multipart")
	mw.Close()
	for kind, body := range map[string]io.Reader{
		"application/x-www-form-urlencoded": strings.NewReader("chat_id=7&text=form"),
		"application/json":                  strings.NewReader(`{"chat_id":7,"text":"json","disable_notification":true,"link_preview_options":{"is_disabled":true}}`),
		mw.FormDataContentType():            &multi,
	} {
		resp, err := http.Post(s.URL()+"/bot"+s.Token()+"/sendMessage", kind, body)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := read(resp); err != nil || !a.OK {
			t.Errorf("%s: %+v, %v", kind, a, err)
		}
	}
	if n := len(s.Chat(7).Messages()); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
	if v := s.Violations(); len(v) > 0 {
		t.Errorf("violations: %v", v)
	}
}

// TestRefusals holds the answers to the real server's words (STR-003, SPL-006,
// MKD-003, ATT-007, TOP-004).
func TestRefusals(t *testing.T) {
	s := start(t)
	s.Open(faketelegram.Room{ID: -1000000000001, Forum: true, Topics: []int64{5}})
	text := send(t, s, params{"chat_id": "7", "text": "old"})
	_, theirs := s.Send(7, ann, "mine")
	long := strings.Repeat("😀", 2049)
	row := func(button string) string { return `{"inline_keyboard":[[` + button + `]]}` }
	for _, c := range []struct {
		method string
		p      params
		want   string
	}{
		{"sendMessage", params{"text": "x"}, "chat_id is empty"},
		{"sendMessage", params{"chat_id": "8", "text": "x"}, "chat not found"},
		{"sendMessage", params{"chat_id": "@nobody", "text": "x"}, "chat not found"},
		{"sendMessage", params{"chat_id": "7"}, "message text is empty"},
		{"sendMessage", params{"chat_id": "7", "text": " \n "}, "text must be non-empty"},
		{"sendMessage", params{"chat_id": "7", "text": "<b></b>", "parse_mode": "HTML"}, "text must be non-empty"},
		{"sendMessage", params{"chat_id": "7", "text": long}, "message is too long"},
		{"sendMessage", params{"chat_id": "7", "text": "<h1>x</h1>", "parse_mode": "HTML"}, `can't parse entities: Unsupported start tag "h1" at byte offset 0`},
		{"sendMessage", params{"chat_id": "7", "text": "<b>x", "parse_mode": "HTML"}, `can't parse entities: Can't find end tag corresponding to start tag "b"`},
		{"sendMessage", params{"chat_id": "7", "text": "<b><i>x</b></i>", "parse_mode": "HTML"}, `can't parse entities: Unmatched end tag at byte offset 7, expected "</i>", found "</b>"`},
		{"sendMessage", params{"chat_id": "7", "text": "a\xff"}, "strings must be encoded in UTF-8"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "message_thread_id": "9"}, "message thread not found"},
		{"sendMessage", params{"chat_id": "-1000000000001", "text": "x", "message_thread_id": "1"}, "message thread not found"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "message_thread_id": "nine"}, `parameter "message_thread_id" must be of type Integer`},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_parameters": `{"message_id":99}`}, "message to be replied not found"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_parameters": `{}`}, `can't parse reply parameters: Can't find field "message_id"`},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_parameters": `{"message_id":` + text + `,"quote":"new"}`}, "QUOTE_TEXT_INVALID"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_markup": `{"inline`}, "can't parse reply keyboard markup JSON object"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_markup": row(`{"text":"a"}`)}, "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_markup": row(`{"text":"a","callback_data":"` + strings.Repeat("ü", 33) + `"}`)}, "BUTTON_DATA_INVALID"},
		{"sendMessage", params{"chat_id": "7", "text": "x", "reply_markup": row(`{"text":1,"callback_data":"a"}`)}, `can't parse reply keyboard markup: Field "text" must be of type String`},
		{"editMessageText", params{"chat_id": "7", "message_id": text, "text": "old"}, "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
		{"editMessageText", params{"chat_id": "7", "message_id": text, "text": " old\n"}, "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
		{"editMessageText", params{"chat_id": "7", "message_id": "999", "text": "x"}, "message to edit not found"},
		{"editMessageText", params{"chat_id": "7", "message_id": jsonText(theirs), "text": "x"}, "message can't be edited"},
		{"editMessageText", params{"chat_id": "7", "text": "x"}, "message identifier is not specified"},
		{"deleteMessage", params{"chat_id": "7", "message_id": "999"}, "message to delete not found"},
		{"setMessageReaction", params{"chat_id": "7", "message_id": text, "reaction": `[{"type":"emoji","emoji":"🙃"}]`}, "REACTION_INVALID"},
		{"sendChatAction", params{"chat_id": "7", "action": "thinking"}, "wrong parameter action in request"},
		{"answerCallbackQuery", params{"callback_query_id": "1"}, "query is too old and response timeout expired or query ID is invalid"},
		{"setMyCommands", params{"commands": `[{"command":"Big","description":"x"}]`}, "BOT_COMMAND_INVALID"},
		{"getFile", params{"file_id": "none"}, "invalid file_id"},
	} {
		a := call(t, s, c.method, c.p)
		if want := "Bad Request: " + c.want; a.Code != http.StatusBadRequest || a.Description != want {
			t.Errorf("%s(%v): %d %q, want %q", c.method, c.p, a.Code, a.Description, want)
		}
	}
	if got := s.Chat(7).Texts(); !cmp.Equal(got, []string{"old"}) {
		t.Errorf("texts %q", got)
	}
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func TestViolations(t *testing.T) {
	s := start(t)
	send(t, s, params{"chat_id": "7", "text": "x", "disable_web_page_preview": "true",
		"reply_markup": `{"inline_keyboard":[[{"text":"a","callback_data":"b","colour":"red"}]]}`})
	call(t, s, "getUpdates", params{"allowed_updates": "message,callback_query"}) // CFG-002
	got := map[string]bool{}
	for _, v := range s.Violations() {
		got[v.Method+" "+v.Parameter] = true
	}
	want := map[string]bool{"sendMessage disable_web_page_preview": true,
		"sendMessage reply_markup.inline_keyboard.colour": true, "getUpdates allowed_updates": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got)\n%s", diff)
	}
}

func TestUnreachableChats(t *testing.T) {
	s := start(t)
	s.Block(7, ann)
	if a := call(t, s, "sendMessage", params{"chat_id": "7", "text": "x"}); a.Code != 403 || a.Description != "Forbidden: bot was blocked by the user" {
		t.Errorf("blocked: %+v", a)
	}
	s.Unblock(7, ann)
	send(t, s, params{"chat_id": "7", "text": "x"})

	s.Send(-5, ann, "hello")
	s.Migrate(-5, -1000000000005, ann)
	a := call(t, s, "sendMessage", params{"chat_id": "-5", "text": "x"})
	if a.Code != 400 || a.Parameters.MigrateTo != -1000000000005 {
		t.Errorf("migrated: %+v", a)
	}
	send(t, s, params{"chat_id": "-1000000000005", "text": "x"})
}
