package llm_test

import (
	"math"
	"testing"

	"parley/agentcore/llm"
)

func TestCost(t *testing.T) {
	for _, c := range []struct {
		price llm.Price
		usage llm.Usage
		want  float64
	}{
		{llm.Price{Input: 2, Output: 10}, llm.Usage{Input: 1e6, Output: 1e5}, 3},
		{llm.Price{Input: 2, CachedInput: 1}, llm.Usage{Input: 1e6, CachedInput: 5e5}, 1.5},
		{llm.Price{Input: 2}, llm.Usage{Input: 1e6, CachedInput: 5e5}, 2}, // no price of its own
		{llm.Price{Input: 2}, llm.Usage{Input: 1e6, CacheWrite: 1e6}, 2.5},
		{llm.Price{}, llm.Usage{Input: 1e6, Output: 1e6}, 0},
	} {
		if got := c.price.Cost(c.usage); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v at %+v costs %f, want %f", c.usage, c.price, got, c.want)
		}
	}
}
