package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The wordings of providers, in lower case. They are matched against codes and
// messages of error objects only.
var (
	filterWords = []string{
		"content_filter", "content_policy", "content policy", "responsibleaipolicyviolation", "content management policy",
		"safety system", "moderation", "data_inspection_failed", "prohibited_content", "sensitive_words",
	}
	overflowWords = []string{
		"context_length_exceeded", "context length exceeded", "exceed_context_size", "context_window_exceeded", "context window",
		"maximum context", "context length of", "context size", "longer than the model's context", "prompt is too long",
		"prompt too long", "input is too long", "input too long", "maximum prompt length", "exceeded model token limit",
		"input token count", "maximum number of tokens allowed", "number of input tokens", "prompt token count",
		"range of input length", "too large for model", "`inputs` tokens", "when context the overflows",
		"reduce the length of the messages", "reduce the length of your prompt", "too many tokens",
		"request too large", "request_too_large", "request entity too large", "exceeds context limit", "exceed context limit",
		"input length", "exceeds the limit of", "model_max_prompt_tokens_exceeded", "tokens_limit_reached",
	}
	// notOverflowWords: a rate, or the size of an image.
	notOverflowWords = []string{"please wait", "image exceeds"}
	billingWords     = []string{
		"insufficient_quota", "insufficient_credits", "insufficient_balance", "insufficient balance", "insufficient credits",
		"insufficient funds", "insufficient quota", "billing_hard_limit", "billing hard limit", "billing_not_active",
		"credit balance", "exceeded your current quota", "out of credits", "add credits", "not enough credits", "requires more credits",
		"payment_required", "payment required", "billing_error", "key limit exceeded", "spending limit", "spend limit", "monthly limit", "arrearage",
		"quota_exhausted", "account is not active", "no credits", "purchase credits",
	}
	transientWords = []string{"in-flight", "try again in", "try again later", "resets at", "temporarily"}
	temporaryWords = []string{"upstream_unavailable", "temporarily", "try again later", "service unavailable"}
	overloadWords  = []string{"overloaded", "at capacity", "over capacity", "capacity exceeded", "capacity_exceeded", "engine is currently"}
	rateWords      = []string{"rate_limit", "rate limit", "rate-limit", "too_many_requests", "too many requests", "resource_exhausted", "throttl"}
	keyWords       = []string{
		"invalid_api_key", "incorrect api key", "api key not valid", "api_key_invalid", "invalid api key", "api key expired",
		"authentication_error", "unauthenticated", "missing api key", "permission_denied", "no auth credentials",
	}
	modelWords = []string{
		"model_not_found", "model not found", "model_not_exist", "model not exist", "unknown model", "unknown_model", "invalid model",
		"invalid_model", "not a valid model", "no such model", "no endpoints found", "model is not supported", "unsupported model",
		"model_not_supported", "model_decommissioned", "has been decommissioned", "does not exist or you do not have access",
		"no allowed providers", "deploymentnotfound", "not_found_error model:",
	}
	modelMissing = regexp.MustCompile(`\bmodels?\b.{0,120}(not found|does not exist|not exist|is not available|is not found|isn't available)`)
)

// windows are the wordings that name the model's real window, as one group.
var windows = compile(
	`maximum context length (?:is|of) (\d[\d,]*)`,
	`maximum prompt length is (\d[\d,]*)`,
	`maximum number of tokens allowed \(?(\d[\d,]*)`,
	`available context size \((\d[\d,]*)`,
	`model token limit: (\d[\d,]*)`,
	`exceeds the limit of (\d[\d,]*)`,
	`> (\d[\d,]*) maximum`,
	`for model with (\d[\d,]*) maximum`,
	`context length of (?:only )?(\d[\d,]*)`,
	`must be <= (\d[\d,]*)`,
	`input length should be \[\d+, (\d[\d,]*)\]`,
	`context limit: .* > (\d[\d,]*)`,
	`context window of (\d[\d,]*)`,
)

func compile(patterns ...string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = regexp.MustCompile(p)
	}
	return out
}

// windowIn returns the window in tokens that an overflow names, else 0.
func windowIn(message string) int {
	message = strings.ToLower(message)
	for _, re := range windows {
		if m := re.FindStringSubmatch(message); m != nil {
			if n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")); err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}

// atLeastNow keeps a demand of no wait at all, or of a moment that is past, apart
// from no demand, which is 0 (PRV-025).
func atLeastNow(d time.Duration) time.Duration { return max(d, time.Millisecond) }

// retryHeader returns what the headers ask for: retry-after-ms, or Retry-After in
// seconds or as a date; 0 if they say nothing that can be read.
func retryHeader(h http.Header, now time.Time) time.Duration {
	if s := strings.TrimSpace(h.Get("Retry-After-Ms")); decimal.MatchString(s) {
		if ms, err := strconv.ParseFloat(s, 64); err == nil {
			return atLeastNow(time.Duration(ms * float64(time.Millisecond)))
		}
	}
	s := strings.TrimSpace(h.Get("Retry-After"))
	if decimal.MatchString(s) {
		if sec, err := strconv.ParseFloat(s, 64); err == nil {
			return atLeastNow(time.Duration(sec * float64(time.Second)))
		}
	}
	if t, err := http.ParseTime(s); err == nil {
		return atLeastNow(t.Sub(now))
	}
	return 0
}

var (
	decimal   = regexp.MustCompile(`^\d{1,9}(\.\d+)?$`)
	tryAgain  = regexp.MustCompile(`(?i)(?:try again in|retry in|retry after|wait) +((?:\d+(?:\.\d+)?(?:ms|h|m|s) *)+)`)
	tryAgainN = regexp.MustCompile(`(?i)(?:try again in|retry in|retry after|wait) +(\d+(?:\.\d+)?) *(second|minute|hour)`)
)

// retryText returns what the wording asks for: "try again in 6m12.5s", "retry in
// 20 seconds"; 0 if it asks for nothing.
func retryText(message string) time.Duration {
	if m := tryAgain.FindStringSubmatch(message); m != nil {
		if d, err := time.ParseDuration(strings.ReplaceAll(m[1], " ", "")); err == nil {
			return atLeastNow(d)
		}
	}
	m := tryAgainN.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	unit := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}[strings.ToLower(m[2])]
	return atLeastNow(time.Duration(n * float64(unit)))
}
