package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// Reserve books an amount on a day (UTC) against every limit, all or none. If one
// leaves no room it is a *record.SpendingError and nothing is booked. What was
// reserved by a process that died stays booked: a limit is kept, not guessed.
func (db *DB) Reserve(ctx context.Context, day time.Time, limits []record.SpendingLimit, amount float64) error {
	limits = slices.SortedFunc(slices.Values(limits), func(a, b record.SpendingLimit) int { return strings.Compare(a.Scope, b.Scope) })
	return db.tx(ctx, "reserve", func(ctx context.Context, tx pgx.Tx) error {
		for _, l := range limits { // in one order, so that two reservations cannot lock each other out
			var spent, extra float64
			err := tx.QueryRow(ctx, `
				INSERT INTO spending (day, scope, spent) VALUES ($1, $2, $3)
				ON CONFLICT (day, scope) DO UPDATE SET spent = spending.spent + excluded.spent RETURNING spent, extra`,
				day.UTC(), text(l.Scope), amount).Scan(&spent, &extra)
			if err != nil {
				return err
			}
			if l.Limit > 0 && spent > l.Limit+extra {
				return &record.SpendingError{SpendingLimit: l, Spent: spent - amount, Allowed: l.Limit + extra}
			}
		}
		return nil
	})
}

// Adjust corrects what was booked, once the real cost is known; delta may be
// negative.
func (db *DB) Adjust(ctx context.Context, day time.Time, limits []record.SpendingLimit, delta float64) error {
	return db.batch(ctx, "adjust spending", func(b *pgx.Batch) {
		for _, l := range limits {
			b.Queue(`INSERT INTO spending (day, scope, spent) VALUES ($1, $2, greatest($3::float8, 0))
				ON CONFLICT (day, scope) DO UPDATE SET spent = greatest(spending.spent + $3, 0)`, day.UTC(), text(l.Scope), delta)
		}
	})
}

// AllowMore raises a scope's limit for one day.
func (db *DB) AllowMore(ctx context.Context, day time.Time, scope string, amount float64) error {
	return db.batch(ctx, "allow more", func(b *pgx.Batch) {
		b.Queue(`INSERT INTO spending (day, scope, extra) VALUES ($1, $2, $3)
			ON CONFLICT (day, scope) DO UPDATE SET extra = spending.extra + excluded.extra`, day.UTC(), text(scope), amount)
	})
}
