package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// basicAccess is all that the first version knows.
	basicAccess = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
	// fileAccess is what a rule for a file may hold.
	fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockVersion is what the kernel offers, 0 for nothing.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// restrict bounds this thread, and what it becomes, for good.
func restrict(r rules) error {
	runtime.LockOSThread()
	version := landlockVersion()
	attr := unix.LandlockRulesetAttr{Handled_access_fs: basicAccess}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	for access, paths := range map[uint64][]string{readAccess: r.Read, attr.Handled_access_fs: r.Write} {
		for _, p := range paths {
			if err := allow(int(set), p, access); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("landlock: %s: %w", p, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// kept are the capabilities that a command of root's keeps: those that package
// managers need. The others reach past the sandbox; CAP_PERFMON alone reads every
// process's environment, and CAP_SYS_ADMIN takes away what bubblewrap has mounted.
var kept = map[uintptr]string{
	unix.CAP_CHOWN: "CAP_CHOWN", unix.CAP_DAC_OVERRIDE: "CAP_DAC_OVERRIDE", unix.CAP_FOWNER: "CAP_FOWNER", unix.CAP_FSETID: "CAP_FSETID",
	unix.CAP_KILL: "CAP_KILL", unix.CAP_SETGID: "CAP_SETGID", unix.CAP_SETUID: "CAP_SETUID", unix.CAP_NET_BIND_SERVICE: "CAP_NET_BIND_SERVICE",
	unix.CAP_SYS_CHROOT: "CAP_SYS_CHROOT", unix.CAP_SETFCAP: "CAP_SETFCAP", unix.CAP_AUDIT_WRITE: "CAP_AUDIT_WRITE",
}

// capabilities are bubblewrap's options that leave root's commands those that are
// kept: of itself it leaves root all. It leaves all too, without a word, if it is to
// keep one that root does not have, as in a container. Who is not root has none.
func capabilities() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	options := []string{"--cap-drop", "ALL"}
	var held [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &held[0]); err != nil {
		return options
	}
	for _, c := range slices.Sorted(maps.Keys(kept)) {
		if held[c/32].Permitted>>(c%32)&1 == 1 {
			options = append(options, "--cap-add", kept[c])
		}
	}
	return options
}

// dropCapabilities bounds what the command that this thread becomes can have. Who is
// not root has none.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for c := range uintptr(64) {
		if kept[c] != "" {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // the kernel knows no more
		}
		if err != nil && !errors.Is(err, unix.EPERM) { // root of a container may have lost the right to it, and them
			return fmt.Errorf("capabilities: %w", err)
		}
	}
	return nil
}

// allow adds a rule for a path; its last part may not be a link, which could lead to
// what is hidden.
func allow(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
	default:
		access &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
