package terminal

import (
	"syscall"
	"time"
)

const (
	// markName is an environment variable that every process of one call inherits,
	// by which those are found that left the session and lost their parent.
	markName = "PARLEY_CALL"

	graceTime = 200 * time.Millisecond
	killTime  = 500 * time.Millisecond
	lookAgain = 10 * time.Millisecond
)

// entry is a row of the process table. Those that have ended and only wait to
// be collected are not in it.
type entry struct {
	pid, parent, group, session int
	marked                      bool
	keeper                      bool // bubblewrap's own: it ends with what it holds
}

// tree is all processes that one call started.
type tree struct {
	root  int
	mark  string
	since uint64 // of the root, in the process table's own unit; 0: unknown
}

func newTree(root int, mark string) *tree {
	return &tree{root: root, mark: mark, since: startOf(root)}
}

// members lists the tree's living processes: of the root's group or session, with
// the mark, and all their descendants. left is how many of them are the command's.
func (t *tree) members() (pids []int, left int) {
	table := processTable(t)
	in := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if in[p.pid] {
				continue
			}
			if p.group == t.root || p.session == t.root || p.marked || in[p.parent] {
				in[p.pid], grown = true, true
				pids = append(pids, p.pid)
				if !p.keeper {
					left++
				}
			}
		}
	}
	return pids, left
}

// end asks the tree to end, then kills it, looking again each time for what it
// has started meanwhile. It returns how many processes of the command there were at
// first, after at most graceTime + killTime: one that the kernel does not let go (a
// dead network disk) is given up.
func (t *tree) end() int {
	pids, found := t.members()
	if len(pids) == 0 {
		return 0
	}
	signal(pids, syscall.SIGTERM)
	if t.goneWithin(graceTime, nil) {
		return found
	}
	t.goneWithin(killTime, func(pids []int) { signal(pids, syscall.SIGKILL) })
	return found
}

func (t *tree) goneWithin(d time.Duration, each func(pids []int)) bool {
	deadline := time.Now().Add(d)
	for {
		pids, _ := t.members()
		if len(pids) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		if each != nil {
			each(pids)
		}
		time.Sleep(lookAgain)
	}
}

func signal(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may be gone already
	}
}
