package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNoPostgres means that there are no PostgreSQL server binaries; its text says
// how to install them.
var ErrNoPostgres = errors.New("store: PostgreSQL is not installed: apt-get install postgresql (Debian, Ubuntu), dnf install postgresql-server (Fedora), " +
	"brew install postgresql (macOS), or set database.url")

// Binaries is a folder with postgres and initdb, and their major version.
type Binaries struct {
	Dir   string
	Major int
}

// FindBinaries returns the machine's PostgreSQL servers: the one in PATH first, then
// those in the usual places, newest first. ErrNoPostgres if there is none.
func FindBinaries() ([]Binaries, error) {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	for _, glob := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", "/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin", "/usr/local/pgsql/bin"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
		dirs = append(dirs, found...)
	}
	return binariesIn(dirs)
}

func binariesIn(dirs []string) ([]Binaries, error) {
	var all []Binaries
	seen := map[string]bool{}
	for _, d := range dirs {
		if major, ok := serverIn(d); ok && !seen[d] {
			seen[d] = true
			all = append(all, Binaries{Dir: d, Major: major})
		}
	}
	if len(all) == 0 {
		return nil, ErrNoPostgres
	}
	return all, nil
}

// number is the first number in a path, 0 if there is none.
func number(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0])
	return n
}

func serverIn(dir string) (major int, ok bool) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, false
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, false
	}
	major = number(string(out)) // postgres (PostgreSQL) 15.18
	return major, major > 0
}

// install makes the data folder unless it is there, and returns the binaries that
// fit it.
func (at place) install(ctx context.Context, volatile bool) (Binaries, error) {
	all, err := FindBinaries()
	if err != nil {
		return Binaries{}, err
	}
	version, err := os.ReadFile(at.path("data/PG_VERSION"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return all[0], at.initialise(ctx, all[0], volatile)
	case err != nil:
		return Binaries{}, fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	have := number(string(version))
	for _, b := range all {
		if b.Major == have {
			return b, nil
		}
	}
	return Binaries{}, fmt.Errorf("store: the data in %s are of PostgreSQL %d, and version %d is installed: install version %d beside it, or move the data with pg_dump; nothing was changed",
		at.path("data"), have, all[0].Major, have)
}

// initialise makes a data folder beside its place and moves it there when it is
// complete, so that a crash leaves no half of one.
func (at place) initialise(ctx context.Context, b Binaries, volatile bool) error {
	left, err := filepath.Glob(at.path("init-*"))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, d := range left {
		_ = os.RemoveAll(d)
	}
	tmp, err := os.MkdirTemp(at.dir, "init-")
	if err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	if err := at.own(tmp); err != nil {
		return err
	}
	// Order by bytes, but letters of every language: lower case matters in searches.
	letters := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		letters = "en_US.UTF-8"
	}
	args := []string{"-D", tmp, "-U", privateUser, "-A", "trust", "-E", "UTF8", "--locale=C", "--lc-ctype=" + letters}
	if volatile {
		args = append(args, "--no-sync")
	} else {
		args = append(args, "--data-checksums")
	}
	cmd := at.command(ctx, b, "initdb", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("store: initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	if err := os.Rename(tmp, at.path("data")); err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	return nil
}

// settings keep the server small and private.
var settings = []string{
	"listen_addresses=", "port=5432", "unix_socket_permissions=0700", "max_connections=100", "shared_buffers=32MB", "jit=off",
	"max_wal_size=256MB", "wal_level=minimal", "max_wal_senders=0", "max_parallel_workers_per_gather=0", "autovacuum_max_workers=1",
	"timezone=UTC", "log_timezone=UTC", "log_checkpoints=off",
}

// launch starts the server in a session of its own, so that neither a signal of the
// terminal nor the end of this process reaches it.
func (at place) launch(b Binaries, volatile bool) (pid int, err error) {
	args := []string{"-D", at.path("data"), "-k", at.run}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	if volatile {
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=300")
	}
	out, err := at.openLog()
	if err != nil {
		return 0, err
	}
	defer func() { _ = out.Close() }()
	cmd := at.command(context.Background(), b, "postgres", args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	pid = cmd.Process.Pid
	// From here on it is known by its pid, like one that another process started.
	return pid, cmd.Process.Release()
}

func (at place) command(ctx context.Context, b Binaries, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, name), args...)
	cmd.Dir = at.dir
	cmd.Env = []string{"PATH=" + b.Dir + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: at.account}
	return cmd
}

const maxLog = 1 << 20

// openLog keeps one former log once it has grown.
func (at place) openLog() (*os.File, error) {
	name := at.path("postgres.log")
	if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
		if err := os.Rename(name, name+".1"); err != nil {
			return nil, fmt.Errorf("store: private PostgreSQL: %w", err)
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	return f, nil
}

// logTail is the end of the server's log on one line.
func (at place) logTail() string {
	b, err := os.ReadFile(at.path("postgres.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

// postmaster is a running server, as its pid file tells.
type postmaster struct {
	pid       int
	socketDir string
}

// postmaster returns the server that runs on the data folder, whoever started it.
// A pid file that a crash left behind, and whose number belongs to another process
// by now, is removed: the server would take it for a running one (containers reuse
// small numbers).
func (at place) postmaster() (postmaster, bool) {
	name := at.path("data/postmaster.pid")
	b, err := os.ReadFile(name)
	if err != nil {
		return postmaster{}, false
	}
	lines := strings.Split(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return postmaster{}, false
	}
	pm := postmaster{pid: pid, socketDir: at.run}
	if len(lines) > 4 && lines[4] != "" {
		pm.socketDir = lines[4]
	}
	if at.gone(pid) {
		_ = os.Remove(name)
		_ = os.Remove(pm.socketDir + socketName + ".lock")
		return postmaster{}, false
	}
	return pm, true
}

// commandLine is a process's arguments, from /proc or, where there is none, ps.
func commandLine(pid int) string {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		return string(b)
	}
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// gone says whether a process is no longer this place's server: it has ended, is a
// zombie that its parent has not buried, or another process has its number. A child
// of ours that has ended is buried here.
func (at place) gone(pid int) bool {
	if wpid, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err == nil && wpid == pid {
		return true
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	line := commandLine(pid)
	if line == "" {
		return !starting(pid)
	}
	return !strings.Contains(line, at.path("data"))
}

// starting says whether a process without a command line is about to get one: for a
// moment after its start the kernel has not set it, as it has none for a zombie.
func starting(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name in brackets may hold anything; the state follows it.
	state := bytes.TrimSpace(b[bytes.LastIndexByte(b, ')')+1:])
	return len(state) > 0 && state[0] != 'Z' && state[0] != 'X'
}
