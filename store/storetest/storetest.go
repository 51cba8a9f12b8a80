// Package storetest gives each test a database of its own on a real PostgreSQL.
//
// All test binaries of a user share one private server (package store's own),
// which the first one starts; databases are copies of a migrated template and are
// dropped when their test ends. Only _test.go files import it.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"parley/store"
)

// New opens a fresh, migrated database; it is closed and dropped when the test
// ends.
func New(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, URL(t))
}

// Open opens one more handle on a database of URL, as a second process would; it is
// closed when the test ends.
func Open(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.OpenConfig{URL: url, Heartbeat: 50 * time.Millisecond}, zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// URL makes a fresh, migrated database and returns its URL, for tests that start
// the program itself. It is dropped when the test ends, whoever is connected.
func URL(t testing.TB) string {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), counter.Add(1))
	if err := s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+s.template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return s.urlOf(name)
}

var (
	start   = sync.OnceValues(startServer)
	counter atomic.Int64
)

// server is the shared PostgreSQL.
type server struct {
	url      string // of its own database, where databases are made
	template string
}

func startServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bins, err := store.FindBinaries()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("parley-test-%d-%d", os.Geteuid(), bins[0].Major))
	// Tests end without a word, so that nobody stops the server: watchdog does.
	p, err := store.StartPrivate(ctx, store.PrivateConfig{DataDir: dir, Volatile: true}, zap.NewNop())
	if err != nil {
		return nil, err
	}
	if err := watchdog(p.Dir()); err != nil {
		return nil, err
	}
	s := &server{url: p.URL()}
	if s.template, err = templateName(); err != nil {
		return nil, err
	}
	return s, s.prepare(ctx)
}

func (s *server) urlOf(database string) string {
	u, err := url.Parse(s.url)
	if err != nil {
		panic(err) // store made it
	}
	u.Path = "/" + database
	return u.String()
}

func (s *server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// templateName changes with the migrations.
func templateName() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(store.Migrations(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(store.Migrations(), path)
		h.Write(b)
		return err
	})
	return "template_" + hex.EncodeToString(h.Sum(nil)[:6]), err
}

// prepare makes the template, one process at a time, and drops the databases of
// test binaries that were killed.
func (s *server) prepare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(1)`); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE datname LIKE 'test\_%' OR datname LIKE 'template\_%'`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	have := false
	for _, n := range names {
		have = have || n == s.template
		if n == s.template || !abandoned(n) {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{n}.Sanitize()+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	if have {
		return nil
	}
	return s.makeTemplate(ctx, conn)
}

// abandoned says whether the process that a test's database is named after is
// gone. Templates stay: another build may be using its own.
func abandoned(name string) bool {
	parts := strings.Split(name, "_")
	pid, err := strconv.Atoi(parts[1])
	return err == nil && parts[0] == "test" && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func (s *server) makeTemplate(ctx context.Context, conn *pgx.Conn) error {
	const raw = "test_0_template"
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + raw, "CREATE DATABASE " + raw} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if _, _, err := store.Migrate(ctx, s.urlOf(raw), zap.NewNop()); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "ALTER DATABASE "+raw+" RENAME TO "+s.template)
	return err
}
