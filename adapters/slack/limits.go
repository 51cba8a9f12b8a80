package slack

import (
	"time"
	"unicode/utf8"

	"parley/gateway/chat"
)

// Slack's limits (https://docs.slack.dev/reference/block-kit/blocks, …/methods,
// …/apis/web-api/rate-limits); lengths are in characters.
const (
	textLimit    = 12000 // of all markdown blocks of a message, and of a stream's calls
	blocksLimit  = 13200 // of all blocks, as people have found (msg_blocks_too_long)
	noticeLimit  = 3000  // of `text` beside blocks; chat.update takes 4,000 (SPL-004)
	sectionLimit = 3000
	splitFrom    = 4000 // the client divides what is longer
	labelLimit   = 75
	valueLimit   = 2000
	actionsLimit = 25
	promptsLimit = 4
	titleLimit   = 200
	fileIn       = 100 << 20
	fileOut      = 1 << 30
	statusTTL    = 2 * time.Minute
	historyPage  = 200
	historyPages = 10
	defaultRetry = 5 * time.Second // where Slack does not say how long to wait
	editInterval = 1500 * time.Millisecond
	editsPerMin  = 50 // chat.update is Tier 3; chat.postMessage counts by channel
)

var limits = chat.Limits{
	Text:           textLimit,
	Measure:        measure,
	EditInterval:   editInterval,
	EditsPerMinute: editsPerMin,
	ButtonsPerRow:  5,
	Buttons:        100,
	FileIn:         fileIn,
	FileOut:        fileOut,
	TypingTTL:      statusTTL,
}

// measure is what Slack counts of a markdown block.
func measure(commonMark string) int { return length(inert(commonMark)) }

func length(s string) int { return utf8.RuneCountInString(s) }
