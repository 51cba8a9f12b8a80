package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// maxMessage bounds the provider's wording in an error, in bytes.
const maxMessage = 600

// problem is an error object, whatever form a server gives it.
type problem struct {
	status  int
	code    string // code, type and status words, lower case, separated by blanks
	message string
	retry   time.Duration
	window  int
}

// Classify makes a *llm.Error from an answer that is none. status is 0 for an
// error inside a stream. Only status, code and the error object are looked at,
// never what was said in the conversation (CTX-009).
func Classify(status int, h http.Header, body []byte) *llm.Error {
	p := parseProblem(body)
	p.status = status
	if status == 0 {
		p.status = statusInCode(p.code)
	}
	if d := retryHeader(h, time.Now()); d > 0 {
		p.retry = d
	}
	if p.retry == 0 {
		p.retry = retryText(p.message)
	}
	e := &llm.Error{Kind: p.kind(), Status: status, RetryAfter: p.retry, Message: Bounded(p.message, maxMessage)}
	if status == 0 {
		e.Status = p.status
	}
	if e.Kind == llm.KindOverflow {
		if e.Window = p.window; e.Window == 0 {
			e.Window = windowIn(p.message)
		}
	}
	if e.Kind == llm.KindUnknown && p.status == http.StatusNotFound {
		e.Message = "no such path, check base_url: " + e.Message
	}
	return e
}

// parseProblem finds the error object: {"error":{…}}, {"error":"…"}, a list of
// them, a bare object, {"detail":…}, or plain text.
func parseProblem(body []byte) problem {
	var p problem
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		p.message = pageText(body)
		return p
	}
	p.collect(v)
	p.code = strings.ToLower(p.code)
	p.message = strings.TrimSpace(p.message)
	return p
}

// collect walks an error object. OpenRouter wraps the upstream's error as text in
// metadata.raw; Gemini puts the delay into details.
func (p *problem) collect(v any) {
	switch v := v.(type) {
	case string:
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
			p.collect(inner)
			return
		}
		p.say(v)
	case []any:
		for _, item := range v {
			p.collect(item)
		}
	case map[string]any:
		p.object(v)
	}
}

func (p *problem) object(m map[string]any) {
	for _, key := range []string{"code", "type", "status", "reason", "object"} {
		switch word := m[key].(type) {
		case string:
			p.code += " " + word
		case float64:
			p.code += " " + strconv.FormatFloat(word, 'f', -1, 64)
		}
	}
	for _, key := range []string{"message", "error", "errors", "detail", "details", "msg", "metadata", "raw", "innererror"} {
		if inner, ok := m[key]; ok {
			p.collect(inner)
		}
	}
	if s, ok := m["retryDelay"].(string); ok {
		if d, err := time.ParseDuration(s); err == nil {
			p.retry = atLeastNow(d)
		}
	}
	if n, ok := m["retry_after"].(float64); ok {
		p.retry = atLeastNow(time.Duration(n * float64(time.Second)))
	}
	if n, ok := m["n_ctx"].(float64); ok {
		p.window = int(n)
	}
}

func (p *problem) say(s string) {
	if s = strings.TrimSpace(s); s == "" || strings.Contains(p.message, s) {
		return
	}
	if p.message != "" {
		p.message += "; "
	}
	p.message += s
}

// statusInCode returns the HTTP status that an error inside a stream names.
func statusInCode(code string) int {
	for _, word := range strings.Fields(code) {
		if n, err := strconv.Atoi(word); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return 0
}

// kind applies the table of the mission's section 3.
func (p *problem) kind() llm.ErrorKind {
	msg := strings.ToLower(p.message)
	all := p.code + " " + msg
	switch {
	case p.status != http.StatusUnauthorized && matches(all, filterWords):
		return llm.KindFiltered
	case p.status == http.StatusTooManyRequests && strings.Contains(msg, "extra usage") && strings.Contains(msg, "long context"):
		return llm.KindOverflow
	case overflowStatus(p.status) && matches(all, overflowWords) && !matches(msg, notOverflowWords):
		return llm.KindOverflow
	}
	switch p.status {
	case http.StatusUnauthorized:
		return llm.KindAuth
	case http.StatusPaymentRequired:
		if matches(msg, transientWords) {
			return llm.KindRateLimit
		}
		return llm.KindBilling
	case http.StatusForbidden:
		return p.forbidden(all)
	case http.StatusNotFound:
		return p.notFound(all)
	case http.StatusRequestTimeout, http.StatusGatewayTimeout, 524:
		return llm.KindTimeout
	case http.StatusRequestEntityTooLarge:
		return llm.KindOverflow
	case http.StatusTooManyRequests:
		return p.tooMany(all)
	}
	switch {
	case p.status >= 500:
		return p.serverError(msg)
	case p.status >= 400:
		return p.badRequest(all)
	case p.status >= 300:
		return llm.KindUnknown
	}
	return p.inStream(all)
}

// overflowStatus says where the wordings of an overflow are looked for: a rate
// limit and a bill speak of tokens too.
func overflowStatus(status int) bool {
	return status == 0 || status == 400 || status == 413 || status == 422 || status >= 500
}

func (p *problem) forbidden(all string) llm.ErrorKind {
	switch {
	case matches(all, billingWords):
		return llm.KindBilling
	case matches(all, temporaryWords):
		return llm.KindOverloaded
	}
	return llm.KindAuth
}

// notFound tells a model that does not exist from a wrong base URL, which must not
// silently switch models.
func (p *problem) notFound(all string) llm.ErrorKind {
	switch {
	case matches(all, billingWords):
		return llm.KindBilling
	case strings.Contains(all, "data policy"):
		return llm.KindUnknown
	case strings.Contains(all, "support image input"):
		return llm.KindMalformed
	case matches(all, modelWords) || modelMissing.MatchString(all):
		return llm.KindNotFound
	}
	return llm.KindUnknown
}

// tooMany tells the empty account from the full minute. Gemini names plan and
// billing in ordinary limits, but then it says when to come back.
func (p *problem) tooMany(all string) llm.ErrorKind {
	switch {
	case matches(p.code, billingWords) || p.retry == 0 && matches(all, billingWords):
		return llm.KindBilling
	case matches(all, overloadWords):
		return llm.KindOverloaded
	}
	return llm.KindRateLimit
}

func (p *problem) badRequest(all string) llm.ErrorKind {
	switch {
	case matches(all, keyWords):
		return llm.KindAuth
	case matches(all, billingWords):
		return llm.KindBilling
	case matches(all, modelWords) || modelMissing.MatchString(all):
		return llm.KindNotFound
	case matches(p.code, rateWords):
		return llm.KindRateLimit
	}
	return llm.KindMalformed
}

func (p *problem) serverError(msg string) llm.ErrorKind {
	if p.status <= 502 && (strings.Contains(p.code, "invalid_request") || strings.Contains(msg, "cannot use tools with stream")) {
		return llm.KindMalformed
	}
	return llm.KindOverloaded
}

// inStream classifies an error without any status: the server had accepted the
// request, so what it does not explain is its own failure.
func (p *problem) inStream(all string) llm.ErrorKind {
	switch {
	case matches(all, billingWords):
		return llm.KindBilling
	case matches(all, rateWords):
		return llm.KindRateLimit
	case matches(all, keyWords):
		return llm.KindAuth
	case matches(p.code, modelWords):
		return llm.KindNotFound
	case strings.Contains(p.code, "invalid_request"):
		return llm.KindMalformed
	case strings.Contains(all, "timeout") || strings.Contains(all, "timed out"):
		return llm.KindTimeout
	}
	return llm.KindOverloaded
}

func matches(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// pageText makes a line of what is no JSON: the title of a web page, or the text.
func pageText(body []byte) string {
	s := string(body)
	if i := strings.Index(strings.ToLower(s), "<title>"); i >= 0 {
		title, _, _ := strings.Cut(s[i+len("<title>"):], "<")
		return strings.TrimSpace(title)
	}
	return strings.Join(strings.Fields(s), " ")
}

// Bounded cuts s to at most n bytes, at the beginning of a character.
func Bounded(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

var keyShape = regexp.MustCompile(`\b(sk|pk|gsk|xai|AIza|key)[-_][A-Za-z0-9_*-]{6,}`)

// scrub removes whatever looks like a key: some servers repeat it.
func scrub(s string, key secret.String) string {
	if !key.Empty() {
		s = strings.ReplaceAll(s, key.Reveal(), secret.Mask)
	}
	return keyShape.ReplaceAllString(s, secret.Mask)
}

// networkMessage leaves out the method and the address, which may hold a secret.
func networkMessage(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return Bounded(err.Error(), maxMessage)
}
