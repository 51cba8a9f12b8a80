package chatcompletions

import (
	"net/url"
	"strings"

	"parley/agentcore/provider/wire"
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

// lessons tell by the wording of a refusal what has to be left out or said
// differently. What a history holds is a matter of its conversation.
var lessons = []wire.Lesson[quirk]{
	{Words: []string{"max_tokens", "max_completion_tokens", "instead"}, Quirk: quirkCompletionTokens},
	{Words: []string{"max_completion_tokens"}, Quirk: quirkMaxTokens},
	{Words: []string{"reasoning_effort"}, Quirk: quirkNoEffort},
	{Words: []string{"stream_options"}, Quirk: quirkNoStreamOptions},
	{Words: []string{"prompt_cache_key"}, Quirk: quirkNoCacheKey},
	{Words: []string{"tool_choice"}, Quirk: quirkNoToolChoice},
	{Words: []string{"tools", "with stream"}, Quirk: quirkNoToolStream},
	{Words: []string{"not support image"}, Quirk: quirkNoImages},
	{Words: []string{"support image input"}, Quirk: quirkNoImages},
	{Words: []string{"image input", "not"}, Quirk: quirkNoImages},
	{Words: []string{"image_url", "expected"}, Quirk: quirkNoImages},
	{Words: []string{"thinking", "signature"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"thought", "signature", "invalid"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"reasoning_details"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"reasoning_content", "not"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"extra_content"}, Quirk: quirkNoReplay, Session: true},
}
