package telegram

import (
	"time"

	"parley/gateway/chat"
)

// The Bot API's limits (https://core.telegram.org/bots/api, /bots/faq).
const (
	textLimit    = 4096 // UTF-16 units after entity parsing
	markupFactor = 8    // markup may have so many bytes for each unit of textLimit
	callbackData = 64   // bytes
	fileIn       = 20 << 20
	fileOut      = 50 << 20
)

var limits = chat.Limits{
	Text:             textLimit,
	Measure:          measure,
	EditInterval:     time.Second,
	ChatPerMinute:    20,
	AccountPerSecond: 30,
	ButtonsPerRow:    8,
	Buttons:          100,
	FileIn:           fileIn,
	FileOut:          fileOut,
	TypingTTL:        5 * time.Second,
	DraftTTL:         30 * time.Second,
	SingleIntake:     true,
}

// measure is what Telegram counts: UTF-16 units of the text without markup. Markup
// beyond 32 KiB is refused too, so a text of little but markup counts for an eighth
// of its bytes (SPL-014).
func measure(commonMark string) int {
	html := render(commonMark)
	return max(visible(html), (len(html)+markupFactor-1)/markupFactor)
}
