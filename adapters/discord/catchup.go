package discord

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// Heard tells what of an account is stored, so that what was said while parley was
// not connected can be fetched. It is the store, as this adapter sees it.
type Heard interface {
	// Heard returns the messages that were stored last, in any order, and the chats
	// that the account talks in, the latest first.
	Heard(ctx context.Context, account chat.AccountID) (newest []chat.MessageID, chats []chat.ChatID, err error)
}

const (
	// pastLimit is how old a message may be that is still answered.
	pastLimit = 24 * time.Hour
	// overlap is fetched once more, since channels do not keep each other's order.
	overlap = time.Minute
	// pageSize and pages bound what is fetched of one channel.
	pageSize, pages = 100, 10
	// patience is how often a channel is asked again that gives no answer.
	patience = 5
)

// epoch is the first millisecond of 2015, from which Discord's ids count.
const epoch = 1420070400000

// snowflake is the first id of a moment.
func snowflake(t time.Time) string {
	return strconv.FormatInt(max(0, t.UnixMilli()-epoch)<<22, 10)
}

// madeAt is the moment inside an id; zero if it is none.
func madeAt(id string) time.Time {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n>>22 + epoch)
}

// later compares two ids.
func later(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

// reread fetches and stores, in order, what was said since the last message that is
// stored, or since the start if nothing ever was: after a restart, a session that was
// lost, or events that were dropped.
func (in *intake) reread(ctx context.Context) {
	if in.a.heard == nil {
		return
	}
	var newest []chat.MessageID
	var chats []chat.ChatID
	for try := 0; ctx.Err() == nil; try++ {
		var err error
		if newest, chats, err = in.a.heard.Heard(ctx, in.a.account); err == nil {
			break
		}
		in.a.log.Warn("what was heard last cannot be read", zap.Error(err))
		wait(ctx, in.a.heal<<min(try, 5), nil)
	}
	in.since = since(newest, in.began, in.a.now())
	all := in.a.places.all()
	for _, id := range append(chats, in.directs(ctx)...) {
		if _, ok := in.a.places.known(string(id)); !ok && !slices.ContainsFunc(all, func(c channel) bool { return c.ID == string(id) }) {
			all = append(all, channel{ID: string(id)})
		}
	}
	in.fetchAll(ctx, all)
}

// directs are the direct chats of the people whom the configuration names: somebody
// may have written for the first time, and Discord lists a bot's direct chats to
// nobody.
func (in *intake) directs(ctx context.Context) []chat.ChatID {
	var ids []chat.ChatID
	for _, p := range in.a.people {
		_, id, _ := strings.Cut(string(p), ":")
		c, err := call[channel](ctx, in.a.api, http.MethodPost, "/users/@me/channels", map[string]string{"recipient_id": id})
		if err != nil {
			in.a.log.Debug("a direct chat cannot be opened", zap.String("person", string(p)), zap.Error(err))
			continue
		}
		ids = append(ids, chat.ChatID(c.ID))
	}
	return ids
}

// since is the id from which messages may have been missed.
func since(newest []chat.MessageID, began, now time.Time) string {
	last := ""
	for _, id := range newest {
		if !madeAt(string(id)).IsZero() && later(string(id), last) {
			last = string(id)
		}
	}
	at := began
	if last != "" {
		at = madeAt(last)
	}
	at = at.Add(-overlap)
	if oldest := now.Add(-pastLimit); at.Before(oldest) {
		at = oldest
	}
	return snowflake(at)
}

// all are the channels that are known.
func (p *places) all() []channel {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]channel, 0, len(p.channels))
	for _, c := range p.channels {
		out = append(out, c)
	}
	return out
}

// fetchAll stores what channels have since in.since, oldest first over all of them,
// so that the newest stored message always says what is missing.
func (in *intake) fetchAll(ctx context.Context, channels []channel) {
	var missed []message
	for _, c := range channels {
		if c.Guild != "" && !later(c.Last, in.since) {
			continue
		}
		missed = append(missed, in.fetch(ctx, c)...)
	}
	slices.SortFunc(missed, func(a, b message) int {
		return strings.Compare(fmt.Sprintf("%20s", a.ID), fmt.Sprintf("%20s", b.ID))
	})
	for _, m := range missed {
		if ctx.Err() != nil {
			return
		}
		if in.caught != nil {
			in.caught[m.ID] = true
		}
		if err := in.take(ctx, "MESSAGE_CREATE", m, false); err != nil {
			in.a.log.Warn("a message that was missed cannot be read", zap.Error(err))
		}
	}
}

// fetch reads what one channel has since in.since.
func (in *intake) fetch(ctx context.Context, c channel) []message {
	var out []message
	after, failed := in.since, 0
	for page := 0; page < pages && ctx.Err() == nil; {
		list, err := call[[]message](ctx, in.a.api, http.MethodGet, "/channels/"+c.ID+"/messages?limit="+strconv.Itoa(pageSize)+"&after="+after, nil)
		switch {
		case answered(err, http.StatusForbidden), answered(err, http.StatusNotFound):
			in.a.log.Debug("a channel's history cannot be read", zap.String("channel", c.ID), zap.Error(err))
			return out
		case err != nil && failed == patience:
			in.a.log.Error("what was missed cannot be fetched", zap.String("channel", c.ID), zap.Error(err))
			return out
		case err != nil:
			failed++
			in.a.log.Warn("what was missed cannot be fetched yet", zap.String("channel", c.ID), zap.Error(err))
			wait(ctx, in.a.heal<<5, err)
			continue
		}
		for _, m := range list {
			m.Guild = c.Guild
			out = append(out, m)
			if later(m.ID, after) {
				after = m.ID
			}
		}
		if len(list) < pageSize {
			return out
		}
		page++
	}
	in.a.log.Warn("more was missed than is fetched", zap.String("channel", c.ID), zap.Int("messages", len(out)))
	return out
}
