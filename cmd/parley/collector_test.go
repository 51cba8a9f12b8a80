package main

import "testing"

func TestCollectorPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 1 << 20: 100, 12 << 20: 100, 16 << 20: 75, 24 << 20: 50, 1 << 30: 50} {
		if got := collectorPercent(live); got != want {
			t.Errorf("%d bytes in use: %d, want %d", live, got, want)
		}
	}
}
