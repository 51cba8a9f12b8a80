package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store"
)

// helperDir asks the test binary to be another parley process: it uses the private
// server of the named folder until its input ends.
const helperDir = "STORE_TEST_PRIVATE_DIR"

func helper(dir string) error {
	p, err := store.StartPrivate(context.Background(), store.PrivateConfig{DataDir: dir, Volatile: true}, quiet())
	if err != nil {
		return err
	}
	fmt.Println(p.URL())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return p.Stop()
}

// process is another parley process.
type process struct {
	*exec.Cmd
	url  string
	stop func() error
}

func startProcess(t *testing.T, binary, dir string, as *syscall.Credential) process {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the other process: %v", err)
	}
	return process{Cmd: cmd, url: strings.TrimSpace(line), stop: func() error { return errors.Join(in.Close(), cmd.Wait()) }}
}

// dataFolder is a data folder for a test; the server's files, which are elsewhere
// for root, go with it.
type dataFolder struct {
	path  string
	files string
}

func folder(t *testing.T) *dataFolder {
	t.Helper()
	d := &dataFolder{path: t.TempDir()}
	t.Cleanup(func() { _ = os.RemoveAll(d.files) })
	return d
}

// start uses the folder's private server until the test ends.
func (d *dataFolder) start(t *testing.T) *store.Private {
	t.Helper()
	return d.startAs(t, store.PrivateConfig{Volatile: true})
}

func (d *dataFolder) startAs(t *testing.T, c store.PrivateConfig) *store.Private {
	t.Helper()
	c.DataDir = d.path
	p, err := store.StartPrivate(t.Context(), c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	d.files = p.Dir()
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func postmasterPID(t *testing.T, p *store.Private) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.Dir(), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// stopped says whether the server has shut down in order.
func stopped(p *store.Private) bool {
	_, err := os.Stat(filepath.Join(p.Dir(), "data", "postmaster.pid"))
	return errors.Is(err, os.ErrNotExist)
}

func usable(t *testing.T, url string) {
	t.Helper()
	db, err := store.Open(t.Context(), store.OpenConfig{URL: url}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.SetDocument(t.Context(), "s", "MEMORY.md", "x"); err != nil {
		t.Fatal(err)
	}
}

func checkpoint(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Several processes and several uses in one share a server; the last one stops it.
func TestPrivateServerIsShared(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := dir.start(t)
	usable(t, first.URL())
	other := startProcess(t, os.Args[0], dir.path, nil)
	if other.url != first.URL() {
		t.Errorf("another server: %s and %s", other.url, first.URL())
	}
	if err := first.Stop(); err != nil || stopped(first) {
		t.Fatalf("stopped: %v, though another process uses it; %v", stopped(first), err)
	}
	usable(t, other.url)
	if err := other.stop(); err != nil {
		t.Fatal(err)
	}
	if !stopped(first) {
		t.Error("the server goes on without users")
	}
	again := dir.start(t)
	usable(t, again.URL())
	if err := again.Stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-again.Done():
	default:
		t.Error("stopped, and not done")
	}
}

// The server asks for a password, which is in a file that commands in the sandbox do not
// see. One that an older parley made, or whose file is lost, gets one at the next start
// of a parley that is alone, and keeps what is in it.
func TestPrivateServerAsksForAPassword(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := dir.startAs(t, store.PrivateConfig{})
	usable(t, first.URL())
	closed(t, first)
	info, err := os.Stat(filepath.Join(first.Dir(), "password"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file: %v, %v", info, err)
	}

	if err := os.Remove(filepath.Join(first.Dir(), "password")); err != nil {
		t.Fatal(err)
	}
	_, err = store.StartPrivate(t.Context(), store.PrivateConfig{DataDir: dir.path}, quiet())
	if err == nil || !strings.Contains(err.Error(), "another parley uses it") {
		t.Errorf("a second process beside one that knows the password: %v", err)
	}
	usable(t, first.URL())
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := dir.startAs(t, store.PrivateConfig{})
	closed(t, second)
	if kept(t, second.URL()) != "x" || first.URL() == second.URL() {
		t.Errorf("after the file was lost: %s, before %s", second.URL(), first.URL())
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}

	hba := filepath.Join(first.Dir(), "data", "pg_hba.conf")
	for name, text := range map[string]string{hba: "local all all trust\n", filepath.Join(first.Dir(), "password"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	third := dir.startAs(t, store.PrivateConfig{})
	closed(t, third)
	if kept(t, third.URL()) != "x" {
		t.Error("what was in it is gone")
	}
}

// closed fails the test if the server lets in who has no password.
func closed(t *testing.T, p *store.Private) {
	t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*url.Userinfo{url.User(u.User.Username()), url.UserPassword(u.User.Username(), "guess")} {
		u.User = who
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			_ = conn.Close(t.Context())
			t.Errorf("%s is let in", who)
		}
	}
}

func kept(t *testing.T, url string) string {
	t.Helper()
	db, err := store.Open(t.Context(), store.OpenConfig{URL: url}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	text, err := db.Document(t.Context(), "s", "MEMORY.md")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A server outlives a parley that is killed; the next one adopts it and stops it like
// its own.
func TestPrivateServerIsAdopted(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	killed := startProcess(t, os.Args[0], dir.path, nil)
	usable(t, killed.url)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	began := time.Now()
	p := dir.start(t)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	usable(t, p.URL())
	if err := p.Stop(); err != nil || !stopped(p) {
		t.Errorf("stopped: %v, %v", stopped(p), err)
	}
}

// A server that dies is noticed, and the next start recovers its data.
func TestPrivateServerDies(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := dir.start(t)
	usable(t, p.URL())
	checkpoint(t, p.URL()) // a volatile server may lose what it has not written yet
	if err := syscall.Kill(postmasterPID(t, p), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("its death was not noticed")
	}
	usable(t, dir.start(t).URL())
}

// A pid file whose number another process has by now, as in a container that was
// started again, does not keep the server from starting.
func TestPrivateServerWithAStalePidFile(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := dir.start(t)
	name := filepath.Join(p.Dir(), "data", "postmaster.pid")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n")
	stale := []byte(fmt.Sprintf("%d\n%s", os.Getpid(), rest))
	if err := os.WriteFile(name, stale, 0o600); err != nil {
		t.Fatal(err)
	}
	usable(t, dir.start(t).URL())
}

// Data of another version are refused, with a way out, and left alone.
func TestPrivateServerOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := dir.start(t)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	version := filepath.Join(p.Dir(), "data", "PG_VERSION")
	if err := os.WriteFile(version, []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.StartPrivate(t.Context(), store.PrivateConfig{DataDir: dir.path}, quiet())
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL 9") || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(version); err != nil || string(b) != "9\n" {
		t.Errorf("the data were touched: %q, %v", b, err)
	}
}

// A crash while the data folder is made leaves nothing that the next start trips over.
func TestPrivateServerAfterAnUnfinishedInit(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := dir.start(t)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(p.Dir(), "data"), filepath.Join(p.Dir(), "init-1")); err != nil {
		t.Fatal(err)
	}
	usable(t, dir.start(t).URL())
	if left, _ := filepath.Glob(filepath.Join(p.Dir(), "init-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An ordinary user's server lives in the data folder, with its socket elsewhere if
// that path is too long for one; root's is not in root's home.
func TestPrivateServerOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		dir := &dataFolder{path: filepath.Join(t.TempDir(), strings.Repeat("long", 30))}
		p := dir.start(t)
		if p.Dir() != filepath.Join(dir.path, "postgres") {
			t.Errorf("its files are in %s", p.Dir())
		}
		usable(t, p.URL())
		return
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	base, err := os.MkdirTemp("/tmp", "store-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	binary, dir := filepath.Join(base, "test"), filepath.Join(base, strings.Repeat("long", 30))
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(binary, data, 0o755), os.Mkdir(dir, 0o700), os.Chmod(base, 0o755), os.Chown(dir, int(uid), int(gid))); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, binary, dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)})
	usable(t, p.url)
	if _, err := os.Stat(filepath.Join(dir, "postgres", "data", "PG_VERSION")); err != nil {
		t.Error(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
