package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"go.uber.org/zap"
)

// ErrNewer means that a newer parley has migrated the database: this one must not
// touch it.
var ErrNewer = errors.New("store: the database was migrated by a newer parley")

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrations are the SQL files of the schema, by name.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// Migrate brings the schema at the URL up to date, once, and returns its version
// before and after. Any number of processes may do so at the same time.
func Migrate(ctx context.Context, url string, log *zap.Logger) (from, to int64, err error) {
	err = withConn(ctx, url, func(conn *pgx.Conn) error {
		if from, to, err = versions(ctx, conn); err != nil {
			return err
		}
		return migrate(ctx, conn, log)
	})
	return from, to, err
}

// Versions returns the version of the schema at the URL, 0 if there is none, and
// the one that this binary needs. It changes nothing.
func Versions(ctx context.Context, url string) (current, target int64, err error) {
	err = withConn(ctx, url, func(conn *pgx.Conn) error {
		current, target, err = versions(ctx, conn)
		return err
	})
	return current, target, err
}

func withConn(ctx context.Context, url string, fn func(*pgx.Conn) error) error {
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("store: database.url: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return explain("connect", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return fn(conn)
}

// migrationLock is the advisory lock of whoever changes the schema.
const migrationLock int64 = 0x7061726c6579 // "parley"

// migrate does nothing if the schema is up to date, which is one query.
func migrate(ctx context.Context, conn *pgx.Conn, log *zap.Logger) error {
	current, target, err := versions(ctx, conn)
	switch {
	case err != nil:
		return err
	case current > target:
		return fmt.Errorf("%w: its schema is %d, this binary knows %d; use the newer binary", ErrNewer, current, target)
	case current == target:
		return nil
	}
	// One process at a time, from the look at the version on.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return explain("wait for another migration", err)
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock) }()
	if current, target, err = versions(ctx, conn); err != nil || current == target {
		return err
	}
	if s := schemaOf(conn.Config()); s != "" {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{s}.Sanitize()); err != nil {
			return explain("make the schema", err)
		}
	}
	db := stdlib.OpenDB(*conn.Config())
	defer func() { _ = db.Close() }()
	p, err := provider(db)
	if err != nil {
		return err
	}
	done, err := p.Up(ctx)
	if err != nil {
		return explain("migrate", err)
	}
	for _, m := range done {
		log.Info("migrated the database", zap.String("migration", m.Source.Path), zap.Duration("took", m.Duration))
	}
	return nil
}

func provider(db *sql.DB) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, db, Migrations(), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("store: migrate: %w", err)
	}
	return p, nil
}

func versions(ctx context.Context, conn *pgx.Conn) (current, target int64, err error) {
	names, err := fs.Glob(Migrations(), "*.sql")
	if err != nil {
		return 0, 0, fmt.Errorf("store: migrations: %w", err)
	}
	for _, n := range names {
		v, err := goose.NumericComponent(n)
		if err != nil {
			return 0, 0, fmt.Errorf("store: migration %s: %w", n, err)
		}
		target = max(target, v)
	}
	// The search path goes on to public where its first schema is not there yet.
	var schema string
	err = conn.QueryRow(ctx, `SELECT coalesce(min(schemaname), '') FROM pg_tables
		WHERE tablename = 'goose_db_version' AND schemaname = coalesce(nullif($1, ''), current_schema())`, schemaOf(conn.Config())).Scan(&schema)
	if err == nil && schema != "" {
		table := pgx.Identifier{schema, "goose_db_version"}.Sanitize()
		err = conn.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+table+` WHERE is_applied`).Scan(&current)
	}
	return current, target, explain("read the schema's version", err)
}
