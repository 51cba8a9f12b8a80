//go:build bench

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The load: people who talk to one bot at the same time.
const (
	benchActive = 200
	benchKnown  = 1000
	benchEach   = 3
	benchLimit  = 5 * time.Minute
)

// benchModel is the model of the load. benchSlow is one that a thousand people can
// wait for at the same time on two cores.
var (
	benchModel = benchPace{first: 200 * time.Millisecond, rate: 50, tokens: 100}
	benchSlow  = benchPace{first: 200 * time.Millisecond, rate: 5, tokens: 100}
)

// benchSpread is about the time of one answer, so that the load is even.
const benchSpread = 2200 * time.Millisecond

// TestBench measures the daemon as people feel it and as the machine pays for it.
// It fails only if an answer is lost or doubled: the figures are read beside their
// targets.
func TestBench(t *testing.T) {
	bin, relay := buildForBench(t, "."), buildForBench(t, "./testdata/relay")
	fmt.Println(benchMachine(t))
	for _, platform := range farNames() {
		figures := &benchTable{platform: platform}
		t.Run(platform, func(t *testing.T) {
			figures.fill(t, bin, relay)
			fmt.Println(figures)
		})
	}
}

// fill runs the measurements of a platform. The relay and the memory of many chats
// are measured once, on Telegram: the core knows no difference.
func (b *benchTable) fill(t *testing.T, bin, relay string) {
	b.whole = b.platform == "telegram"
	if b.whole {
		t.Run("Floor", func(t *testing.T) {
			c := newBenchCrowd(t, b.platform, false)
			v := c.far.settings().variables
			p := startForBench(t, relay, v["TELEGRAM"], v["TOKEN"], c.model.BaseURL())
			b.floor = c.measured(t, p, 0)
		})
	}
	t.Run("Daemon", func(t *testing.T) {
		c := newBenchCrowd(t, b.platform, false)
		url, postgres := startPostgres(t)
		p := startForBench(t, bin, "serve", "--config", c.configure(t, url))
		b.daemon = c.measured(t, p, postgres)
		if b.whole {
			t.Run("Memory", func(t *testing.T) { b.memory(t, c, p, postgres) })
		}
	})
	t.Run("Limits", func(t *testing.T) {
		c := newBenchCrowd(t, b.platform, true)
		url, postgres := startPostgres(t)
		p := startForBench(t, bin, "serve", "--config", c.configure(t, url))
		b.limited = c.measured(t, p, postgres)
		b.refused = c.far.counts().refused
	})
}

// configure writes the daemon's configuration: what is not named has its default.
func (c *benchCrowd) configure(t *testing.T, database string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	there := c.far.settings()
	text := fmt.Sprintf(`database: { url: %q }
data_dir: %q
http: { listen: "127.0.0.1:0" }
model: fake/model
providers:
  fake: { api_key: key, base_url: %q, api_mode: chat_completions }
access: { allow: [%s] }
platforms: { %s }
`, database, t.TempDir(), c.model.BaseURL(), there.everybody, there.expanded())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// benchResult is one measured run.
type benchResult struct {
	messages []*benchMessage
	reading  benchReading
	tally    benchTally
	calls    int // to the platform
	// cleared is how long after the last answer the last message was gone that an answer
	// had taken the place of.
	cleared time.Duration
}

// measured waits until the program takes in events and puts the load on it: people
// who have never written before.
func (c *benchCrowd) measured(t *testing.T, p *benchProcess, postgres int) benchResult {
	t.Helper()
	select {
	case <-c.connected:
	case <-time.After(benchLimit):
		t.Fatal("the program does not connect")
	}
	return c.load(t, p, postgres, benchRun{first: 1, chats: benchActive, messages: benchEach, pace: benchModel, spread: benchSpread, limit: benchLimit})
}

// load runs a loop under measurement and counts what came of it.
func (c *benchCrowd) load(t *testing.T, p *benchProcess, postgres int, run benchRun) benchResult {
	t.Helper()
	before := c.far.counts().calls
	meter := measure(p.cmd.Process.Pid, postgres)
	r := benchResult{messages: c.talk(t, run)}
	r.reading = meter.read()
	r.calls = c.far.counts().calls - before
	r.cleared = c.cleared(r.messages)
	r.tally = c.tally(r.messages)
	if r.tally != (benchTally{}) {
		t.Errorf("of %d messages: %+v", len(r.messages), r.tally)
	}
	for _, v := range c.far.violations() {
		t.Error(v)
	}
	for _, v := range c.model.Refusals() {
		t.Errorf("the model: %s", v)
	}
	return r
}

// benchTable is all that was measured on a platform.
type benchTable struct {
	platform               string
	whole                  bool // with floor, known and all
	floor, daemon, limited benchResult
	known, all             benchResult
	refused                int
}

// memory goes on with a daemon that knows the active chats: the others write once,
// then the active ones again, then all at the same time.
func (b *benchTable) memory(t *testing.T, c *benchCrowd, p *benchProcess, postgres int) {
	others := benchRun{first: 1 + benchActive, chats: benchKnown - benchActive, messages: 1, pace: benchModel, spread: 10 * time.Second, limit: benchLimit}
	c.load(t, p, postgres, others)
	active := benchRun{first: 1, chats: benchActive, messages: benchEach, pace: benchModel, spread: benchSpread, limit: benchLimit}
	b.known = c.load(t, p, postgres, active)
	all := benchRun{first: 1, chats: benchKnown, messages: 1, pace: benchSlow, spread: 10 * time.Second, limit: benchLimit}
	b.all = c.load(t, p, postgres, all)
}

// benchMachine says what everything ran on.
func benchMachine(t *testing.T) string {
	t.Helper()
	postgres, err := exec.Command("psql", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	cpu := "unknown CPU"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d cores, %s, %s, %s; a page reaches the disk in %s; load before: %s", runtime.NumCPU(), cpu, runtime.Version(),
		strings.TrimSpace(string(postgres)), millis(diskDelay(t, t.TempDir())), strings.TrimSpace(string(load)))
}
