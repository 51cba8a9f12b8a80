package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"parley/store/record"
)

func TestSpendingIsReservedBeforeAndSettledAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	limits := []record.SpendingLimit{{Scope: "total", Limit: 10}, {Scope: "person:x:1", Limit: 2}}
	w.check(w.Reserve(ctx, day, limits, 1.5))
	var over *record.SpendingError
	if err := w.Reserve(ctx, day, limits, 1); !errors.As(err, &over) || over.Scope != "person:x:1" || over.Spent != 1.5 || over.Allowed != 2 {
		t.Fatalf("over the limit: %v", err)
	}
	w.check(w.Adjust(ctx, day, limits, -1.25)) // it cost 0.25 only
	w.check(w.Reserve(ctx, day, limits, 1))
	if err := w.Reserve(ctx, day, limits, 0.875); !errors.As(err, &over) || over.Spent != 1.25 {
		t.Fatalf("after the settlement: %v", err)
	}
	w.check(w.Adjust(ctx, day, limits, 0.25))
	w.check(w.AllowMore(ctx, day, "person:x:1", 2))
	w.check(w.Reserve(ctx, day, limits, 2))
	if err := w.Reserve(ctx, day, limits, 1); !errors.As(err, &over) || over.Allowed != 4 {
		t.Fatalf("over the raised limit: %v", err)
	}
	w.check(w.Reserve(ctx, day.AddDate(0, 0, 1), limits, 2)) // the next day begins at nothing
}

// A refused reservation books nothing in any scope, and parallel ones never get
// over a limit together.
func TestParallelReservationsKeepTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	day := time.Now()
	a := []record.SpendingLimit{{Scope: "total", Limit: 5}, {Scope: "person:x:1", Limit: 100}}
	b := []record.SpendingLimit{{Scope: "person:x:1", Limit: 100}, {Scope: "total", Limit: 5}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for i := range 20 {
		wg.Go(func() {
			limits := a
			if i%2 == 1 {
				limits = b
			}
			err := w.Reserve(t.Context(), day, limits, 1)
			var over *record.SpendingError
			if err != nil && !errors.As(err, &over) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				granted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if granted != 5 {
		t.Errorf("%d reservations of 1 under a limit of 5", granted)
	}
}
