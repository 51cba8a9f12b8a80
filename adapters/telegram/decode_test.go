package telegram

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"parley/config/secret"
	"parley/gateway/chat"
)

// adapter knows itself as @ThisBot, id 42.
func adapter(t *testing.T) *Adapter {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Token = secret.New("42:SECRET")
	a, err := New(cfg, Deps{Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	a.self = &tgbotapi.User{ID: 42, IsBot: true, UserName: "ThisBot"}
	return a
}

func event(t *testing.T, a *Adapter, body string) chat.Event {
	t.Helper()
	u, err := decode(json.RawMessage(`{"update_id":7,` + body + `}`))
	if err != nil {
		t.Fatal(err)
	}
	if u.ID != 7 {
		t.Fatalf("update id %d", u.ID)
	}
	return a.event(u)
}

const alice = `"from":{"id":5,"first_name":"Ali\nce","last_name":"B","language_code":"de"}`

func group(more string) string {
	return `"message":{"message_id":9,"date":100,"chat":{"id":-100,"type":"supergroup","title":"Room"},` + alice + `,` + more + `}`
}

func direct(more string) string {
	return `"message":{"message_id":9,"date":100,"chat":{"id":5,"type":"private"},` + alice + `,` + more + `}`
}

func TestDecodeDirectMessage(t *testing.T) {
	got := event(t, adapter(t), direct(`"text":"hi"`))
	want := chat.MessageReceived{
		Origin: chat.Origin{
			Key: "message/5/9", Address: chat.Address{Account: "telegram/main", Chat: "5"}, Kind: chat.Direct,
			From: chat.User{ID: "telegram:5", Name: "Ali ce B", Language: "de"}, At: time.Unix(100, 0), Message: "9",
		},
		Text: "hi", ForBot: true,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// CMD-001, CMD-004, MEN-001: whom a text in a group addresses. Offsets are UTF-16
// units.
func TestDecodeAddressing(t *testing.T) {
	for _, tc := range []struct {
		name, body, text string
		forBot, forOther bool
	}{
		{"nobody", `"text":"hi"`, "hi", false, false},
		{"own suffix", `"text":"/stop@ThisBot","entities":[{"type":"bot_command","offset":0,"length":13}]`, "/stop", true, false},
		{"own suffix, case", `"text":"/STOP@thisbot now","entities":[{"type":"bot_command","offset":0,"length":13}]`, "/STOP now", true, false},
		{"other bot", `"text":"/stop@OtherBot","entities":[{"type":"bot_command","offset":0,"length":14}]`, "/stop@OtherBot", false, true},
		{"bare command", `"text":"/stop","entities":[{"type":"bot_command","offset":0,"length":5}]`, "/stop", false, false},
		{"mention, then command", `"text":"@ThisBot /stop","entities":[{"type":"mention","offset":0,"length":8},{"type":"bot_command","offset":9,"length":5}]`, "/stop", true, false},
		{"mention behind emoji", `"text":"😀 hey @thisBOT do","entities":[{"type":"mention","offset":7,"length":8}]`, "😀 hey do", true, false},
		{"another's mention", `"text":"@alice hi","entities":[{"type":"mention","offset":0,"length":6}]`, "@alice hi", false, false},
		{"text mention", `"text":"Bot: hi","entities":[{"type":"text_mention","offset":0,"length":4,"user":{"id":42,"is_bot":true,"first_name":"x"}}]`, "hi", true, false},
		{"caption", `"caption":"@ThisBot look","caption_entities":[{"type":"mention","offset":0,"length":8}],"photo":[{"file_id":"p","width":1,"height":1}]`, "look", true, false},
		{"reply to the bot", `"text":"and?","reply_to_message":{"message_id":3,"date":1,"chat":{"id":-100,"type":"supergroup"},"from":{"id":42,"is_bot":true,"first_name":"x"},"text":"old"}`, "and?", true, false},
		{"reply to somebody", `"text":"and?","reply_to_message":{"message_id":3,"date":1,"chat":{"id":-100,"type":"supergroup"},"from":{"id":6,"first_name":"x"},"text":"@ThisBot"}`, "and?", false, false},
		{"entity out of range", `"text":"hi","entities":[{"type":"mention","offset":1,"length":90}]`, "hi", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := event(t, adapter(t), group(tc.body)).(chat.MessageReceived)
			if m.Text != tc.text || m.ForBot != tc.forBot || m.ForOther != tc.forOther {
				t.Errorf("got %q, for bot %v, for other %v", m.Text, m.ForBot, m.ForOther)
			}
			if m.Kind != chat.Group || m.Reply != "9" || m.Title != "Room" {
				t.Errorf("origin %+v", m.Origin)
			}
		})
	}
}

// TOP-003, TOP-004, TOP-005: only topics have a thread, and General has none.
func TestDecodeTopics(t *testing.T) {
	forum := `"message":{"message_id":9,"date":1,"chat":{"id":-100,"type":"supergroup","is_forum":true},` + alice + `,"text":"x",%s}`
	for _, tc := range []struct {
		name, body string
		thread     chat.ThreadID
		quoted     bool
	}{
		{"topic", fmt.Sprintf(forum, `"message_thread_id":77,"is_topic_message":true,"reply_to_message":{"message_id":77,"date":1,"chat":{"id":-100,"type":"supergroup"}}`), "77", false},
		{"reply in a topic", fmt.Sprintf(forum, `"message_thread_id":77,"is_topic_message":true,"reply_to_message":{"message_id":80,"date":1,"chat":{"id":-100,"type":"supergroup"},"text":"q"}`), "77", true},
		{"general", fmt.Sprintf(forum, `"message_thread_id":1`), "", false},
		{"reply in general", fmt.Sprintf(forum, `"message_thread_id":3054,"reply_to_message":{"message_id":3054,"date":1,"chat":{"id":-100,"type":"supergroup"},"text":"q"}`), "", true},
		{"reply chain in a group", group(`"text":"x","message_thread_id":55`), "", false},
		{"private topic", direct(`"text":"x","message_thread_id":12,"is_topic_message":true`), "12", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := event(t, adapter(t), tc.body).(chat.MessageReceived)
			if m.Address.Thread != tc.thread || (m.Quote != nil) != tc.quoted {
				t.Errorf("thread %q, quote %v", m.Address.Thread, m.Quote)
			}
		})
	}
}

// MEN-001: a partial quote is preferred to the whole text.
func TestDecodeQuote(t *testing.T) {
	reply := `"text":"and this?","reply_to_message":{"message_id":3,"date":1,"chat":{"id":5,"type":"private"},"from":{"id":42,"is_bot":true,"first_name":"Bot"},%s}`
	for body, want := range map[string]string{
		fmt.Sprintf(reply, `"text":"whole text"`):                                           "whole text",
		fmt.Sprintf(reply, `"caption":"a cat","photo":[]`):                                  "a cat",
		fmt.Sprintf(reply, `"text":"whole text"`) + `,"quote":{"text":"part","position":0}`: "part",
	} {
		m := event(t, adapter(t), direct(body)).(chat.MessageReceived)
		if m.Quote == nil || m.Quote.Text != want || !m.Quote.FromBot || m.Quote.Message != "3" {
			t.Errorf("quote %+v, want %q", m.Quote, want)
		}
	}
}

// MEN-008, MEN-011: an edit stays an edit, with the version in its key, and without
// text it is nothing.
func TestDecodeEdit(t *testing.T) {
	edit := strings.Replace(group(`"edit_date":160,"text":"@ThisBot new","entities":[{"type":"mention","offset":0,"length":8}]`), "message", "edited_message", 1)
	e, ok := event(t, adapter(t), edit).(chat.MessageEdited)
	if !ok || e.Text != "new" || !e.ForBot || !strings.HasPrefix(string(e.Key), "edit/-100/9/160/") || e.Message != "9" {
		t.Errorf("got %+v", e)
	}
	if again := event(t, adapter(t), edit); again.Meta().Key != e.Key {
		t.Errorf("the same edit has the keys %s and %s", e.Key, again.Meta().Key)
	}
	if next := event(t, adapter(t), strings.Replace(edit, "new", "newer", 1)); next.Meta().Key == e.Key {
		t.Errorf("two edits of one second have the key %s", e.Key)
	}
	photo := strings.Replace(direct(`"edit_date":160,"caption":"new","photo":[{"file_id":"p","width":1,"height":1}]`), "message", "edited_message", 1)
	if e, ok := event(t, adapter(t), photo).(chat.MessageEdited); !ok || e.Text != "new" {
		t.Errorf("an edited caption gives %+v", e)
	}
	if ev := event(t, adapter(t), strings.Replace(group(`"edit_date":160`), "message", "edited_message", 1)); ev != nil {
		t.Errorf("an edit without text gives %T", ev)
	}
}

func TestDecodeButton(t *testing.T) {
	p, ok := event(t, adapter(t), `"callback_query":{"id":"q1","from":{"id":6,"first_name":"Bob"},"data":"yes","chat_instance":"c",
		"message":{"message_id":9,"date":0,"message_thread_id":77,"is_topic_message":true,"chat":{"id":-100,"type":"supergroup"}}}`).(chat.ButtonPressed)
	if !ok || p.Key != "press/-100/9/q1" || p.From.ID != "telegram:6" || p.Data != "yes" || p.Ack != "q1" || p.Address.Thread != "77" || p.Message != "9" {
		t.Errorf("got %+v", p)
	}
}

func TestDecodeMigration(t *testing.T) {
	m, ok := event(t, adapter(t), group(`"migrate_to_chat_id":-1009`)).(chat.ChatMoved)
	if !ok || m.To != "-1009" || m.Address.Chat != "-100" {
		t.Errorf("got %+v", m)
	}
}

// ACC-002: ids that stand for several people.
func TestDecodeSharedSenders(t *testing.T) {
	at := `"message":{"message_id":9,"date":1,"chat":{"id":-100,"type":"supergroup"},"text":"x",%s}`
	for body, shared := range map[string]bool{
		`"from":{"id":1087968824,"is_bot":true,"first_name":"Group"},"sender_chat":{"id":-100,"type":"supergroup"}`: true,
		`"from":{"id":777000,"first_name":"Telegram"},"sender_chat":{"id":-200,"type":"channel"}`:                   true,
		`"from":{"id":136817688,"is_bot":true,"first_name":"Channel"},"sender_chat":{"id":-200,"type":"channel"}`:   true,
		`"sender_chat":{"id":-200,"type":"channel"}`:                                                                true,
		`"from":{"id":5,"first_name":"A"}`:                                                                          false,
	} {
		m := event(t, adapter(t), fmt.Sprintf(at, body)).(chat.MessageReceived)
		if m.From.Shared != shared {
			t.Errorf("%s: shared %v", body, m.From.Shared)
		}
	}
	m := event(t, adapter(t), fmt.Sprintf(at, `"from":{"id":8,"is_bot":true,"first_name":"Other"}`)).(chat.MessageReceived)
	if !m.From.Bot {
		t.Error("another bot is not marked")
	}
}

// MEN-012: service messages and updates without a sender are nothing.
func TestDecodeNothing(t *testing.T) {
	for _, body := range []string{
		group(`"new_chat_members":[{"id":7,"first_name":"x"}]`), group(`"left_chat_member":{"id":7,"first_name":"x"}`),
		group(`"pinned_message":{"message_id":3,"date":1,"chat":{"id":-100,"type":"supergroup"}}`),
		group(`"forum_topic_created":{"name":"x","icon_color":1}`), group(`"video_chat_started":{}`),
		`"message":{"message_id":9,"date":1,"chat":{"id":-100,"type":"supergroup"},"text":"x"}`,
		`"my_chat_member":{"date":1}`, `"channel_post":{"message_id":1,"date":1,"chat":{"id":-3,"type":"channel"},"text":"x"}`,
		`"poll":{"id":"1"}`,
	} {
		if ev := event(t, adapter(t), body); ev != nil {
			t.Errorf("%s gives %+v", body, ev)
		}
	}
}

// ATT-003, ATT-009, ATT-012: files keep their captions and albums.
func TestDecodeFiles(t *testing.T) {
	for _, tc := range []struct {
		body string
		want chat.File
	}{
		{`"photo":[{"file_id":"s","width":90,"height":90,"file_size":10},{"file_id":"l","width":900,"height":900,"file_size":99}]`, chat.File{ID: "l", Name: "photo.jpg", MIME: "image/jpeg", Size: 99}},
		{`"document":{"file_id":"d","file_name":"a/b\n.txt","mime_type":"text/plain","file_size":3}`, chat.File{ID: "d", Name: "a/b .txt", MIME: "text/plain", Size: 3}},
		{`"voice":{"file_id":"v","duration":1,"mime_type":"audio/ogg","file_size":3}`, chat.File{ID: "v", Name: "voice.ogg", MIME: "audio/ogg", Size: 3, Voice: true}},
		{`"video_note":{"file_id":"n","duration":1,"length":1}`, chat.File{ID: "n", Name: "video.mp4", MIME: "video/mp4"}},
	} {
		m := event(t, adapter(t), direct(`"media_group_id":"G","caption":"before",`+tc.body)).(chat.MessageReceived)
		if d := cmp.Diff([]chat.File{tc.want}, m.Files); d != "" || m.Text != "before" || m.Group != "G" {
			t.Errorf("%s: %s %q %q", tc.body, d, m.Text, m.Group)
		}
	}
}

// ATT-012: the caption that names the bot speaks for the parts of the album that
// follow, for as many albums as people send at a time.
func TestAlbumIsForTheBotAsAWhole(t *testing.T) {
	a := adapter(t)
	for i := range 40 {
		id := strconv.Itoa(i)
		if a.albumForBot("other"+id, false) || !a.albumForBot(id, true) || !a.albumForBot(id, false) {
			t.Errorf("album %d", i)
		}
	}
	if !a.albumForBot("39", false) || !a.albumForBot("8", false) || a.albumForBot("other39", false) {
		t.Error("the newest albums are not known, or too many")
	}
}

func TestDecodeDescriptions(t *testing.T) {
	for body, want := range map[string]string{
		`"sticker":{"file_id":"s","type":"regular","width":1,"height":1,"emoji":"👍"}`: "[sticker 👍]",
		`"location":{"latitude":1.5,"longitude":2}`:                                   "[location: 1.50000, 2.00000]",
		`"contact":{"phone_number":"+1","first_name":"Bo"}`:                           "[contact: Bo +1]",
		`"dice":{"emoji":"🎲","value":4}`:                                              "[dice 🎲: 4]",
		`"poll":{"id":"1","question":"Tea?","options":[]}`:                            "[poll: Tea?]",
	} {
		if m := event(t, adapter(t), direct(body)).(chat.MessageReceived); m.Text != want {
			t.Errorf("got %q, want %q", m.Text, want)
		}
	}
}

// CON-003: a text near the limit may have been split by the client; the limit is in
// UTF-16 units.
func TestDecodeAtLimit(t *testing.T) {
	for text, want := range map[string]bool{strings.Repeat("a", 3686): true, strings.Repeat("😀", 1843): true, strings.Repeat("a", 3685): false, strings.Repeat("ä", 2000): false} {
		if m := event(t, adapter(t), direct(`"text":"`+text+`"`)).(chat.MessageReceived); m.AtLimit != want {
			t.Errorf("%d bytes: %v", len(text), m.AtLimit)
		}
	}
}

// NUL bytes and lone surrogates arrive as escapes.
func TestDecodeBrokenText(t *testing.T) {
	m := event(t, adapter(t), direct(`"text":"a\ud83dz\u0000b"`)).(chat.MessageReceived)
	if m.Text != "a\uFFFDzb" {
		t.Errorf("got %q", m.Text)
	}
}

// TestUnreadableUpdates: what cannot be read is an error with the update's id, so that
// the offset moves past it.
func TestUnreadableUpdates(t *testing.T) {
	a := adapter(t)
	for _, body := range []string{
		`"message":{"message_id":1,"from":{"id":1},"text":"in no chat"}`,
		`"edited_message":{"message_id":1,"from":{"id":1},"text":"in no chat"}`,
		`"message":{"message_id":"one","chat":{"id":1}}`,
		`"message":{"message_id":1,"chat":"nowhere"}`,
	} {
		if id, ev, err := a.read(json.RawMessage(`{"update_id":7,` + body + `}`)); id != 7 || ev != nil || err == nil {
			t.Errorf("%s: id %d, event %v, error %v", body, id, ev, err)
		}
	}
	// An adapter that is not there stands for whatever may panic.
	if id, _, err := (*Adapter)(nil).read(json.RawMessage(`{"update_id":7,"message":{"message_id":1,"chat":{"id":1},"from":{"id":1},"text":"a"}}`)); id != 7 || err == nil {
		t.Errorf("a panic: id %d, error %v", id, err)
	}
}

// FuzzUpdate: no update can be so odd that it makes the adapter panic.
func FuzzUpdate(f *testing.F) {
	for _, body := range []string{
		`"message":{"message_id":1,"chat":{"id":1,"type":"private"},"from":{"id":1},"text":"/stop@ThisBot","entities":[{"type":"bot_command","offset":-1,"length":99}]}`,
		`"message":{"message_id":1,"chat":{"id":1},"from":{"id":1},"photo":[{}],"caption":"a","reply_to_message":{"message_id":2},"quote":{}}`,
		`"edited_message":{"message_id":1,"chat":{"id":1},"from":{"id":1},"text":"\ud83d"}`,
		`"callback_query":{"id":"1","from":{"id":1},"message":{"message_id":1,"chat":{"id":1}},"data":"a"}`,
		`"callback_query":{"id":"1","message":{}}`,
		`"message":{}`,
	} {
		f.Add([]byte(`{"update_id":7,` + body + `}`))
	}
	cfg := DefaultConfig()
	cfg.Token = secret.New("42:SECRET")
	a, err := New(cfg, Deps{Log: zap.NewNop()})
	if err != nil {
		f.Fatal(err)
	}
	a.self = &tgbotapi.User{ID: 42, IsBot: true, UserName: "ThisBot"}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if u, err := decode(raw); err == nil {
			a.event(u)
		}
	})
}
