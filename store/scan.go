package store

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// orEmpty scans a nullable column into a string; NULL is empty.
type orEmpty[T ~string] struct{ to *T }

func empty[T ~string](to *T) *orEmpty[T] { return &orEmpty[T]{to} }

// ScanText implements pgtype.TextScanner.
func (o *orEmpty[T]) ScanText(v pgtype.Text) error { *o.to = T(v.String); return nil }

// orZero scans a nullable time; NULL is the zero time.
type orZero struct{ to *time.Time }

func zero(to *time.Time) *orZero { return &orZero{to} }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (o *orZero) ScanTimestamptz(v pgtype.Timestamptz) error { *o.to = v.Time; return nil }

// null passes the empty string as NULL.
func null[T ~string](v T) *string {
	if v == "" {
		return nil
	}
	s := string(v)
	return &s
}

// nullTime passes the zero time as NULL.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// list collects the rows of a query.
func list[T any](into *[]T, scan func(pgx.Row) (T, error)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var err error
		*into, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (T, error) { return scan(r) })
		return err
	}
}

// one reads a single row.
func one[T any](into *T, scan func(pgx.Row) (T, error)) func(pgx.Row) error {
	return func(row pgx.Row) error {
		var err error
		*into, err = scan(row)
		return err
	}
}

// maybe reads a single row if there is one.
func maybe[T any](into **T, scan func(pgx.Row) (T, error)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var all []T
		if err := list(&all, scan)(rows); err != nil {
			return err
		}
		*into = nil
		if len(all) > 0 {
			*into = &all[0]
		}
		return nil
	}
}
