//go:build !linux

package mcp

import "syscall"

// attributes put a server into a group of its own. When parley is killed, the end of
// its input tells it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
