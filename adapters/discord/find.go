package discord

import (
	"context"
	"fmt"
	"time"

	"parley/gateway/chat"
)

// nonceLife is how long Discord surely remembers a nonce; it promises "the past few
// minutes".
const nonceLife = 2 * time.Minute

// Find implements chat.Finder. Discord keeps nonces for minutes only and does not show
// them, but a message that is sent again under the same one is not made again, also if
// the first request arrives after the second: so within that time nothing has to be
// found. What was tried longer ago cannot be told (ErrAmbiguous).
func (a *Adapter) Find(_ context.Context, _ chat.Address, at chat.Attempt) (chat.MessageID, bool, error) {
	if age := a.now().Sub(at.First); age > nonceLife {
		return "", false, fmt.Errorf("%w: it was tried %s ago", chat.ErrAmbiguous, age.Round(time.Second))
	}
	return "", false, nil
}
