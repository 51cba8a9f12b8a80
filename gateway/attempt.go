package gateway

import (
	"context"
	"errors"
	"time"

	"parley/gateway/chat"
	"parley/store/record"
)

// resolveUnknown deals with a creation that may have happened: found by its key, or,
// where nobody can tell, shown once more with a mark.
func (p *poster) resolveUnknown(ctx context.Context, j *job) (done bool, err error) {
	if j.d.State != record.DeliveryUnknown && j.d.State != record.DeliverySending {
		return false, nil
	}
	if f, ok := p.deps.adapter.(chat.Finder); ok {
		switch id, found, err := f.Find(ctx, j.d.Address, j.attempt(p.deps.now())); {
		case errors.Is(err, chat.ErrAmbiguous): // the platform cannot tell any more
		case err != nil:
			return false, err
		case found:
			j.d.Message = id
			return true, p.edit(ctx, j)
		default:
			return false, nil
		}
	}
	if j.d.Attempts >= unknownTries {
		return true, p.finish(ctx, j, record.DeliveryFailed, chat.ErrAmbiguous)
	}
	j.d.Marked = true
	return false, nil
}

// attempt is what is known of the creations so far. Of those of an earlier process the
// row tells, in the database's time, which may be ahead of ours.
func (j *job) attempt(now time.Time) chat.Attempt {
	if j.first.IsZero() {
		if j.last = j.d.UpdatedAt; j.last.After(now) {
			j.last = now
		}
		if j.first = j.last; j.d.Attempts > 1 && j.d.CreatedAt.Before(now) {
			j.first = j.d.CreatedAt
		}
	}
	return chat.Attempt{Key: j.d.Out.Key, First: j.first, Last: j.last}
}

// notSent takes a creation back that certainly did not happen.
func (j *job) notSent() {
	j.d.State = record.DeliveryPending
	if j.d.Attempts--; j.d.Attempts == 0 {
		j.first, j.last = time.Time{}, time.Time{}
	}
}
