package llm

import "strings"

// Split parts the id at the first slash.
func (m ModelID) Split() (provider, model string) {
	p, n, ok := strings.Cut(string(m), "/")
	if !ok {
		return "", string(m)
	}
	return p, n
}

// Facts are what parley knows about a model.
type Facts struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow int
	MaxOutput     int
	Vision        bool
	// Price is per million tokens.
	Price Price
}

// Price is per million tokens, in the budget's currency.
type Price struct{ Input, CachedInput, Output float64 }

// cacheWriting is what writing to a cache costs over ordinary input, at Anthropic; who
// counts no written tokens takes nothing for it.
const cacheWriting = 1.25

// Cost is what usage costs. What the cache served costs less where a price for it is
// known, and what was written to it more.
func (p Price) Cost(u Usage) float64 {
	cached := p.CachedInput
	if cached == 0 {
		cached = p.Input
	}
	fresh := float64(u.Input-u.CachedInput-u.CacheWrite) + cacheWriting*float64(u.CacheWrite)
	return (fresh*p.Input + float64(u.CachedInput)*cached + float64(u.Output)*p.Output) / 1e6
}

// defaultFacts are used for models that nobody described: small enough to be
// safe, large enough to work.
var defaultFacts = Facts{ContextWindow: 128_000, MaxOutput: 8_192}

// builtinFacts is looked up by the longest prefix of the model's own name (the
// part after the provider, and after a router's vendor prefix).
var builtinFacts = map[string]Facts{
	"gpt-5-nano":        {ContextWindow: 400_000, MaxOutput: 128_000, Vision: true, Price: Price{0.05, 0.005, 0.40}},
	"gpt-5-mini":        {ContextWindow: 400_000, MaxOutput: 128_000, Vision: true, Price: Price{0.25, 0.025, 2}},
	"gpt-5":             {ContextWindow: 400_000, MaxOutput: 128_000, Vision: true, Price: Price{1.25, 0.125, 10}},
	"gpt-4.1":           {ContextWindow: 1_047_576, MaxOutput: 32_768, Vision: true, Price: Price{2, 0.5, 8}},
	"gpt-4o":            {ContextWindow: 128_000, MaxOutput: 16_384, Vision: true, Price: Price{2.5, 1.25, 10}},
	"claude-sonnet-4-5": {ContextWindow: 200_000, MaxOutput: 64_000, Vision: true, Price: Price{3, 0.3, 15}},
	"claude-opus-4":     {ContextWindow: 200_000, MaxOutput: 32_000, Vision: true, Price: Price{15, 1.5, 75}},
	"claude-haiku-4-5":  {ContextWindow: 200_000, MaxOutput: 64_000, Vision: true, Price: Price{1, 0.1, 5}},
	"gemini-2.5-pro":    {ContextWindow: 1_048_576, MaxOutput: 65_536, Vision: true, Price: Price{1.25, 0.31, 10}},
	// Embeddings.
	"text-embedding-3-small": {ContextWindow: 8_191, Price: Price{Input: 0.02}},
	"text-embedding-3-large": {ContextWindow: 8_191, Price: Price{Input: 0.13}},

	"gemini-2.5-flash": {ContextWindow: 1_048_576, MaxOutput: 65_536, Vision: true, Price: Price{0.30, 0.075, 2.5}},
}

// FactsOf returns what is known about a model: overrides first, then the built-in
// table by longest prefix, then safe defaults.
func FactsOf(m ModelID, overrides map[ModelID]Facts) Facts {
	if f, ok := overrides[m]; ok {
		return f.or(lookup(m))
	}
	return lookup(m)
}

func lookup(m ModelID) Facts {
	_, name := m.Split()
	if i := strings.LastIndex(name, "/"); i >= 0 {
		name = name[i+1:]
	}
	best, found := "", defaultFacts
	for k, f := range builtinFacts {
		if strings.HasPrefix(name, k) && len(k) > len(best) {
			best, found = k, f
		}
	}
	return found
}

// or fills the zero fields of f from g.
func (f Facts) or(g Facts) Facts {
	if f.ContextWindow == 0 {
		f.ContextWindow = g.ContextWindow
	}
	if f.MaxOutput == 0 {
		f.MaxOutput = g.MaxOutput
	}
	f.Vision = f.Vision || g.Vision
	if f.Price == (Price{}) {
		f.Price = g.Price
	}
	return f
}
