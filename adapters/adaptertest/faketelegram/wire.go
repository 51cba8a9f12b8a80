package faketelegram

import "unicode/utf16"

// User is a person or a bot as the API shows it. A user with an ID alone gets a
// name when something is sent.
type User struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name,omitempty"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

func (u User) named() User {
	if u.FirstName == "" {
		u.FirstName = "Somebody"
	}
	return u
}

// units is how many UTF-16 units a character takes.
func units(r rune) int {
	if n := utf16.RuneLen(r); n > 0 {
		return n
	}
	return 1 // what is no character is replaced by one unit
}

// length is the length of a text in UTF-16 units.
func length(s string) int {
	n := 0
	for _, r := range s {
		n += units(r)
	}
	return n
}

// wireBot is the answer to getMe.
type wireBot struct {
	User
	JoinGroups    bool `json:"can_join_groups"`
	ReadAll       bool `json:"can_read_all_group_messages"`
	InlineQueries bool `json:"supports_inline_queries"`
	Topics        bool `json:"has_topics_enabled"`
}

type wireChat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	Forum     bool   `json:"is_forum,omitempty"`
}

// wireChatFull is the answer to getChat.
type wireChatFull struct {
	wireChat
	AccentColor  int      `json:"accent_color_id"`
	MaxReactions int      `json:"max_reaction_count"`
	GiftTypes    struct{} `json:"accepted_gift_types"`
}

type wireMessage struct {
	ID              int64         `json:"message_id"`
	Thread          int64         `json:"message_thread_id,omitempty"`
	Topic           bool          `json:"is_topic_message,omitempty"`
	From            *User         `json:"from,omitempty"`
	Date            int64         `json:"date"`
	Chat            wireChat      `json:"chat"`
	ReplyTo         *wireMessage  `json:"reply_to_message,omitempty"`
	Quote           *wireQuote    `json:"quote,omitempty"`
	EditDate        int64         `json:"edit_date,omitempty"`
	Album           string        `json:"media_group_id,omitempty"`
	Text            string        `json:"text,omitempty"`
	Entities        []Entity      `json:"entities,omitempty"`
	Document        *wireFile     `json:"document,omitempty"`
	Voice           *wireFile     `json:"voice,omitempty"`
	Photo           []wireFile    `json:"photo,omitempty"`
	Caption         string        `json:"caption,omitempty"`
	CaptionEntities []Entity      `json:"caption_entities,omitempty"`
	Markup          *wireKeyboard `json:"reply_markup,omitempty"`
}

type wireQuote struct {
	Text     string `json:"text"`
	Position int    `json:"position"`
	Manual   bool   `json:"is_manual,omitempty"`
}

type wireKeyboard struct {
	Rows [][]Button `json:"inline_keyboard"`
}

// wireFile is a document, a voice message, a size of a photo or the answer to
// getFile; what does not apply is left out.
type wireFile struct {
	ID       string `json:"file_id"`
	UniqueID string `json:"file_unique_id"`
	Size     int64  `json:"file_size,omitempty"`
	Name     string `json:"file_name,omitempty"`
	MIME     string `json:"mime_type,omitempty"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
	Duration int    `json:"duration,omitempty"`
	Path     string `json:"file_path,omitempty"`
}
