package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/store/record"
)

// maxTries bounds repetitions after a deadlock or serialization failure.
const maxTries = 5

// write runs statements as one transaction in one round trip, the fence's check
// first. A statement that must undo the others when it finds nothing says so in
// SQL (check_rows, check_found): the server has run all of them by the time that a
// result is read here. fill is called again when the transaction is repeated.
func (db *DB) write(ctx context.Context, op string, f record.Fence, fill func(*pgx.Batch)) error {
	if f.Conversation == "" || f.Replica == "" {
		return explain(op, record.ErrFenced)
	}
	return db.batch(ctx, op, func(b *pgx.Batch) {
		b.Queue(`SELECT check_fence($1, $2, $3)`, f.Conversation, f.Replica, f.Epoch)
		fill(b)
	})
}

// batch is write without a fence.
func (db *DB) batch(ctx context.Context, op string, fill func(*pgx.Batch)) error {
	return db.persist(ctx, op, func(ctx context.Context) error {
		b := &pgx.Batch{}
		fill(b)
		return db.pool.SendBatch(ctx, b).Close()
	})
}

// decide runs one transaction in two round trips: ask queues what a decision is made
// from, act makes it and queues the statements. What act has to know at once it asks
// the connection, which is inside the transaction. It is rolled back on an error or a
// panic, and repeated like write.
func (db *DB) decide(ctx context.Context, op string, ask func(*pgx.Batch), act func(context.Context, querier, *pgx.Batch) error) error {
	return db.persist(ctx, op, func(ctx context.Context) error {
		return db.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
			defer func() {
				if c.Conn().PgConn().TxStatus() != 'I' {
					_, _ = c.Exec(ctx, "ROLLBACK") // if that fails too, the pool drops the connection
				}
			}()
			b := &pgx.Batch{}
			b.Queue("BEGIN")
			ask(b)
			if err := c.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			b = &pgx.Batch{}
			if err := act(ctx, c, b); err != nil {
				return err
			}
			b.Queue("COMMIT")
			return c.SendBatch(ctx, b).Close()
		})
	})
}

// querier is a transaction, or a connection inside one.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// tx runs fn in one transaction, for decisions one after the other. It is rolled
// back on an error or a panic, and repeated like write.
func (db *DB) tx(ctx context.Context, op string, fn func(context.Context, pgx.Tx) error) error {
	return db.persist(ctx, op, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
	})
}

// read runs queries whose result nobody waits for once ctx has ended.
func (db *DB) read(ctx context.Context, op string, fn func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return explain(op, err)
	}
	return db.persist(ctx, op, fn)
}

// persist calls fn under a limit of its own, whatever becomes of ctx: a cancelled
// statement would close its connection and drain the pool (PGS-004).
func (db *DB) persist(ctx context.Context, op string, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.limit)
	defer cancel()
	stale := false
	for try := 1; ; try++ {
		err := fn(ctx)
		switch {
		case err == nil:
			return nil
		case try < maxTries && collided(err):
			pause(ctx, time.Duration(rand.Int64N(int64(try)*int64(10*time.Millisecond))))
		case !stale && outdated(err):
			stale = true
		default:
			return explain(op, err)
		}
	}
}

// collided are errors that another try cures: serialization failure, deadlock.
func collided(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// outdated are errors that one try on a fresh statement or connection cures: a
// cached plan that no longer fits (PGS-009), or a pooled connection that had
// died before anything was sent on it.
func outdated(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "0A000" || pg.Code == "26000" || pg.Code == "42P05"
	}
	return pgconn.SafeToRetry(err)
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
