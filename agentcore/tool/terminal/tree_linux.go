package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// processTable reads /proc. What started before the tree's root cannot belong to it
// and is left out, which spares reading most environments.
func processTable(t *tree) []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var table []entry
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, started, ok := readStat(pid)
		if !ok || started < t.since {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", name, "environ"))
		p.marked = bytes.Contains(env, []byte(markName+"="+t.mark))
		table = append(table, p)
	}
	return table
}

func startOf(pid int) uint64 {
	_, started, _ := readStat(pid)
	return started
}

// readStat reads one process; ok is false if it is gone or a zombie. started is
// in clock ticks since boot.
func readStat(pid int) (p entry, started uint64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, 0, false
	}
	// pid (name) state parent group session … started(22nd); a name may hold
	// anything, parentheses too.
	end := bytes.LastIndexByte(b, ')')
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return p, 0, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(string(f[i])); return v }
	started, _ = strconv.ParseUint(string(f[19]), 10, 64)
	keeper := bytes.HasSuffix(b[:max(end, 0)], []byte("(bwrap"))
	return entry{pid: pid, parent: n(1), group: n(2), session: n(3), keeper: keeper}, started, true
}
