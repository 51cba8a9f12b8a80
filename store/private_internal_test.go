package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without a server one line says how to get one.
func TestNoPostgres(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "postgres"), nil, 0o755); err != nil { // no initdb beside it
		t.Fatal(err)
	}
	_, err := binariesIn([]string{empty, "/nowhere"})
	if !errors.Is(err, ErrNoPostgres) || !strings.Contains(err.Error(), "apt-get install postgresql") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestVersionNumbers(t *testing.T) {
	for in, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": 15, "postgres (PostgreSQL) 18beta1": 18, "17\n": 17,
		"/usr/lib/postgresql/9/bin": 9, "/usr/pgsql-16/bin": 16, "/usr/local/pgsql/bin": 0,
	} {
		if got := number(in); got != want {
			t.Errorf("number(%q) = %d, want %d", in, got, want)
		}
	}
}

// A folder that somebody else has put in a public place is not used for the socket.
func TestForeignSocketFolder(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := (place{}).own(link); err == nil {
		t.Error("a symbolic link was taken for a folder of our own")
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(dir, "foreign")
		if err := errors.Join(os.Mkdir(foreign, 0o777), os.Chown(foreign, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		if err := (place{}).own(foreign); err == nil {
			t.Error("another account's folder was taken for our own")
		}
	}
}
