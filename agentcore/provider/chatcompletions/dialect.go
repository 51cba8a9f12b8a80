package chatcompletions

import (
	"net/url"
	"strings"

	"parley/agentcore/llm"
)

// dialect is what is known beforehand about a server.
type dialect struct {
	// completionTokens: the limit is max_completion_tokens for every model.
	completionTokens bool
	// cacheKey: prompt_cache_key is understood.
	cacheKey bool
	// reasoningContent: reasoning_content must come back on every assistant message
	// (PRV-016).
	reasoningContent bool
	// shortIDs: tool call ids have nine letters or digits.
	shortIDs bool
}

// dialectOf goes by the provider's name, and by the host where the name says
// nothing.
func dialectOf(name, baseURL string) dialect {
	host := ""
	if u, err := url.Parse(baseURL); err == nil {
		host = u.Hostname()
	}
	is := func(known, domain string) bool {
		return name == known || host == domain || strings.HasSuffix(host, "."+domain)
	}
	official := is("openai", "openai.com") || is("azure", "azure.com")
	return dialect{
		completionTokens: official,
		cacheKey:         official,
		reasoningContent: is("deepseek", "deepseek.com") || is("moonshot", "moonshot.ai") || is("moonshot", "moonshot.cn"),
		shortIDs:         is("mistral", "mistral.ai"),
	}
}

// reasoningModel says whether the model, under whatever router, refuses
// max_tokens.
func reasoningModel(model string) bool {
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	for _, family := range []string{"gpt-5", "gpt-6", "o1", "o3", "o4"} {
		if strings.HasPrefix(model, family) {
			return true
		}
	}
	return false
}

// quirk is a set of what a model's refusals have taught. The next request to it is
// changed accordingly.
type quirk uint

const (
	quirkCompletionTokens quirk = 1 << iota // wants max_completion_tokens
	quirkMaxTokens                          // wants max_tokens
	quirkNoEffort                           // has no reasoning_effort
	quirkNoStreamOptions                    // has no stream_options
	quirkNoCacheKey                         // has no prompt_cache_key
	quirkNoToolChoice                       // has no tool_choice
	quirkNoToolStream                       // cannot stream when tools are given (PRV-041)
	quirkNoImages                           // cannot see
	quirkNoReplay                           // refuses reasoning that is sent back
)

func (q quirk) has(r quirk) bool { return q&r != 0 }

// refusals tell by their wording what has to be left out or said differently. All
// words of a row must occur; the first row wins.
var refusals = []struct {
	words []string
	quirk quirk
}{
	{[]string{"max_tokens", "max_completion_tokens", "instead"}, quirkCompletionTokens},
	{[]string{"max_completion_tokens"}, quirkMaxTokens},
	{[]string{"reasoning_effort"}, quirkNoEffort},
	{[]string{"stream_options"}, quirkNoStreamOptions},
	{[]string{"prompt_cache_key"}, quirkNoCacheKey},
	{[]string{"tool_choice"}, quirkNoToolChoice},
	{[]string{"tools", "with stream"}, quirkNoToolStream},
	{[]string{"not support image"}, quirkNoImages},
	{[]string{"support image input"}, quirkNoImages},
	{[]string{"image input", "not"}, quirkNoImages},
	{[]string{"image_url", "expected"}, quirkNoImages},
	{[]string{"thinking", "signature"}, quirkNoReplay},
	{[]string{"thought", "signature", "invalid"}, quirkNoReplay},
	{[]string{"reasoning_details"}, quirkNoReplay},
	{[]string{"reasoning_content", "not"}, quirkNoReplay},
	{[]string{"extra_content"}, quirkNoReplay},
}

// quirkOf returns what a refusal teaches, or nothing.
func quirkOf(e *llm.Error) quirk {
	if e.Kind != llm.KindMalformed {
		return 0
	}
	msg := strings.ToLower(e.Message)
	for _, r := range refusals {
		if containsAll(msg, r.words) {
			return r.quirk
		}
	}
	return 0
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}
