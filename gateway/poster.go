package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/gateway/killpoint"
	"parley/store/record"
)

const (
	// callLimit bounds one call to a platform, uploadLimit one that carries files.
	callLimit, uploadLimit = 30 * time.Second, 5 * time.Minute
	// retryFirst and retryMost are the waits after transient failures.
	retryFirst, retryMost = time.Second, 30 * time.Second
	// unknownTries is how often a delivery of unknown outcome is shown at most.
	unknownTries = 2
)

// repeatMark begins a message whose earlier attempt may have arrived.
const repeatMark = "↻ *Possibly a repeat: the connection broke while this was being sent.*\n\n"

// poster owns everything that one conversation posts. Its goroutine makes one
// call at a time, in the order control, cards, finals and notices, live; within
// a kind in the order of creation. It never posts without a row that says so
// first. Turn n+1 posts nothing before turn n's parts are settled.
type poster struct {
	deps posterDeps
	conv record.Conversation
	log  *zap.Logger

	wakeUp  chan struct{}
	mu      sync.Mutex
	fence   record.Fence
	queue   []*job
	current *job // being settled
	ended   endedJobs
	live    *livePost
	inCall  context.CancelFunc // of an interim edit under way
	calls   sync.Cond          // signalled when a call ended
	notes   []func(context.Context)
	awaited map[record.DeliveryID]chan<- record.Delivery
}

// posterDeps is what a poster needs of the gateway.
type posterDeps struct {
	adapter chat.Adapter
	limiter *limiter
	store   Deliveries
	silent  bool               // nothing is shown before it is final
	drafts  bool               // what is still written may be shown without a message
	settled func()             // told when the queue has become empty
	fenced  func(record.Fence) // told when a write was refused: somebody else may own the conversation
	count   func(record.DeliveryKind, record.DeliveryState)
	now     func() time.Time
}

// job is one unsettled delivery.
type job struct {
	d      record.Delivery
	after  time.Time // not before
	wait   time.Duration
	gone   bool // remove the message instead
	placed bool // see limiter.final
	// first and last are when it was sent without knowing what came of it.
	first, last time.Time
}

func newPoster(c record.Conversation, f record.Fence, d posterDeps, log *zap.Logger) *poster {
	p := &poster{deps: d, conv: c, fence: f, log: log, wakeUp: make(chan struct{}, 1)}
	p.calls.L = &p.mu
	return p
}

// ring wakes the goroutine.
func (p *poster) ring() {
	select {
	case p.wakeUp <- struct{}{}:
	default:
	}
}

// refence takes over the fence of a later claim.
func (p *poster) refence(f record.Fence) {
	p.mu.Lock()
	p.fence = f
	p.mu.Unlock()
}

// add queues deliveries whose rows are written. One that is queued already gets
// the new content, which is how a card changes before it is posted; one that was
// posted is edited.
func (p *poster) add(ds ...record.Delivery) {
	p.mu.Lock()
	for _, d := range ds {
		if id, ok := p.ended.message(d.ID); ok && d.Message == "" {
			d.Message = id
		}
		j := &job{d: d, gone: d.Kind == record.DeliverLive}
		i := slices.IndexFunc(p.queue, func(q *job) bool { return q.d.ID == d.ID && q != p.current })
		if i < 0 {
			p.queue = append(p.queue, j)
			continue
		}
		j.d.Message, j.d.State, j.d.Attempts = p.queue[i].d.Message, p.queue[i].d.State, p.queue[i].d.Attempts
		j.first, j.last = p.queue[i].first, p.queue[i].last
		p.queue[i] = j
	}
	p.mu.Unlock()
	p.ring()
}

// addMissing queues deliveries that the database holds as unsettled and that this
// poster does not know.
func (p *poster) addMissing(ds ...record.Delivery) {
	p.mu.Lock()
	ds = slices.DeleteFunc(ds, func(d record.Delivery) bool {
		_, known := p.ended.message(d.ID)
		return known || slices.ContainsFunc(p.queue, func(q *job) bool { return q.d.ID == d.ID })
	})
	p.mu.Unlock()
	p.add(ds...)
}

// knows says that a delivery is queued here, or was among the last that ended.
func (p *poster) knows(id record.DeliveryID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ended := p.ended.message(id)
	return ended || slices.ContainsFunc(p.queue, func(q *job) bool { return q.d.ID == id })
}

// endedJobs remembers the deliveries that ended last, so that what refers to them
// finds their message.
type endedJobs struct {
	ids [12]struct {
		delivery record.DeliveryID
		message  chat.MessageID
	}
	next int
}

func (e *endedJobs) add(d record.Delivery) {
	e.ids[e.next].delivery, e.ids[e.next].message = d.ID, d.Message
	e.next = (e.next + 1) % len(e.ids)
}

// message returns the newest message of a delivery.
func (e *endedJobs) message(id record.DeliveryID) (chat.MessageID, bool) {
	for i := range e.ids {
		if x := e.ids[(e.next-1-i+2*len(e.ids))%len(e.ids)]; x.delivery == id && id != "" {
			return x.message, true
		}
	}
	return "", false
}

// note runs a small best-effort call (typing, a reaction) in order with the
// others; it is not repeated.
func (p *poster) note(f func(context.Context)) {
	p.mu.Lock()
	if len(p.notes) < 8 {
		p.notes = append(p.notes, f)
	}
	p.mu.Unlock()
	p.ring()
}

// idle says that nothing is queued.
func (p *poster) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0 && len(p.notes) == 0
}

// run posts until ctx ends. drain, when closed, asks it to end as soon as the
// queue is empty.
func (p *poster) run(ctx context.Context, drain <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	over := false
	for {
		wait := p.step(ctx)
		switch {
		case ctx.Err() != nil, over && p.idle():
			return
		case wait == 0:
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-p.wakeUp:
		case <-timer.C:
		case <-drain:
			drain, over = nil, true
		}
	}
}

// step does the next thing that is due and returns 0, or how long nothing is.
func (p *poster) step(ctx context.Context) time.Duration {
	now := p.deps.now()
	j, wait := p.next(now)
	if j != nil {
		p.settle(ctx, j)
		p.mu.Lock()
		p.current = nil
		p.mu.Unlock()
		return 0
	}
	if f := p.nextNote(); f != nil {
		f(ctx)
		return 0
	}
	if wait == 0 {
		wait = time.Hour
	}
	if p.queued(record.DeliverFinal) {
		return wait
	}
	return min(wait, p.showLive(ctx, now))
}

func (p *poster) nextNote() func(context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.notes) == 0 {
		return nil
	}
	f := p.notes[0]
	p.notes = p.notes[1:]
	return f
}

func (p *poster) queued(k record.DeliveryKind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.queue, func(j *job) bool { return j.d.Kind == k })
}

// ranked are the kinds of deliveries in the order in which they are posted.
var ranked = [...]record.DeliveryKind{record.DeliverControl, record.DeliverCard, record.DeliverFile, record.DeliverFinal, record.DeliverNotice, record.DeliverLive}

func order(k record.DeliveryKind) int { return slices.Index(ranked[:], k) }

// next returns the first job that is due, by kind and then by age. Only the first
// of each kind is a candidate, so that parts stay in order.
func (p *poster) next(now time.Time) (*job, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *job
	var wait time.Duration
	var seen [len(ranked)]bool
	for _, j := range p.queue {
		if seen[order(j.d.Kind)] {
			continue
		}
		seen[order(j.d.Kind)] = true
		if w := j.after.Sub(now); w > 0 {
			if wait == 0 || w < wait {
				wait = w
			}
			continue
		}
		if best == nil || order(j.d.Kind) < order(best.d.Kind) {
			best = j
		}
	}
	p.current = best
	return best, wait
}

// settle tries one delivery once and records what came of it.
func (p *poster) settle(ctx context.Context, j *job) {
	pace := p.deps.limiter.final
	if j.gone {
		pace = p.deps.limiter.removal
	}
	if w := pace(j.d.Address.Chat, p.deps.now(), &j.placed); w > 0 {
		p.postpone(j, w)
		return
	}
	var err error
	switch {
	case j.gone:
		err = p.remove(ctx, j)
	case j.d.Message != "":
		err = p.edit(ctx, j)
	default:
		err = p.create(ctx, j)
	}
	if errors.Is(err, record.ErrFenced) {
		p.mu.Lock()
		f := p.fence
		p.mu.Unlock()
		p.deps.fenced(f)
	}
	if err != nil && ctx.Err() == nil {
		j.wait = min(max(2*j.wait, retryFirst), retryMost)
		p.log.Warn("delivery postponed", zap.String("delivery", string(j.d.ID)), zap.Duration("wait", j.wait), zap.Error(err))
		p.postpone(j, j.wait)
	}
}

// create posts a message that has no id yet. The row says "sending" before the
// call and what came of it after.
func (p *poster) create(ctx context.Context, j *job) error {
	if done, err := p.resolveUnknown(ctx, j); done || err != nil {
		return err
	}
	if !filesAreThere(j.d) {
		return p.finish(ctx, j, record.DeliveryFailed, &chat.RejectedError{Reason: "the copy of the file is gone"})
	}
	j.d.State = record.DeliverySending
	j.d.Attempts++
	if err := p.save(ctx, j.d); err != nil {
		return err
	}
	killpoint.Here(killpoint.DeliverySending)
	if j.last = p.deps.now(); j.first.IsZero() {
		j.first = j.last
	}
	id, err := p.send(ctx, j.d.Address, p.content(j.d))
	if err == nil {
		killpoint.Here(killpoint.DeliverySent)
		j.d.Message = id
		p.bury()
		return p.finish(ctx, j, record.DeliverySent, nil)
	}
	return p.failedCreate(ctx, j, err)
}

// failedCreate sorts a failed Send.
func (p *poster) failedCreate(ctx context.Context, j *job, err error) error {
	var limited *chat.RateLimitError
	var rejected *chat.RejectedError
	switch {
	case errors.As(err, &limited):
		p.deps.limiter.pause(j.d.Address.Chat, limited, p.deps.now())
		j.notSent()
		if err := p.save(ctx, j.d); err != nil {
			return err
		}
		p.postpone(j, limited.RetryAfter)
		return nil
	case errors.Is(err, chat.ErrGone), errors.As(err, &rejected):
		return p.finish(ctx, j, record.DeliveryFailed, err)
	case errors.Is(err, chat.ErrAmbiguous), ctx.Err() != nil:
		j.d.State = record.DeliveryUnknown
	default:
		j.notSent()
	}
	if serr := p.save(ctx, j.d); serr != nil {
		return serr
	}
	return err
}

// edit brings a posted message to its final content; it can be repeated.
func (p *poster) edit(ctx context.Context, j *job) error {
	ed, ok := p.deps.adapter.(chat.Editor)
	if !ok {
		return p.finish(ctx, j, record.DeliverySent, nil)
	}
	cctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var err error
	apart(func() { err = ed.Edit(cctx, j.d.Address, j.d.Message, p.content(j.d)) })
	var limited *chat.RateLimitError
	var rejected *chat.RejectedError
	switch {
	case err == nil:
		return p.finish(ctx, j, record.DeliverySent, nil)
	case errors.As(err, &limited):
		p.deps.limiter.pause(j.d.Address.Chat, limited, p.deps.now())
		p.postpone(j, limited.RetryAfter)
		return nil
	case errors.Is(err, chat.ErrGone) && j.d.Kind == record.DeliverFinal:
		j.d.Message, j.d.State = "", record.DeliveryPending // somebody removed it: the answer is posted anew
		return p.save(ctx, j.d)
	case errors.Is(err, chat.ErrGone), errors.As(err, &rejected):
		return p.finish(ctx, j, record.DeliveryFailed, err)
	}
	return err
}

// remove takes a live message away that the final answer does not need.
func (p *poster) remove(ctx context.Context, j *job) error {
	if j.d.Message == "" {
		return p.finish(ctx, j, record.DeliveryGone, nil)
	}
	del, ok := p.deps.adapter.(chat.Deleter)
	if !ok {
		j.gone, j.d.Out = false, chat.Outgoing{Key: j.d.Key, Text: "⤵"}
		return p.edit(ctx, j)
	}
	cctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := del.Delete(cctx, j.d.Address, j.d.Message)
	var limited *chat.RateLimitError
	var rejected *chat.RejectedError
	switch {
	case errors.As(err, &limited):
		p.deps.limiter.pauseRemoval(j.d.Address.Chat, limited, p.deps.now())
		p.postpone(j, limited.RetryAfter)
		return nil
	case err == nil, errors.Is(err, chat.ErrGone), errors.As(err, &rejected):
		return p.finish(ctx, j, record.DeliveryGone, nil)
	}
	return err
}

// finish stores a delivery's end and takes it off the queue.
func (p *poster) finish(ctx context.Context, j *job, s record.DeliveryState, cause error) error {
	j.d.State = s
	j.d.Error = ""
	if cause != nil {
		j.d.Error = cause.Error()
		p.log.Warn("delivery failed", zap.String("delivery", string(j.d.ID)), zap.Error(cause))
	}
	if err := p.save(ctx, j.d); err != nil {
		return err
	}
	killpoint.Here(killpoint.DeliveryStored)
	p.deps.count(j.d.Kind, s)
	p.sent(j.d)
	p.mu.Lock()
	p.ended.add(j.d)
	p.queue = slices.DeleteFunc(p.queue, func(q *job) bool { return q == j })
	for _, q := range p.queue {
		if q.d.ID == j.d.ID { // its content changed while it was being posted
			q.d.Message, q.d.State = j.d.Message, record.DeliveryPending
		}
	}
	empty := len(p.queue) == 0
	p.mu.Unlock()
	if empty {
		p.deps.settled()
	}
	return nil
}

func (p *poster) postpone(j *job, w time.Duration) {
	p.mu.Lock()
	j.after = p.deps.now().Add(w)
	p.mu.Unlock()
}

// send is one bounded Send.
func (p *poster) send(ctx context.Context, to chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	limit := callLimit
	if len(m.Files) > 0 {
		limit = uploadLimit
	}
	cctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var id chat.MessageID
	var err error
	apart(func() { id, err = p.deps.adapter.Send(cctx, to, m) })
	return id, err
}

// apart makes a call on a stack of its own: rendering and HTTP need a deep one, which
// the poster would hold on to between its edits, once for each turn that runs.
func apart(call func()) {
	var broken error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				broken = fmt.Errorf("%v\n%s", r, debug.Stack())
			}
		}()
		call()
	}()
	<-done
	if broken != nil {
		panic(broken) // at the poster's door
	}
}

// content is what is posted: with the mark if an earlier attempt may have arrived.
func (p *poster) content(d record.Delivery) chat.Outgoing {
	m := d.Out
	if d.Marked {
		m.Text = repeatMark + m.Text
	}
	return m
}

func (p *poster) save(ctx context.Context, d record.Delivery) error {
	p.mu.Lock()
	f := p.fence
	p.mu.Unlock()
	return p.deps.store.SaveDelivery(ctx, f, d)
}
