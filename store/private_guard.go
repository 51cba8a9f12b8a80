package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Who may connect to the private server. A command in the sandbox reaches the socket
// but not the file with the password, so that everybody needs one. The server is open
// as long as it has none: when it is new, was made by an older parley, or lost the file.
// It gets one only while nobody else uses it, who would not know it.
const (
	open    = "# Written by parley.\nlocal all all trust\n"
	guarded = "# Written by parley.\nlocal all all scram-sha-256\n"
)

// password reads the server's password. Without one the server is opened for a moment,
// so that guard can give it a new one.
func (at place) password(pid int, alone bool) (string, error) {
	b, err := os.ReadFile(at.path("password"))
	if word := strings.TrimSpace(string(b)); err == nil && word != "" {
		return word, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	word := rand.Text()
	if at.isGuarded() {
		if !alone {
			return "", fmt.Errorf("store: private PostgreSQL: the file %s with its password is gone, and another parley uses it: stop that one first; nothing is lost", at.path("password"))
		}
		if err := at.allow(open, pid); err != nil {
			return "", err
		}
	}
	return word, at.write("password", word+"\n")
}

func (at place) isGuarded() bool {
	b, err := os.ReadFile(at.path("data/pg_hba.conf"))
	return err == nil && bytes.Equal(b, []byte(guarded))
}

// guard gives the server the password and makes it ask for it, if it does not.
func (at place) guard(ctx context.Context, url, password string, pid int) error {
	if at.isGuarded() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// A password of rand.Text needs no quoting.
	sql := "SET password_encryption = 'scram-sha-256'; ALTER ROLE " + pgx.Identifier{privateUser}.Sanitize() + " PASSWORD '" + password + "'"
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	return at.allow(guarded, pid)
}

// allow replaces the server's rules about who may connect and makes it read them; pid 0:
// it does not run yet.
func (at place) allow(rules string, pid int) error {
	if err := at.write("data/pg_hba.conf", rules); err != nil {
		return err
	}
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	return nil
}

// write replaces a file of the server's folder at once; only the server's account and
// root can read it. It follows no link that the account may have put there.
func (at place) write(name, text string) error {
	tmp := at.path(name + ".new")
	_ = os.Remove(tmp) // of a process that died
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil && at.account != nil {
		err = f.Chown(int(at.account.Uid), int(at.account.Gid))
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(tmp, at.path(name))
	}
	if err != nil {
		return fmt.Errorf("store: private PostgreSQL: %w", err)
	}
	return nil
}
