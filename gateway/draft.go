package gateway

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// draftFor is how long an answer is shown as a draft. A draft has no buttons: who
// still waits then gets a message with the stop button below it.
const draftFor = 30 * time.Second

// draft is the part of a live message that is still growing while it is shown
// without a message. It has no row: it is never the answer, and the platform forgets
// it when a message follows, or by itself.
type draft struct {
	look  string    // what it shows; empty: nothing is on show
	since time.Time // the first of this turn; zero: there was none
	renew time.Time // when it has to be shown again
	over  bool      // the rest of the turn is shown by messages and edits
}

// wait is how long a draft that is on show can be left alone.
func (d draft) wait(now time.Time) time.Duration {
	if d.look == "" {
		return time.Hour
	}
	return max(0, min(d.renew.Sub(now), d.since.Add(draftFor).Sub(now)))
}

// drafting says whether the last part of a picture is shown as a draft: in direct
// chats, where the platform has drafts, as long as there is nothing to see but the
// answer, and not for too long. Once it is not, it is not for the rest of the turn.
func (p *poster) drafting(lp *livePost, pic picture, now time.Time) bool {
	_, ok := p.deps.adapter.(chat.Drafter)
	if !ok || !p.deps.drafts || p.conv.Kind != chat.Direct {
		return false
	}
	d := &lp.draft
	d.over = d.over || len(pic.progress) > 0 || !d.since.IsZero() && now.Sub(d.since) >= draftFor
	return !d.over
}

// showDraft shows the last part as a draft. After an error the rest of the turn is
// shown by messages and edits: nothing was lost, and nothing has to be undone.
func (p *poster) showDraft(ctx context.Context, lp *livePost, out chat.Outgoing, now time.Time) error {
	out.Buttons = nil
	if lp.draft.look == look(out) && now.Before(lp.draft.renew) {
		return nil
	}
	cctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	p.mu.Lock()
	p.inCall = cancel
	p.mu.Unlock()
	var err error
	apart(func() { err = p.deps.adapter.(chat.Drafter).Draft(cctx, lp.turn.Address, p.draftID(), out) })
	if err != nil {
		lp.draft.over, lp.draft.look = true, ""
		p.log.Debug("no draft can be shown; the answer is shown by edits", zap.Error(err))
		if limited, ok := errors.AsType[*chat.RateLimitError](err); ok {
			p.deps.limiter.pause(lp.turn.Address.Chat, limited, p.deps.now())
		}
		return err
	}
	lp.draft.look, lp.draft.renew = look(out), now.Add(cmp.Or(p.deps.adapter.Limits().DraftTTL*4/5, time.Hour))
	if lp.draft.since.IsZero() {
		lp.draft.since = now
	}
	return nil
}

// draftID is the same for all drafts of a conversation, so that a later one replaces
// what a turn that ended without a word has left.
func (p *poster) draftID() int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.conv.ID)) // cannot fail
	return int64(h.Sum32()>>1) + 1
}
