package mcp

import "syscall"

// attributes put a server into a group of its own, and have the kernel end it when
// parley is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
