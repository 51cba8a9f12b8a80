package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"parley/store/record"
)

const (
	// missedBeats is how many heartbeats in a row a replica may miss before it gives
	// up: 12 s of them, while others take it for dead 15 s after the last one
	// (replica_alive in the first migration).
	missedBeats = 4
	// beatLimit bounds one heartbeat.
	beatLimit = 3 * time.Second
)

// replica is this process among those that share the database: a row, and an
// advisory lock held by a connection of its own. The lock is free the moment that
// the process dies; the heartbeat catches a process that is cut off.
type replica struct {
	db   *DB
	id   record.ReplicaID
	host string
	key  int64
	conn *pgx.Conn // nil while the connection is lost
}

// errLocked means that the server has not noticed yet that the former connection
// is gone.
var errLocked = errors.New("store: the replica's lock is still held by its former connection")

// Register makes this process a replica until ctx ends or the database is closed.
// It holds the lock and beats in the background, in the database's time; a lost
// connection is replaced at once. lost is called once, from the background, if
// that fails for longer than others would take the replica for alive: then another
// may own its conversations already. lost must not call Close.
//
// Rows that dead replicas left behind are removed once they own nothing.
func (db *DB) Register(ctx context.Context, host string, lost func(error)) (record.ReplicaID, error) {
	r := &replica{db: db, id: record.ReplicaID(record.NewID()), host: text(host), key: rand.Int64()}
	if err := r.connect(ctx); err != nil {
		return "", explain("register", err)
	}
	_, err := r.conn.Exec(ctx, `DELETE FROM replicas r WHERE NOT replica_alive(r.id)
		AND NOT EXISTS (SELECT FROM conversations WHERE owner = r.id) AND NOT EXISTS (SELECT FROM account_owners WHERE owner = r.id)`)
	if err != nil {
		hangUp(r.conn)
		return "", explain("register", err)
	}
	ctx, stop := db.until(ctx)
	db.running.Go(func() {
		defer stop()
		r.run(ctx, lost)
	})
	return r.id, nil
}

// connect takes the lock on a new connection and beats.
func (r *replica) connect(ctx context.Context) error {
	conn, err := r.db.dedicated(ctx)
	if err != nil {
		return err
	}
	var locked bool
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, r.key).Scan(&locked)
	if err == nil && !locked {
		err = errLocked
	}
	r.conn = conn
	if err == nil {
		err = r.beat(ctx)
	}
	if err != nil {
		r.drop()
	}
	return err
}

func (r *replica) beat(ctx context.Context) error {
	_, err := r.conn.Exec(ctx, `INSERT INTO replicas (id, host, lock_key) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = now()`, r.id, r.host, r.key)
	return err
}

func (r *replica) drop() {
	if r.conn != nil {
		hangUp(r.conn)
		r.conn = nil
	}
}

func (r *replica) run(ctx context.Context, lost func(error)) {
	defer r.drop()
	confirmed, said := time.Now(), time.Time{}
	for {
		r.idle(ctx)
		if ctx.Err() != nil {
			r.leave(ctx)
			return
		}
		began := time.Now()
		err := r.confirm(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			confirmed, said = began, time.Time{}
		case time.Since(confirmed) > missedBeats*r.db.heartbeat:
			lost(fmt.Errorf("store: the replica's lock could not be confirmed for %s: %w", time.Since(confirmed).Round(time.Second), err))
			return
		default:
			if time.Since(said) > sayEvery {
				said = time.Now()
				r.db.log.Warn("the replica's heartbeat failed", zap.Error(err))
			}
			pause(ctx, min(r.db.heartbeat, 200*time.Millisecond))
		}
	}
}

// idle waits for the next heartbeat, or until the connection breaks: waiting for
// a notification reads from it, so that its end is seen at once.
func (r *replica) idle(ctx context.Context) {
	if r.conn == nil {
		return
	}
	next := time.Now().Add(r.db.heartbeat)
	for ctx.Err() == nil && time.Now().Before(next) {
		if _, err := waitNotification(ctx, r.conn, time.Until(next)); err != nil {
			return
		}
	}
}

// confirm beats, on a new connection if the old one fails.
func (r *replica) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatLimit)
	defer cancel()
	if r.conn != nil {
		if r.beat(ctx) == nil {
			return nil
		}
		r.drop()
	}
	return r.connect(ctx)
}

// leave removes the row of a replica that has given everything up.
func (r *replica) leave(ctx context.Context) {
	if r.conn == nil || r.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := r.conn.Exec(ctx, `DELETE FROM replicas WHERE id = $1
		AND NOT EXISTS (SELECT FROM conversations WHERE owner = $1) AND NOT EXISTS (SELECT FROM account_owners WHERE owner = $1)`, r.id)
	if err != nil {
		r.db.log.Debug("the replica's row was left behind", zap.Error(err))
	}
}
