package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/gateway/markdown"
	"parley/store/record"
)

// freezeLimit is how long the end of a turn waits for an interim edit before it is
// cut off. The creation of a part is waited for: cut off, nobody would know whether
// people see it, and the answer would have to be shown once more.
const freezeLimit = 500 * time.Millisecond

// livePost is a turn's live message as the platform has it: one row a part. The
// poster's goroutine is its only writer until it is frozen.
type livePost struct {
	turn    record.Turn
	src     *live
	parts   []record.Delivery
	shown   []string // what each part was last made to show
	version int
	frozen  bool
	held    bool // its turn was cancelled: it stays where it is, as it is, until the end
	covered bool // a person's words stand below it: it is to be buried
	calling bool
	failed  int  // interim failures in a row: each doubles the wait
	marked  bool // an earlier process may have posted a part that nobody knows
	// buried parts have something else standing below them: the message goes on in
	// a new one, and they are removed once it is there. Its round tells its keys
	// from theirs: a platform that knows a key would hand out the buried message.
	buried []record.Delivery
	round  string
	after  time.Time
	draft  draft
}

// begin starts the live message of a turn. posted is what an earlier process had posted
// for it: live parts, cards, files. Rows do not tell which of them stands below the
// other, so that live parts beside anything else are taken for buried.
func (p *poster) begin(t record.Turn, src *live, posted []record.Delivery) {
	lp := &livePost{turn: t, src: src, version: -1}
	below := false
	p.mu.Lock()
	for _, d := range posted {
		if d.Message == "" {
			d.Message, _ = p.ended.message(d.ID) // its row could not be written
		}
		switch {
		case d.Kind != record.DeliverLive:
			below = below || d.Message != ""
		case d.Message != "":
			if n := len(lp.parts); n > 0 && d.Part <= lp.parts[n-1].Part {
				lp.bury() // of the round before, and not removed yet
			}
			lp.parts = append(lp.parts, d)
			lp.shown = append(lp.shown, "")
		case d.State == record.DeliverySending || d.State == record.DeliveryUnknown:
			lp.marked = true
			lp.buried = append(lp.buried, d) // its row is closed with the others
		}
	}
	if below {
		lp.bury()
	}
	p.live = lp
	p.mu.Unlock()
	p.ring()
}

// freeze ends the live message and returns its parts: no interim call is under
// way afterwards, and none follows. Where the platform takes no more edits for a while,
// the answer goes below it in a new message, at once.
func (p *poster) freeze() frozen {
	p.mu.Lock()
	defer p.mu.Unlock()
	lp := p.live
	if lp == nil {
		return frozen{}
	}
	lp.frozen = true
	cut := time.AfterFunc(freezeLimit, func() {
		p.mu.Lock()
		if p.inCall != nil {
			p.inCall()
		}
		p.mu.Unlock()
	})
	defer cut.Stop()
	for lp.calling {
		p.calls.Wait()
	}
	lp.uncover()
	p.live = nil
	if !lp.held && !p.deps.limiter.ending(len(lp.parts), p.deps.now()) {
		lp.bury()
	}
	return frozen{parts: lp.parts, buried: lp.buried, marked: lp.marked, round: lp.round, drafted: !lp.draft.since.IsZero()}
}

// frozen is a live message at the end of its turn.
type frozen struct {
	parts, buried []record.Delivery
	marked        bool
	drafted       bool // something of it was visible without a message
	round         string
}

// thaw goes on with a live message whose turn did not end after all.
func (p *poster) thaw(t record.Turn, src *live, f frozen) {
	p.begin(t, src, f.parts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live.buried, p.live.marked, p.live.round = f.buried, f.marked, f.round
}

// hold is called when the turn is cancelled: what was said of that goes below what
// people saw of the turn, so that nothing of it may appear any more.
func (p *poster) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil {
		p.live.held = true
	}
}

// cover is called when the turn has taken in what a person said below its message: what
// comes of that is read below it too. The poster's goroutine buries the message.
func (p *poster) cover() {
	p.mu.Lock()
	if p.live != nil {
		p.live.covered = true
	}
	p.mu.Unlock()
	p.ring()
}

// bury is called after something else was posted.
func (p *poster) bury() {
	p.mu.Lock()
	defer p.mu.Unlock()
	lp := p.live
	if lp != nil && lp.draft.look != "" {
		lp.draft.look, lp.version = "", -1 // the message ended it
	}
	if lp != nil && !lp.held {
		lp.bury()
	}
}

// uncover makes the message go on below what covers it.
func (lp *livePost) uncover() {
	if lp.covered && !lp.held {
		lp.bury()
	}
	lp.covered = false
}

func (lp *livePost) bury() {
	if len(lp.parts) > 0 {
		lp.buried = append(lp.buried, lp.parts...)
		lp.parts, lp.shown, lp.version = nil, nil, -1
		lp.round = record.NewID()
	}
}

// showLive brings the live message up to date if it is time to, and returns how
// long nothing is due.
func (p *poster) showLive(ctx context.Context, now time.Time) time.Duration {
	lp, wait := p.startInterim(now)
	if lp == nil {
		return wait
	}
	defer p.endInterim(lp)
	// Asked before the layout, which reads the whole text: tokens come far more often
	// than edits may.
	w := lp.after.Sub(now)
	if w <= 0 {
		w = p.deps.limiter.interim(lp.turn.Address.Chat, now, len(lp.parts) == 0 && lp.draft.since.IsZero())
	}
	if w > 0 {
		lp.src.rest()
		return w
	}
	pic := lp.src.show()
	outs := p.layOut(lp, pic)
	for i, out := range outs {
		if i == len(outs)-1 && i >= len(lp.parts) && p.drafting(lp, pic, now) {
			if err := p.showDraft(ctx, lp, out, now); err != nil {
				return time.Millisecond
			}
			continue
		}
		if i < len(lp.shown) && lp.shown[i] == look(out) {
			continue
		}
		if err := p.showPart(ctx, lp, i, out); err != nil {
			return p.interimFailed(lp, err)
		}
		lp.failed = 0
		if i < len(outs)-1 {
			return time.Millisecond // the next part, if nothing more urgent came
		}
	}
	lp.version = pic.version
	return lp.draft.wait(now)
}

// startInterim returns the live message if there is something new to show of it, or
// a draft that would lapse, else how long not; freeze waits until endInterim.
func (p *poster) startInterim(now time.Time) (*livePost, time.Duration) {
	if _, ok := p.deps.adapter.(chat.Editor); !ok || p.deps.silent {
		return nil, time.Hour
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lp := p.live
	if lp == nil || lp.frozen {
		return nil, time.Hour
	}
	lp.uncover()
	switch {
	case lp.src.news(lp.version):
	case lp.held:
		return nil, time.Hour
	default:
		if w := lp.draft.wait(now); w > 0 {
			return nil, w
		}
	}
	lp.calling = true
	return lp, 0
}

func (p *poster) endInterim(lp *livePost) {
	p.mu.Lock()
	lp.calling = false
	p.inCall = nil
	p.mu.Unlock()
	p.calls.Broadcast()
}

// layOut divides a picture into messages.
func (p *poster) layOut(lp *livePost, pic picture) []chat.Outgoing {
	texts := split(pic.text, p.deps.adapter.Limits())
	if len(texts) == 0 {
		texts = []string{""}
	}
	outs := make([]chat.Outgoing, len(texts))
	for i, t := range texts {
		outs[i] = chat.Outgoing{Key: partKey(lp.turn.ID, lp.round, i), Text: t, Live: true, Reply: lp.turn.Reply}
	}
	l := p.deps.adapter.Limits()
	outs[len(outs)-1].Buttons = stopButton(l, lp.turn.ID)
	if fits(texts[0], pic.progress, l) {
		outs[0].Progress = pic.progress
	}
	if lp.marked && outs[0].Text != "" {
		outs[0].Text = repeatMark + outs[0].Text
	}
	return outs
}

// showPart posts or edits one part.
func (p *poster) showPart(ctx context.Context, lp *livePost, i int, out chat.Outgoing) error {
	cctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if i < len(lp.parts) {
		p.mu.Lock()
		p.inCall = cancel
		p.mu.Unlock()
		d := lp.parts[i]
		var err error
		apart(func() { err = p.deps.adapter.(chat.Editor).Edit(cctx, d.Address, d.Message, out) })
		if err != nil {
			return err
		}
		lp.shown[i] = look(out)
		return nil
	}
	d := record.Delivery{
		ID: record.DeliveryID(record.NewID()), Conversation: p.conv.ID, Turn: lp.turn.ID, Kind: record.DeliverLive,
		Part: i, Address: lp.turn.Address, Out: out, State: record.DeliverySending,
	}
	d.Key = "live/" + string(d.ID)
	if err := p.save(ctx, d); err != nil {
		return err
	}
	killpoint.Here(killpoint.LiveSending)
	id, err := p.send(ctx, d.Address, out)
	if err != nil {
		return p.failedPart(ctx, lp, d, err)
	}
	killpoint.Here(killpoint.LiveSent)
	d.Message, d.State = id, record.DeliverySent
	lp.parts, lp.shown = append(lp.parts, d), append(lp.shown, look(out))
	lp.draft.look = "" // the message ended it
	p.mu.Lock()
	p.ended.add(d)
	p.mu.Unlock()
	if err := p.save(ctx, d); err != nil {
		return err
	}
	killpoint.Here(killpoint.LiveStored)
	p.add(lp.buried...)
	lp.buried = nil
	return nil
}

// failedPart records a live part that was not posted, or perhaps was.
func (p *poster) failedPart(ctx context.Context, lp *livePost, d record.Delivery, err error) error {
	var limited *chat.RateLimitError
	d.State, d.Error = record.DeliveryFailed, err.Error()
	if errors.Is(err, chat.ErrAmbiguous) || ctx.Err() != nil || errors.Is(err, context.Canceled) {
		lp.marked = true
	} else if errors.As(err, &limited) {
		d.State = record.DeliveryGone
	}
	if serr := p.save(ctx, d); serr != nil {
		return serr
	}
	return err
}

// interimFailed decides when to try again: interim edits are never urgent.
func (p *poster) interimFailed(lp *livePost, err error) time.Duration {
	now := p.deps.now()
	var limited *chat.RateLimitError
	if errors.As(err, &limited) {
		p.deps.limiter.pause(lp.turn.Address.Chat, limited, now)
		return limited.RetryAfter
	}
	if errors.Is(err, chat.ErrGone) { // somebody removed it: go on in a new message
		lp.parts, lp.shown = nil, nil
	}
	lp.failed++
	w := min(retryFirst<<min(lp.failed, 5), retryMost)
	lp.after = now.Add(w)
	p.log.Debug("interim edit failed", zap.Error(err), zap.Duration("wait", w))
	return w
}

// finals makes the rows of a turn's answer: part i takes over live part i, so
// that the message which people watched becomes the answer. Live parts beyond
// the answer are removed. With no text there is nothing to post.
func finals(t record.Turn, text string, f frozen, l chat.Limits) []record.Delivery {
	var out []record.Delivery
	parts := f.parts
	for i, s := range split(text, l) {
		d := record.Delivery{ID: record.DeliveryID(record.NewID()), Conversation: t.Conversation, Turn: t.ID, Address: t.Address}
		if i < len(parts) {
			d = parts[i]
		}
		d.Kind, d.Part, d.Key, d.State = record.DeliverFinal, i, partKey(t.ID, f.round, i), record.DeliveryPending
		d.Out = chat.Outgoing{Key: d.Key, Text: s, Reply: t.Reply}
		d.Marked = f.marked && i == 0
		out = append(out, d)
	}
	for _, d := range slices.Concat(parts[min(len(out), len(parts)):], f.buried) {
		d.State = record.DeliveryPending
		out = append(out, d)
	}
	return out
}

// split divides a text into messages that the platform takes.
func split(text string, l chat.Limits) []string {
	if text == "" {
		return nil
	}
	if l.Text == 0 || (len(text) <= l.Text && l.Size(text) <= l.Text) {
		return []string{text}
	}
	l.Text -= l.Size(repeatMark) // room for the mark of a possible repeat
	return markdown.Split(text, l)
}

// partKey is the idempotency key of part i of a turn's answer, in a round of its
// live message.
func partKey(t record.TurnID, round string, i int) string {
	if round == "" {
		return fmt.Sprintf("%s/%d", t, i)
	}
	return fmt.Sprintf("%s/%s/%d", t, round, i)
}

// look is what decides whether a part has to be edited.
func look(m chat.Outgoing) string {
	return m.Text + "\x00" + fmt.Sprint(m.Progress, len(m.Buttons))
}

// fits says whether progress lines have room above a text; what they count is
// bounded generously.
func fits(text string, lines []string, l chat.Limits) bool {
	n := 0
	for _, s := range lines {
		n += len(s) + 1
	}
	return l.Text == 0 || l.Size(text)+n <= l.Text
}
