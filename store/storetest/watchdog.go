package storetest

import (
	"os/exec"
	"syscall"
)

// guard stops the server when no test binary has used it for a while: it takes the
// locks of package store's private server as its last user would. Test binaries
// that are killed, or have no TestMain, need nothing more.
const guard = `cd "$1" || exit
exec 9>guard.lock
flock -n 9 || exit 0
while sleep 10; do
	flock -n start.lock flock -n users.lock sh -c 'kill -INT "$(head -n 1 data/postmaster.pid)"; while [ -e data/postmaster.pid ]; do sleep 0.1; done' && exit
done`

// watchdog starts the guard, one for a server. Where there is no flock command
// (macOS) the server goes on until it is stopped by hand.
func watchdog(dir string) error {
	if _, err := exec.LookPath("flock"); err != nil {
		return nil
	}
	cmd := exec.Command("sh", "-c", guard, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
