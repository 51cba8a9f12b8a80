package discord

import (
	"time"
	"unicode/utf8"

	"parley/gateway/chat"
)

// Discord's limits (https://docs.discord.com/developers/resources/message).
const (
	textLimit    = 2000 // code points of the markup, not of what it shows
	buttonData   = 100  // characters of custom_id
	buttonLabel  = 80
	nonceLimit   = 25
	threadName   = 100
	filesLimit   = 10
	fileIn       = 25 << 20
	fileOut      = 10 << 20
	commandLimit = 100
	// firstAnswer is how long an interaction waits for its first answer, tokenLife how
	// long its token is good. Both leave room for the way there.
	firstAnswer = 2500 * time.Millisecond
	tokenLife   = 14*time.Minute + 30*time.Second
)

var limits = chat.Limits{
	Text:             textLimit,
	Measure:          measure,
	EditInterval:     time.Second,
	AccountPerSecond: 50,
	ButtonsPerRow:    5,
	Buttons:          25,
	FileIn:           fileIn,
	FileOut:          fileOut,
	TypingTTL:        10 * time.Second,
	SingleIntake:     true,
}

// measure is what Discord counts: code points of the text with its markup.
func measure(commonMark string) int { return utf8.RuneCountInString(render(commonMark)) }
