package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/store/record"
)

// slowPlatform takes its time for every call.
type slowPlatform struct {
	chat.Adapter
	takes time.Duration
	cut   int // calls that were given up
}

func (s *slowPlatform) Limits() chat.Limits { return chat.Limits{EditInterval: time.Second} }

func (s *slowPlatform) call(ctx context.Context) error {
	t := time.NewTimer(s.takes)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		s.cut++
		return chat.ErrAmbiguous
	}
}

func (s *slowPlatform) Send(ctx context.Context, _ chat.Address, _ chat.Outgoing) (chat.MessageID, error) {
	return "1", s.call(ctx)
}

func (s *slowPlatform) Edit(ctx context.Context, _ chat.Address, _ chat.MessageID, _ chat.Outgoing) error {
	return s.call(ctx)
}

// noRows keeps nothing.
type noRows struct{ Deliveries }

func (noRows) SaveDelivery(context.Context, record.Fence, record.Delivery) error { return nil }

// TestEndWaitsForACreation: the end of a turn gives up a slow edit, whose text the
// answer replaces, and waits for a slow creation, whose message becomes the answer
// (DEL-004).
func TestEndWaitsForACreation(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit bool
		want time.Duration
	}{{"creation", false, 5 * time.Second}, {"edit", true, freezeLimit}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				platform := &slowPlatform{}
				p := newPoster(record.Conversation{}, record.Fence{}, posterDeps{
					adapter: platform, limiter: newLimiter(platform.Limits()), store: noRows{}, now: time.Now,
					settled: func() {}, count: func(record.DeliveryKind, record.DeliveryState) {},
				}, zap.NewNop())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go p.run(ctx, nil)
				src := newLive(record.Conversation{}, p.ring)
				p.begin(record.Turn{ID: "turn"}, src, nil)
				if tc.edit {
					src.Emit(agentcore.StreamDelta{Text: "one "})
					synctest.Wait()
				}
				platform.takes = 5 * time.Second
				src.Emit(agentcore.StreamDelta{Text: "two "})
				if tc.edit {
					<-time.After(time.Second) // the interval between edits
				}
				synctest.Wait()
				began := time.Now()
				f := p.freeze()
				if took := time.Since(began); took != tc.want {
					t.Errorf("the end waited %s, not %s", took, tc.want)
				}
				if f.marked || len(f.parts) != 1 || f.parts[0].Message != "1" {
					t.Errorf("the live message is not what the answer takes over: %+v", f)
				}
				if got := platform.cut > 0; got != tc.edit {
					t.Errorf("calls given up: %d", platform.cut)
				}
			})
		})
	}
}
