package terminal

import "golang.org/x/sys/unix"

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// processTable asks the kernel for its table. It tells neither session nor
// environment, so a process that leaves the group and loses its parent too is
// not found.
func processTable(*tree) []entry {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var table []entry
	for i := range all {
		k := &all[i]
		if k.Proc.P_stat == zombie {
			continue
		}
		table = append(table, entry{pid: int(k.Proc.P_pid), parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid)})
	}
	return table
}

func startOf(int) uint64 { return 0 }
