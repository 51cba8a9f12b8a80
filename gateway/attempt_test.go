package gateway

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

// latePlatform is one on which what a dead process sent is still on its way, and which
// can be searched.
type latePlatform struct {
	chat.Adapter
	lands time.Time // when it is there; zero: never
	asked []chat.Attempt
	sent  []string
	after []time.Duration // since the start, at which each was sent
	began time.Time
}

func (p *latePlatform) Limits() chat.Limits { return chat.Limits{} }

func (p *latePlatform) Send(_ context.Context, _ chat.Address, m chat.Outgoing) (chat.MessageID, error) {
	p.sent, p.after = append(p.sent, m.Text), append(p.after, time.Since(p.began))
	return "new", nil
}

func (p *latePlatform) Edit(context.Context, chat.Address, chat.MessageID, chat.Outgoing) error {
	return nil
}

func (p *latePlatform) Find(_ context.Context, _ chat.Address, a chat.Attempt) (chat.MessageID, bool, error) {
	p.asked = append(p.asked, a)
	switch now := time.Now(); {
	case !p.lands.IsZero() && !now.Before(p.lands):
		return "late", true, nil
	case now.Sub(a.Last) < 2*time.Second:
		return "", false, errors.New("it may still arrive")
	}
	return "", false, nil
}

// What was sent just before the process died may land after the next one has looked
// for it: it is looked for again until it is too old for that, by the time of the last
// attempt. What is older is posted at once, and nothing else waits for it (DEL-004).
func TestRequestInFlightAtADeath(t *testing.T) {
	const never = -1
	for _, tc := range []struct {
		name     string
		age      time.Duration // of the row's last attempt
		attempts int
		lands    time.Duration
		sent     time.Duration // never, or after so long
		first    time.Duration // how long ago the first attempt is taken to have been
	}{
		{"lands late", 200 * time.Millisecond, 1, 900 * time.Millisecond, never, 200 * time.Millisecond},
		{"never lands", 200 * time.Millisecond, 1, never, 3 * time.Second, 200 * time.Millisecond},
		{"is old", time.Minute, 1, never, 0, time.Minute},
		{"was tried before", time.Minute, 2, never, 0, time.Hour},
		{"the database's clock is ahead", -time.Hour, 1, never, 3 * time.Second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				platform := &latePlatform{began: now}
				if tc.lands != never {
					platform.lands = now.Add(tc.lands)
				}
				p := newPoster(record.Conversation{}, record.Fence{}, posterDeps{
					adapter: platform, limiter: newLimiter(platform.Limits()), store: noRows{}, now: time.Now,
					settled: func() {}, count: func(record.DeliveryKind, record.DeliveryState) {},
				}, zap.NewNop())
				p.addMissing(record.Delivery{
					ID: "d", Kind: record.DeliverFinal, State: record.DeliverySending, Attempts: tc.attempts, Out: chat.Outgoing{Key: "k", Text: "answer"},
					CreatedAt: now.Add(-time.Hour), UpdatedAt: now.Add(-tc.age),
				})
				go p.run(t.Context(), nil)
				p.add(record.Delivery{ID: "c", Kind: record.DeliverControl, State: record.DeliveryPending, Out: chat.Outgoing{Key: "c", Text: "reply"}})
				<-time.After(time.Minute)
				synctest.Wait()
				wantSent := []string{"reply"}
				if tc.sent != never {
					wantSent = append(wantSent, "answer")
				}
				if !slices.Equal(platform.sent, wantSent) || platform.after[0] != 0 || tc.sent != never && platform.after[1] != tc.sent {
					t.Errorf("sent %q after %s", platform.sent, platform.after)
				}
				if a := platform.asked[0]; a.Key != "k" || now.Sub(a.First) != tc.first {
					t.Errorf("looked for %+v", a)
				}
				if !p.idle() {
					t.Error("it is not settled")
				}
			})
		})
	}
}

// Of this process's own attempts the first and the last are known, those that were
// certainly refused aside.
func TestAttemptsOfThisProcess(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := &job{d: record.Delivery{Attempts: 1, Out: chat.Outgoing{Key: "k"}}, first: at, last: at.Add(time.Second)}
	if got := j.attempt(at.Add(time.Hour)); got != (chat.Attempt{Key: "k", First: at, Last: at.Add(time.Second)}) {
		t.Errorf("%+v", got)
	}
	if j.notSent(); !j.first.IsZero() || !j.last.IsZero() || j.d.State != record.DeliveryPending {
		t.Errorf("%+v", j)
	}
}

// elsewhere refuses every write: the conversation has another owner.
type elsewhere struct{ Deliveries }

func (elsewhere) SaveDelivery(context.Context, record.Fence, record.Delivery) error {
	return record.ErrFenced
}

// A poster whose conversation has another owner posts nothing, and says so: it must not
// try for ever, nor hold the end of the process up.
func TestAPosterTellsOfAnotherOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		platform := &latePlatform{began: time.Now()}
		var told []record.Fence
		p := newPoster(record.Conversation{}, record.Fence{Epoch: 3}, posterDeps{
			adapter: platform, limiter: newLimiter(platform.Limits()), store: elsewhere{}, now: time.Now,
			settled: func() {}, count: func(record.DeliveryKind, record.DeliveryState) {},
			fenced: func(f record.Fence) { told = append(told, f); cancel() },
		}, zap.NewNop())
		p.add(record.Delivery{ID: "d", Kind: record.DeliverFinal, State: record.DeliveryPending, Out: chat.Outgoing{Key: "k", Text: "answer"}})
		p.run(ctx, nil)
		if len(told) != 1 || told[0].Epoch != 3 || len(platform.sent) != 0 {
			t.Errorf("told %+v, sent %q", told, platform.sent)
		}
	})
}
