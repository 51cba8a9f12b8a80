package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"parley/store/record"
)

const (
	// quietBeats is how many heartbeats long a listening connection may be quiet
	// before it is probed (21 s), and probeLimit how long the answer may take.
	quietBeats = 7
	probeLimit = time.Second
	// maxBackoff bounds the wait between attempts to connect again.
	maxBackoff = 5 * time.Second
)

// Listen calls woken with the conversation of each notification for the replica,
// from one goroutine, until ctx ends or the database is closed; then it returns
// nil. It keeps a connection of its own and reconnects by itself. Each time it has
// begun to listen it calls woken with an empty id, which means "look everywhere",
// since notifications of the gap are lost (PGS-001).
func (db *DB) Listen(ctx context.Context, r record.ReplicaID, woken func(record.ConversationID)) error {
	db.listen(ctx, replicaChannel(r), func() { woken("") }, func(payload string) { woken(record.ConversationID(payload)) })
	return nil
}

func replicaChannel(r record.ReplicaID) string { return "parley_" + string(r) }

// listen waits for notifications on a channel; begun is called each time that
// listening has begun (again).
func (db *DB) listen(ctx context.Context, channel string, begun func(), got func(payload string)) {
	ctx, stop := db.until(ctx)
	defer stop()
	backoff := 50 * time.Millisecond
	for ctx.Err() == nil {
		err := db.listenOnce(ctx, channel, func() { backoff = 50 * time.Millisecond; begun() }, got)
		if ctx.Err() != nil {
			return
		}
		db.log.Warn("listening to the database again", zap.Error(err), zap.Duration("after", backoff))
		pause(ctx, backoff+time.Duration(rand.Int64N(int64(backoff))))
		backoff = min(2*backoff, maxBackoff)
	}
}

func (db *DB) listenOnce(ctx context.Context, channel string, begun func(), got func(payload string)) error {
	conn, err := db.dedicated(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	begun()
	for {
		n, err := waitNotification(ctx, conn, quietBeats*db.heartbeat)
		switch {
		case err == nil:
			got(n)
		case errors.Is(err, errQuiet):
			if err := probe(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// errQuiet means that nothing came in the time given; the connection is whole.
var errQuiet = errors.New("store: no notification")

func waitNotification(ctx context.Context, conn *pgx.Conn, limit time.Duration) (string, error) {
	waitCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	n, err := conn.WaitForNotification(waitCtx)
	switch {
	case err == nil:
		return n.Payload, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case waitCtx.Err() != nil && !conn.IsClosed():
		return "", errQuiet
	}
	return "", err
}

// probe finds out whether a silent connection still leads to a server.
func probe(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return conn.Ping(ctx)
}

// hangUp closes a dedicated connection without waiting long for a dead server.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
