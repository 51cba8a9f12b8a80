package wire

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestIDs is PRV-005 and PRV-007 as a property: whatever ids a history has, on
// the wire they are unique, short, of harmless characters, and each result has the
// id of its own call.
func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{40, 64}).Draw(t, "most")
		short := rapid.Bool().Draw(t, "short")
		w := NewIDs(IDRule{Max: most, Short: short})
		id := rapid.SampledFrom([]string{"", "a", "call_1", "terminal:0", "abcdefghi", strings.Repeat("x", 64) + "1", strings.Repeat("x", 64) + "2", "ä"})
		seen := map[string]bool{}
		for range rapid.IntRange(1, 5).Draw(t, "turns") {
			ids := rapid.SliceOfN(id, 1, 4).Draw(t, "ids")
			w.Turn()
			var calls []string
			for _, id := range ids {
				wire := w.Call(id)
				if seen[wire] || len(wire) > most || short && len(wire) != 9 || !w.fits(wire) {
					t.Fatalf("wire id %q of %q", wire, id)
				}
				seen[wire] = true
				calls = append(calls, wire)
			}
			for i, id := range ids {
				if got := w.Result(id); got != calls[i] {
					t.Fatalf("the result of call %d (%q) has the id %q, want %q", i, id, got, calls[i])
				}
			}
		}
	})
}
