package gateway

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// runs is an adapter that counts its runs and may panic in the first.
type runs struct {
	chat.Adapter
	id     chat.AccountID
	panics bool
	n      int
}

func (r *runs) Account() chat.AccountID { return r.id }
func (r *runs) Limits() chat.Limits     { return chat.Limits{} }

func (r *runs) Run(ctx context.Context, _ chat.Sink) error {
	if r.n++; r.panics && r.n == 1 {
		panic("send on closed channel")
	}
	<-ctx.Done()
	return nil
}

// REC-011: an adapter that panics is started again, and the others do not notice.
func TestPanicRestartsOneAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{log: zap.NewNop(), now: time.Now}
		broken, fine := &runs{id: "a/broken", panics: true}, &runs{id: "a/fine"}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, r := range []*runs{broken, fine} {
			wg.Go(func() { g.runAccount(ctx, newAccount(r)) })
		}
		<-time.After(time.Minute)
		cancel()
		wg.Wait()
		if broken.n != 2 || fine.n != 1 {
			t.Errorf("the adapter that panicked ran %d times, the other %d", broken.n, fine.n)
		}
	})
}
