package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"parley/store/record"
)

const (
	connectTimeout = 5 * time.Second
	// sayEvery is how often the log tells of something that goes on failing.
	sayEvery = 5 * time.Second
	// oldest is the lowest server version that has what the schema needs.
	oldest = 130000
)

// OpenConfig says where the database is. The zero value of every field but URL is
// the default.
type OpenConfig struct {
	// URL is a PostgreSQL URL or DSN. Its search_path, if it has one, names the
	// schema to use, which is made if it is not there.
	URL string
	// MaxConns bounds the pool; 0: 16. A replica needs two connections more.
	MaxConns int32
	// Heartbeat is the time between a replica's heartbeats; 0: 3 s.
	Heartbeat time.Duration
	// TimeLimit bounds each call, retries and the wait for a connection included; 0:
	// 10 s.
	TimeLimit time.Duration
}

// DB is the database. All methods are safe for concurrent use; see the package's
// documentation for what they guarantee.
type DB struct {
	pool      *pgxpool.Pool
	log       *zap.Logger
	heartbeat time.Duration
	limit     time.Duration

	closing context.Context // ends with Close
	close   context.CancelFunc
	running sync.WaitGroup

	chats chatWatch
}

// CheckURL says what is wrong with a URL or DSN, without its password and without
// connecting.
func CheckURL(url string) error {
	_, err := parse(url)
	return err
}

func parse(url string) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database.url: %w", err)
	}
	return c, nil
}

// Open connects, brings the schema up to date and returns the database. While the
// server cannot be reached it waits and says so every few seconds, until ctx ends.
// It refuses a database that a newer parley has migrated (ErrNewer), a server that
// is too old, and one behind a pooler that shares connections between clients.
func Open(ctx context.Context, c OpenConfig, log *zap.Logger) (*DB, error) {
	pc, err := parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	tune(pc, c)
	if err := prepare(ctx, pc.ConnConfig, log); err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, explain("open", err)
	}
	db := &DB{pool: pool, log: log, heartbeat: cmp.Or(c.Heartbeat, 3*time.Second), limit: cmp.Or(c.TimeLimit, 10*time.Second)}
	db.closing, db.close = context.WithCancel(context.WithoutCancel(ctx))
	return db, nil
}

// tune bounds the pool in size and in time, so that a server that went away
// without a word is noticed (PGS-012).
func tune(pc *pgxpool.Config, c OpenConfig) {
	pc.MaxConns = cmp.Or(c.MaxConns, 16)
	pc.MaxConnLifetime, pc.MaxConnLifetimeJitter = time.Hour, 10*time.Minute
	pc.MaxConnIdleTime = 5 * time.Minute
	pc.HealthCheckPeriod = 30 * time.Second
	pc.PingTimeout = 2 * time.Second
	if pc.ConnConfig.ConnectTimeout == 0 || pc.ConnConfig.ConnectTimeout > connectTimeout {
		pc.ConnConfig.ConnectTimeout = connectTimeout
	}
	if _, ok := pc.ConnConfig.RuntimeParams["application_name"]; !ok {
		pc.ConnConfig.RuntimeParams["application_name"] = "parley"
	}
	// A transaction that a dead client left open must not hold its locks (PGS-008).
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SET idle_in_transaction_session_timeout = '30s'`)
		return err
	}
}

// prepare waits for the server and leaves it with the schema of this binary.
func prepare(ctx context.Context, cc *pgx.ConnConfig, log *zap.Logger) error {
	began, said := time.Now(), time.Time{}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := prepareOnce(ctx, cc, log)
		if err == nil || !errors.Is(err, record.ErrUnavailable) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		if time.Since(said) > sayEvery {
			said = time.Now()
			log.Warn("waiting for the database", zap.Error(err), zap.Duration("for", time.Since(began).Round(time.Second)))
		}
		pause(ctx, wait)
	}
}

func prepareOnce(ctx context.Context, cc *pgx.ConnConfig, log *zap.Logger) error {
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return explain("connect", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := checkServer(ctx, conn); err != nil {
		return err
	}
	if err := checkPooler(ctx, conn); err != nil {
		return err
	}
	return migrate(ctx, conn, log)
}

func checkServer(ctx context.Context, conn *pgx.Conn) error {
	var number int
	var name string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version')`,
		pgx.QueryExecModeSimpleProtocol).Scan(&number, &name)
	if err != nil {
		return explain("connect", err)
	}
	if number < oldest {
		return fmt.Errorf("store: the server is PostgreSQL %s; parley needs version %d or newer", name, oldest/10000)
	}
	return nil
}

// checkPooler finds out whether two clients are served by one backend, as a pooler
// in transaction mode does: locks of a session and LISTEN cannot work there
// (PGS-003). A second client that begins a transaction gets the backend that the
// first one was served by a moment ago.
func checkPooler(ctx context.Context, first *pgx.Conn) error {
	second, err := pgx.ConnectConfig(ctx, first.Config())
	if err != nil {
		return explain("connect", err)
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }()
	const backend = `SELECT pg_backend_pid()`
	var a, b int
	if err := first.QueryRow(ctx, backend, pgx.QueryExecModeSimpleProtocol).Scan(&a); err != nil {
		return explain("connect", err)
	}
	tx, err := second.Begin(ctx)
	if err != nil {
		return explain("connect", err)
	}
	if err := tx.QueryRow(ctx, backend, pgx.QueryExecModeSimpleProtocol).Scan(&b); err != nil {
		return explain("connect", err)
	}
	if a == b {
		return errors.New("store: database.url leads to a pooler in transaction mode, where session locks and LISTEN do not work: give the address of PostgreSQL itself, or use session mode")
	}
	return explain("connect", tx.Rollback(ctx))
}

// Ping says whether the database answers, within a few seconds.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return explain("ping", db.pool.Ping(ctx))
}

// Close ends what runs in the background (replicas, listeners), waits for it and
// closes all connections.
func (db *DB) Close() {
	db.close()
	db.running.Wait()
	db.pool.Close()
}

// until returns a context that ends with ctx or with Close.
func (db *DB) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(db.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// dedicated opens a connection outside the pool.
func (db *DB) dedicated(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
}

// schemaOf is the first schema of the connection's search path, "" if it is left
// to the server.
func schemaOf(cc *pgx.ConnConfig) string {
	first, _, _ := strings.Cut(cc.RuntimeParams["search_path"], ",")
	first = strings.Trim(strings.TrimSpace(first), `"`)
	if first == "$user" {
		return ""
	}
	return first
}
