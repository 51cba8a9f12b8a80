//go:build bench

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"parley/store"
)

// benchProcess is a program under measurement, in a process of its own.
type benchProcess struct {
	cmd *exec.Cmd
	log string // a file, kept with `go test -artifacts`
}

// buildForBench builds a main package as it is delivered.
func buildForBench(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", bin, dir).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, out)
	}
	return bin
}

func startForBench(t *testing.T, bin string, args ...string) *benchProcess {
	t.Helper()
	p := &benchProcess{cmd: exec.Command(bin, args...), log: filepath.Join(t.ArtifactDir(), "log.txt")}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stderr, p.cmd.Dir = log, t.TempDir()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// stop ends the process and waits for it; further calls do nothing.
func (p *benchProcess) stop() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait() // its status is the signal's
	}
}

// startPostgres starts a server with everything that a real one has, durability
// included, and returns its address and process.
func startPostgres(t *testing.T) (url string, pid int) {
	t.Helper()
	p, err := store.StartPrivate(t.Context(), store.PrivateConfig{DataDir: t.TempDir()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(p.Dir())
	})
	file, err := os.ReadFile(filepath.Join(p.Dir(), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	if pid, err = strconv.Atoi(first); err != nil {
		t.Fatal(err)
	}
	return p.URL(), pid
}

// tick is the unit of CPU time in /proc (USER_HZ, which is 100 on every Linux).
const tick = 10 * time.Millisecond

// cpuOf is the CPU time of a process, and of its children that it has waited for.
func cpuOf(pid int) (own, buried time.Duration) {
	f := procStat(pid)
	if len(f) < 15 {
		return 0, 0
	}
	return ticks(f[11]) + ticks(f[12]), ticks(f[13]) + ticks(f[14])
}

// procStat are the fields of /proc/PID/stat behind the name, from the state on.
func procStat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

func ticks(s string) time.Duration {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(n) * tick
}

// cpuOfFamily is the CPU time of a process and all its children, those that have
// ended included.
func cpuOfFamily(pid int) time.Duration {
	own, buried := cpuOf(pid)
	sum := own + buried
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return sum
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := procStat(child); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			own, _ := cpuOf(child)
			sum += own
		}
	}
	return sum
}

// cpuOfMachine is the CPU time that was spent by anybody.
func cpuOfMachine() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	var sum time.Duration
	for i, f := range strings.Fields(first)[1:] {
		if i != 3 && i != 4 { // idle, waiting for a disk
			sum += ticks(f)
		}
	}
	return sum
}

// benchMeter measures one process, and what surrounds it, from start to read.
type benchMeter struct {
	pid, postgres int
	began         time.Time
	cpu, pg, all  time.Duration
	self          time.Duration

	ended    chan struct{}
	sampling sync.WaitGroup
	peak     benchMemory
}

// benchMemory is in KB.
type benchMemory struct{ rss, pss int }

// benchReading is what a meter has measured.
type benchReading struct {
	took time.Duration
	// cpu is of the process, pg of PostgreSQL, fakes of the test with its fakes, others
	// of whatever else ran on the machine.
	cpu, pg, fakes, others time.Duration
	peak                   benchMemory
}

// measure starts a meter; postgres is 0 if there is none.
func measure(pid, postgres int) *benchMeter {
	m := &benchMeter{pid: pid, postgres: postgres, began: time.Now(), ended: make(chan struct{})}
	m.cpu, m.pg, m.self, m.all = m.totals()
	m.sampling.Go(func() {
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for {
			now := memoryOf(pid)
			m.peak = benchMemory{max(m.peak.rss, now.rss), max(m.peak.pss, now.pss)}
			select {
			case <-every.C:
			case <-m.ended:
				return
			}
		}
	})
	return m
}

func (m *benchMeter) totals() (cpu, pg, self, all time.Duration) {
	cpu, _ = cpuOf(m.pid)
	if m.postgres != 0 {
		pg = cpuOfFamily(m.postgres)
	}
	self, _ = cpuOf(os.Getpid())
	return cpu, pg, self, cpuOfMachine()
}

// read ends the measurement, once what follows the last answer is done too.
func (m *benchMeter) read() benchReading {
	took := time.Since(m.began)
	<-time.After(time.Second)
	close(m.ended)
	m.sampling.Wait()
	cpu, pg, self, all := m.totals()
	r := benchReading{took: took, cpu: cpu - m.cpu, pg: pg - m.pg, fakes: self - m.self, peak: m.peak}
	r.others = max(0, all-m.all-r.cpu-r.pg-r.fakes)
	return r
}

// memoryOf is what a process holds now.
func memoryOf(pid int) (m benchMemory) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.Atoi(f[1])
		switch f[0] {
		case "Rss:":
			m.rss = n
		case "Pss:":
			m.pss = n
		}
	}
	return m
}

// diskDelay is the median time in which a page reaches the disk, on which every
// commit waits.
func diskDelay(t *testing.T, dir string) time.Duration {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "page"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 8192)
	var took benchDelays
	for range 101 {
		began := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took.at(0.5)
}
