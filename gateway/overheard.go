package gateway

import (
	"context"

	"parley/agentcore"
	"parley/gateway/chat"
)

// overheardMost is how many messages of others are read back at the first mention.
const overheardMost = 20

// overheard implements agentcore.Overheard for one turn.
type overheard struct {
	from chat.HistoryReader
	at   chat.Address
}

var _ agentcore.Overheard = overheard{}

// Before reads in the turn's own goroutine, within noteLimit: an answer is worth more
// than what was said before the question.
func (o overheard) Before(ctx context.Context, m chat.MessageID) ([]chat.Quote, error) {
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	said, err := o.from.History(ctx, o.at, m, overheardMost)
	return said[max(0, len(said)-overheardMost):], err
}
