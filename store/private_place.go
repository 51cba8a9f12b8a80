package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// maxSocketPath is what a socket's address holds on every system (103 bytes and a
// NUL on macOS, 107 on Linux).
const maxSocketPath = 103

const socketName = "/.s.PGSQL.5432"

// place is where a private server lives and as whom it runs.
type place struct {
	dir string // everything but perhaps the socket
	run string // the socket's folder
	// account is the unprivileged account to run as, nil for the process's own.
	account *syscall.Credential
}

// PrivateDir is where the private server of a data folder keeps its files.
func PrivateDir(dataDir string) (string, error) {
	at, err := placeOf(dataDir)
	return at.dir, err
}

// placeOf finds and makes the folders for a data folder.
func placeOf(dataDir string) (place, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return place{}, fmt.Errorf("store: data_dir: %w", err)
	}
	sum := sha256.Sum256([]byte(abs))
	hash := hex.EncodeToString(sum[:6])
	at := place{dir: filepath.Join(abs, "postgres")}
	if os.Geteuid() == 0 {
		// The server refuses to run as root.
		if at.account, err = unprivileged(); err != nil {
			return place{}, err
		}
		at.dir = filepath.Join("/var/lib/parley", hash)
		if err := os.MkdirAll(filepath.Dir(at.dir), 0o755); err != nil {
			return place{}, fmt.Errorf("store: private PostgreSQL: %w", err)
		}
	}
	at.run = filepath.Join(at.dir, "run")
	if len(at.run)+len(socketName) > maxSocketPath {
		at.run = filepath.Join(os.TempDir(), fmt.Sprintf("parley-%d-%s", os.Geteuid(), hash))
	}
	for _, d := range []string{at.dir, at.run} {
		if err := at.own(d); err != nil {
			return place{}, err
		}
	}
	return at, nil
}

// own makes a folder that only the server's account can enter, and refuses one
// that somebody else has put there.
func (at place) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	uid := uint32(os.Geteuid())
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || st.Uid != uid && (at.account == nil || st.Uid != at.account.Uid) {
		return fmt.Errorf("store: private PostgreSQL: %s belongs to somebody else", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	if at.account != nil {
		if err := os.Chown(dir, int(at.account.Uid), int(at.account.Gid)); err != nil {
			return fmt.Errorf("store: private PostgreSQL: %w", err)
		}
	}
	return nil
}

// unprivileged is the account that root runs the server as.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("store: PostgreSQL does not run as root, and there is no account postgres or nobody: run parley as an ordinary user, or set database.url")
}

// flock opens a file and locks it; the lock goes with the process, however it ends.
func flock(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		pause(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			_ = f.Close()
			return nil, fmt.Errorf("store: private PostgreSQL: another parley is starting or stopping it: %w", ctx.Err())
		}
	}
}

func unlock(f *os.File) { _ = f.Close() }
