package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

func quiet() *zap.Logger { return zap.NewNop() }

// with sets a parameter of a database URL.
func with(t *testing.T, raw, key, value string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// While the database is down at the start, parley waits and says so; when it is
// there it goes on.
func TestOpenWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	real := storetest.URL(t)
	u, err := url.Parse(real)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	dir := t.TempDir()
	core, logs := observer.New(zap.WarnLevel)
	opened := make(chan error, 1)
	go func() {
		db, err := store.Open(t.Context(), store.OpenConfig{URL: with(t, real, "host", dir)}, zap.New(core))
		if err == nil {
			db.Close()
		}
		opened <- err
	}()
	w := &world{t: t}
	w.eventually("a line in the log", func() bool { return logs.FilterMessage("waiting for the database").Len() > 0 })
	p := newProxy(t, filepath.Join(dir, ".s.PGSQL.5432"), socket)
	defer p.close()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if n := logs.FilterMessage("waiting for the database").Len(); n != 1 {
		t.Errorf("%d lines in a moment, want one every few seconds", n)
	}
}

// It waits no longer than it is allowed to, and not at all for what waiting cannot
// cure. No error shows the password.
func TestOpenGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := store.Open(ctx, store.OpenConfig{URL: "postgres://u:hunter2@/x?host=" + t.TempDir()}, quiet())
	if !errors.Is(err, record.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("without a server: %v", err)
	}
	real := storetest.URL(t)
	for name, u := range map[string]string{
		"unknown database": strings.Replace(real, "/test_", "/none_", 1),
		"broken URL":       "postgres://u:hunter2@host:port/x",
	} {
		_, err := store.Open(t.Context(), store.OpenConfig{URL: u}, quiet())
		if err == nil || errors.Is(err, record.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Several processes may migrate at once, into a schema of its own; a second parley
// in the same database does not get in the way; a newer one is not touched.
func TestMigrations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	mine := with(t, w.url, "search_path", "tenant,public")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, _, err := store.Migrate(ctx, mine, quiet()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	current, target, err := store.Versions(ctx, mine)
	w.check(err)
	if current != target || target < 1 {
		t.Fatalf("version %d of %d", current, target)
	}
	tenant := &world{t: t, url: mine, raw: w.raw, DB: storetest.Open(t, mine)}
	w.talk()
	rc, err := tenant.Receive(ctx, w.request(said("1", "in a schema of its own")), accept)
	w.check(err)
	if rc.Duplicate {
		t.Error("two schemas share their rows")
	}
	w.exec(`DROP SCHEMA tenant CASCADE`)
	_, err = w.Search(ctx, rc.Conversation.ID, "日本", 3)
	w.check(err) // the extension is still there

	w.exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	if _, err = store.Open(ctx, store.OpenConfig{URL: w.url}, quiet()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a newer database: %v", err)
	}
	if _, _, err = store.Migrate(ctx, w.url, quiet()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a newer database: %v", err)
	}
}

// PGS-004, STP-002: fifty turns are stopped at once: what they write is stored all the
// same, and no connection is lost.
func TestCancelStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fences := w.conversations(50)
	backends := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i, f := range fences {
		wg.Go(func() {
			if i == len(fences)/2 {
				cancel()
			}
			if err := w.SetDocument(ctx, string(f.Conversation), "MEMORY.md", "kept"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := query[int](w, `SELECT count(*) FROM memory_documents`); n != len(fences) {
		t.Errorf("%d of %d writes were kept", n, len(fences))
	}
	before := query[int](w, backends)
	if before > 16+4 {
		t.Errorf("%d connections, more than the pool may have", before)
	}
	if _, err := w.Work(ctx, fences[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("a read for nobody: %v", err)
	}
	w.work(fences[0])
	if after := query[int](w, backends); after != before {
		t.Errorf("%d connections after %d: some were dropped", after, before)
	}
}

// PGS-009: a migration by a newer replica does not fail the statements that this one
// has prepared.
func TestStalePlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	for range 3 {
		w.append(k, k.session, "x")
		w.history(k.session)
	}
	w.exec(`ALTER TABLE messages ALTER importance TYPE double precision`)
	w.exec(`ALTER TABLE conversations ADD COLUMN later text`)
	w.exec(`ALTER TABLE conversations ALTER verbosity TYPE varchar(10)`)
	w.append(k, k.session, "x")
	if n := len(w.history(k.session)); n != 4 {
		t.Errorf("%d rows", n)
	}
	w.receive(said("2", "x"))
	if _, err := w.Conversations(ctx, 1); err != nil {
		t.Error(err)
	}
	w.work(k.fence)
}

// PGS-012: a connection that swallows everything costs one time limit, not the
// service; when the network is back so is the store.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	real := storetest.URL(t)
	u, err := url.Parse(real)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := newProxy(t, filepath.Join(dir, ".s.PGSQL.5432"), filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	defer p.close()
	db, err := store.Open(t.Context(), store.OpenConfig{URL: with(t, real, "host", dir), TimeLimit: 300 * time.Millisecond, MaxConns: 2}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	set := func() error { return db.SetDocument(t.Context(), "s", "MEMORY.md", "x") }
	if err := set(); err != nil {
		t.Fatal(err)
	}
	p.swallow(true)
	for range 3 {
		began := time.Now()
		if err := set(); !errors.Is(err, record.ErrUnavailable) || time.Since(began) > 5*time.Second {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
	}
	if err := db.Ping(t.Context()); !errors.Is(err, record.ErrUnavailable) {
		t.Errorf("ping: %v", err)
	}
	p.swallow(false)
	w := &world{t: t}
	w.eventually("the store's recovery", func() bool { return set() == nil })
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// PGS-001: a listener whose connection leads nowhere notices by itself, listens again,
// and says that something may have been missed.
func TestListenerInABlackHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, err := url.Parse(w.url)
	w.check(err)
	dir := t.TempDir()
	p := newProxy(t, filepath.Join(dir, ".s.PGSQL.5432"), filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	defer p.close()
	core, logs := observer.New(zap.WarnLevel)
	far := &world{t: t, url: with(t, w.url, "host", dir), raw: w.raw, replica: w.replica}
	far.DB, err = store.Open(t.Context(), store.OpenConfig{URL: far.url, Heartbeat: 20 * time.Millisecond}, zap.New(core))
	w.check(err)
	t.Cleanup(far.Close)
	woken := far.listening()
	p.swallow(true)
	w.eventually("doubt", func() bool { return logs.FilterMessage("listening to the database again").Len() > 0 })
	p.swallow(false)
	w.wake(woken, "")
	w.exec(`SELECT pg_notify($1, $2)`, "parley_"+string(w.replica), cutOff)
	w.wake(woken, cutOff)
}

// PGS-003: a pooler that serves two clients from one backend is found out and named.
func TestPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pooler(conn) })
		}
	})
	defer wg.Wait()
	defer func() { _ = l.Close() }()
	_, err = store.Open(t.Context(), store.OpenConfig{URL: "postgres://u@/x?sslmode=disable&host=" + dir}, quiet())
	if err == nil || !strings.Contains(err.Error(), "transaction mode") {
		t.Errorf("got %v", err)
	}
}

// pooler answers every client as backend 42.
func pooler(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	b.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		q, ok := m.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		status := byte('I')
		column := func(name string, oid uint32) pgproto3.FieldDescription {
			return pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1}
		}
		switch {
		case strings.Contains(q.String, "server_version"):
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{column("n", 23), column("v", 25)}})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("150000"), []byte("15")}})
		case strings.Contains(q.String, "pg_backend_pid"):
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{column("pid", 23)}})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("42")}})
		case strings.HasPrefix(q.String, "begin"):
			status = 'T'
		}
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: status})
	}
}

// proxy stands between a client and the server's socket.
type proxy struct {
	l      net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex
	cond  *sync.Cond
	hole  bool
	ended bool
	conns []net.Conn
}

func newProxy(t *testing.T, listen, target string) *proxy {
	t.Helper()
	l, err := net.Listen("unix", listen)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target}
	p.cond = sync.NewCond(&p.mu)
	p.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			p.wg.Go(func() { p.copy(in, out) })
			p.wg.Go(func() { p.copy(out, in) })
		}
	})
	return p
}

func (p *proxy) copy(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for p.hole && !p.ended {
			p.cond.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// swallow holds back everything, as a network that drops packets does.
func (p *proxy) swallow(on bool) {
	p.mu.Lock()
	p.hole = on
	p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *proxy) close() {
	_ = p.l.Close()
	p.mu.Lock()
	p.ended = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.cond.Broadcast()
	p.wg.Wait()
}
