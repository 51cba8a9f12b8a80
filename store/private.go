package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

// Names inside the private server.
const (
	privateUser     = "parley"
	privateDatabase = "parley"
)

// PrivateConfig says where the private server lives.
type PrivateConfig struct {
	// DataDir is parley's data folder. The server's files are in its subfolder
	// postgres; for root, whose home the server's account may not enter, they are
	// under /var/lib/parley, in a folder named by a hash of DataDir.
	DataDir string
	// Volatile gives up durability, and the password, for speed. It is for tests.
	Volatile bool
}

// Private is a PostgreSQL server of parley's own, made of the machine's binaries
// and reachable through a unix socket only. All parley processes with the same data
// folder share it: the first one starts it, the last one stops it. It survives the
// death of the process that started it; the next one adopts it.
type Private struct {
	place    place
	volatile bool
	pid      int
	url      string
	log      *zap.Logger

	users *os.File // locked as long as this process uses the server
	done  chan struct{}
	watch context.CancelFunc
	over  sync.WaitGroup
	once  sync.Once
	err   error
}

// errEnded means that the server's process is gone.
var errEnded = errors.New("store: the private PostgreSQL has ended")

// StartPrivate makes sure that the private server runs and uses it until Stop. It
// starts one if there is none, after making its data folder the first time, and
// else attaches to the one that runs, whoever started it. Data of another major
// version than the installed ones are refused and left untouched. ErrNoPostgres
// means that there are no server binaries.
func StartPrivate(ctx context.Context, c PrivateConfig, log *zap.Logger) (*Private, error) {
	at, err := placeOf(c.DataDir)
	if err != nil {
		return nil, err
	}
	// Starts and stops of all processes come one after another.
	turn, err := flock(ctx, at.path("start.lock"), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer unlock(turn)
	users, err := flock(ctx, at.path("users.lock"), syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	p := &Private{place: at, volatile: c.Volatile, users: users, log: log, done: make(chan struct{})}
	if err := p.ensure(ctx); err != nil {
		unlock(users)
		return nil, err
	}
	watchCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.watch = cancel
	p.over.Go(func() { p.watchOver(watchCtx) })
	return p, nil
}

// URL is the address of the database for Open.
func (p *Private) URL() string { return p.url }

// Dir is the folder of the server's files.
func (p *Private) Dir() string { return p.place.dir }

// Done is closed when the server has ended, by Stop or by itself.
func (p *Private) Done() <-chan struct{} { return p.done }

// Stop gives the server up, and stops it if no other process uses it: first with a
// fast shutdown, and if that takes too long at once, which costs a recovery at the
// next start but no data. Further calls return the same.
func (p *Private) Stop() error {
	p.once.Do(func() {
		p.watch()
		p.over.Wait()
		p.err = p.stop()
	})
	return p.err
}

func (p *Private) stop() error {
	defer unlock(p.users)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	turn, err := flock(ctx, p.place.path("start.lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock(turn)
	if syscall.Flock(int(p.users.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // others use it
	}
	for _, s := range []struct {
		signal syscall.Signal
		limit  time.Duration
	}{{syscall.SIGINT, 15 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}} {
		if p.endWith(s.signal, s.limit) {
			return nil
		}
	}
	return fmt.Errorf("store: the private PostgreSQL (process %d) does not stop", p.pid)
}

func (p *Private) endWith(signal syscall.Signal, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for ctx.Err() == nil {
		if p.place.gone(p.pid) {
			p.ended()
			return true
		}
		if signal != 0 {
			_ = syscall.Kill(p.pid, signal)
			signal = 0
		}
		pause(ctx, 5*time.Millisecond)
	}
	return false
}

// watchOver notices the server's end, whoever its parent is.
func (p *Private) watchOver(ctx context.Context) {
	for ctx.Err() == nil {
		if p.place.gone(p.pid) {
			p.log.Error("the private PostgreSQL has ended", zap.Int("pid", p.pid), zap.String("log", p.place.path("postgres.log")))
			p.ended()
			return
		}
		pause(ctx, 500*time.Millisecond)
	}
}

func (p *Private) ended() {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
}

// ensure leaves a server that answers.
func (p *Private) ensure(ctx context.Context) error {
	if pm, ok := p.place.postmaster(); ok {
		err := p.adopt(ctx, pm)
		if !errors.Is(err, errEnded) {
			return err
		}
		// It was stopping, or died meanwhile.
	}
	began := time.Now()
	bin, err := p.place.install(ctx, p.volatile)
	if err != nil {
		return err
	}
	// A server that has just been launched would die of the signal to read its rules anew.
	if _, err := p.place.password(0, p.alone()); err != nil {
		return err
	}
	pid, err := p.place.launch(bin, p.volatile)
	if err != nil {
		return err
	}
	if err := p.ready(ctx, pid, p.place.run); err != nil {
		if !p.place.gone(pid) {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		}
		return fmt.Errorf("%w: %s", err, p.place.logTail())
	}
	p.log.Info("started a private PostgreSQL", zap.String("dir", p.place.dir), zap.Int("pid", pid), zap.Duration("took", time.Since(began).Round(time.Millisecond)))
	return nil
}

func (p *Private) adopt(ctx context.Context, pm postmaster) error {
	if err := p.ready(ctx, pm.pid, pm.socketDir); err != nil {
		return err
	}
	p.log.Info("using the private PostgreSQL that runs", zap.String("dir", p.place.dir), zap.Int("pid", pm.pid))
	return nil
}

// ready waits until the database can be used, and makes it the first time. Nobody gets
// to it without the password from then on.
func (p *Private) ready(ctx context.Context, pid int, socketDir string) error {
	alone := p.alone()
	password, err := p.place.password(pid, alone)
	if err != nil {
		return err
	}
	p.pid, p.url = pid, privateURL(socketDir, privateDatabase, password)
	for {
		err := tryConnect(ctx, p.url)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "3D000" { // no such database
			err = makeDatabase(ctx, privateURL(socketDir, "postgres", password))
		}
		if err == nil && alone && !p.volatile {
			err = p.place.guard(ctx, p.url, password, pid)
		}
		switch {
		case err == nil:
			return nil
		case p.place.gone(pid):
			return errEnded
		case ctx.Err() != nil:
			return fmt.Errorf("store: the private PostgreSQL does not get ready: %w", err)
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// alone says that no other process uses the server; none can begin to, since starts
// come one after another.
func (p *Private) alone() bool {
	fd := int(p.users.Fd())
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = syscall.Flock(fd, syscall.LOCK_SH) // what failed may have given it up
		return false
	}
	return syscall.Flock(fd, syscall.LOCK_SH) == nil
}

func privateURL(socketDir, database, password string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(privateUser, password), Path: "/" + database, RawQuery: url.Values{"host": {socketDir}, "port": {"5432"}}.Encode()}
	return u.String()
}

func tryConnect(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func makeDatabase(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{privateDatabase}.Sanitize())
	return err
}

// path is a file in the server's folder.
func (at place) path(name string) string { return filepath.Join(at.dir, name) }
