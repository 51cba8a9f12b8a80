package main

import (
	"context"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// garbage is how many bytes may wait for the garbage collector where the heap is
// larger than that.
const garbage = 12 << 20

// tuneCollector bounds the memory that is garbage, until ctx ends: it is at most as
// much as is in use, of a larger heap about 12 MB, of one above 24 MB a half. Turns
// that wait for their models are most of what a daemon holds, so memory counts more
// than the little CPU that it costs. GOGC in the environment has precedence.
func tuneCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for now := 100; ; {
		runtimemetrics.Read(live)
		if want := collectorPercent(live[0].Value.Uint64()); want != now {
			debug.SetGCPercent(want)
			now = want
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// collectorPercent is GOGC for so many bytes in use.
func collectorPercent(live uint64) int {
	return int(min(100, max(50, garbage*100/max(live, 1))))
}
