package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/store/record"
)

// drafting is a platform with drafts that notes each call and its time.
type drafting struct {
	chat.Adapter
	began  time.Time
	calls  []string
	refuse error // of drafts
	takes  time.Duration
}

func (d *drafting) Limits() chat.Limits {
	return chat.Limits{EditInterval: time.Second, DraftTTL: 20 * time.Second, Text: 200}
}

func (d *drafting) note(what string, m chat.Outgoing) {
	d.calls = append(d.calls, fmt.Sprintf("%s %s %.9q %d", time.Since(d.began), what, m.Text, len(m.Buttons)))
}

func (d *drafting) Send(_ context.Context, _ chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	d.note("send", m)
	return chat.MessageID(fmt.Sprint(len(d.calls))), nil
}

func (d *drafting) Edit(_ context.Context, _ chat.Address, _ chat.MessageID, m chat.Outgoing) error {
	d.note("edit", m)
	return nil
}

func (d *drafting) Draft(ctx context.Context, _ chat.Address, id int64, m chat.Outgoing) error {
	if id == 0 || m.Buttons != nil {
		return errors.New("no draft has id 0, or buttons")
	}
	d.note("draft", m)
	t := time.NewTimer(d.takes)
	defer t.Stop()
	select {
	case <-t.C:
		return d.refuse
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drafted runs a turn's live message on a platform with drafts.
func drafted(t *testing.T, kind chat.Kind, auto bool, d *drafting, turn func(p *poster, emit func(agentcore.Event), wait func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d.began = time.Now()
		limiter := newLimiter(d.Limits())
		limiter.enter("", kind)
		p := newPoster(record.Conversation{ID: "conversation", Kind: kind}, record.Fence{}, posterDeps{
			adapter: d, limiter: limiter, store: noRows{}, now: time.Now, drafts: auto,
			settled: func() {}, count: func(record.DeliveryKind, record.DeliveryState) {},
		}, zap.NewNop())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.run(ctx, nil)
		src := newLive(record.Conversation{Verbose: record.VerboseNew}, p.ring)
		p.begin(record.Turn{ID: "turn"}, src, nil)
		turn(p, src.Emit, func(d time.Duration) { <-time.After(d); synctest.Wait() })
		cancel()
		synctest.Wait()
	})
}

func TestDrafts(t *testing.T) {
	said := func(text string) agentcore.Event { return agentcore.StreamDelta{Text: text} }
	for _, tc := range []struct {
		name   string
		kind   chat.Kind
		edits  bool // streaming: edit
		refuse error
		turn   func(p *poster, emit func(agentcore.Event), wait func(time.Duration))
		want   []string
	}{
		{"a draft grows", chat.Direct, false, nil, func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
			emit(said("one "))
			wait(time.Second)
			emit(said("two"))
			wait(time.Second)
		}, []string{`0s draft "one " 0`, `1s draft "one two" 0`}},
		{"it is renewed before it lapses, and in the end is a message that can be stopped", chat.Direct, false, nil,
			func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
				emit(said("one"))
				wait(time.Minute)
				emit(said(" two"))
				wait(time.Second)
			}, []string{`0s draft "one" 0`, `16s draft "one" 0`, `30s send "one" 1`, `1m0s edit "one two" 1`}},
		{"what is full is a message", chat.Direct, false, nil, func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
			var text strings.Builder
			for i := range 24 {
				fmt.Fprintf(&text, "word%04d ", i)
			}
			emit(said(text.String())) // at once: the poster may wake between two pieces
			wait(3 * time.Second)
		}, []string{`0s send "word0000 " 0`, `1s draft "word0014 " 0`}},
		{"something posted below it ends it, and it is shown again", chat.Direct, false, nil,
			func(p *poster, emit func(agentcore.Event), wait func(time.Duration)) {
				emit(said("one"))
				wait(2 * time.Second)
				p.add(record.Delivery{ID: "reply", Kind: record.DeliverControl, State: record.DeliveryPending, Out: chat.Outgoing{Text: "reply"}})
				wait(2 * time.Second)
			}, []string{`0s draft "one" 0`, `2s send "reply" 0`, `2s draft "one" 0`}},
		{"progress of tools needs a message, and so does what follows", chat.Direct, false, nil,
			func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
				emit(agentcore.ToolStarted{Summary: "looking"})
				wait(2 * time.Second)
				emit(said("one"))
				wait(2 * time.Second)
			}, []string{`0s send "" 1`, `2s edit "one" 1`}},
		{"STR-013 a refusal is obeyed, and edits take over", chat.Direct, false, &chat.RateLimitError{RetryAfter: 5 * time.Second},
			func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
				emit(said("one"))
				wait(2 * time.Second)
				emit(said(" two"))
				wait(10 * time.Second)
			}, []string{`0s draft "one" 0`, `5s send "one two" 1`}},
		{"not in groups", chat.Group, false, nil, func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
			emit(said("one"))
			wait(2 * time.Second)
		}, []string{`0s send "one" 1`}},
		{"not with streaming: edit", chat.Direct, true, nil, func(_ *poster, emit func(agentcore.Event), wait func(time.Duration)) {
			emit(said("one"))
			wait(2 * time.Second)
		}, []string{`0s send "one" 1`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &drafting{refuse: tc.refuse}
			drafted(t, tc.kind, !tc.edits, d, tc.turn)
			if diff := cmp.Diff(tc.want, d.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The end of a turn does not wait for a slow draft; nothing was posted, and what was
// seen is known.
func TestEndDoesNotWaitForADraft(t *testing.T) {
	d := &drafting{takes: 5 * time.Second}
	drafted(t, chat.Direct, true, d, func(p *poster, emit func(agentcore.Event), wait func(time.Duration)) {
		emit(agentcore.StreamDelta{Text: "one"})
		wait(0)
		d.takes = 0
		began := time.Now()
		f := p.freeze()
		if took := time.Since(began); took != freezeLimit {
			t.Errorf("the end waited %s", took)
		}
		if len(f.parts) > 0 || f.marked {
			t.Errorf("a draft became part of the answer: %+v", f)
		}
	})
}

// What was seen of an interrupted answer stays, though it was a draft only.
func TestInterruptedDraftStays(t *testing.T) {
	for _, tc := range []struct {
		f    frozen
		text string
		want string
	}{
		{frozen{drafted: true}, "so far", "so far\n\n⏹ *Stopped here.*"},
		{frozen{drafted: true}, "", ""},
		{frozen{}, "so far", ""},
		{frozen{parts: make([]record.Delivery, 1)}, "", "⏹ *Stopped.*"},
	} {
		if got := interruptedText(picture{text: tc.text}, tc.f); got != tc.want {
			t.Errorf("%+v, %q: %q, want %q", tc.f, tc.text, got, tc.want)
		}
	}
}
