package engine

import (
	"regexp"
	"strings"
)

// redacted stands for a secret.
const redacted = "[REDACTED]"

// secretPattern finds one kind of secret. Its expression is only tried on texts
// that contain one of the hints, which makes ordinary text cheap. Group 1, if
// there is one, is kept.
type secretPattern struct {
	hints []string
	expr  *regexp.Regexp
}

func pattern(expr string, hints ...string) secretPattern {
	return secretPattern{hints: hints, expr: regexp.MustCompile(expr)}
}

var secretPatterns = []secretPattern{
	pattern(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`, "PRIVATE KEY-----"),
	pattern(`\bsk-[A-Za-z0-9_-]{16,}`, "sk-"),                                       // OpenAI, Anthropic, OpenRouter
	pattern(`\b[srw]k_(?:live|test)_[A-Za-z0-9]{8,}`, "k_live_", "k_test_"),         // Stripe
	pattern(`\bgh[pousr]_[A-Za-z0-9]{20,}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"), // GitHub
	pattern(`\bgithub_pat_[A-Za-z0-9_]{20,}`, "github_pat_"),
	pattern(`\bglpat-[A-Za-z0-9_-]{16,}`, "glpat-"),
	pattern(`\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{10,}`, "xox", "xapp-"),                                      // Slack
	pattern(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`, "AKIA", "ASIA"),                                             // AWS
	pattern(`\bAIza[A-Za-z0-9_-]{30,}`, "AIza"),                                                          // Google
	pattern(`[0-9]{6,12}:AA[A-Za-z0-9_-]{30,}`, ":AA"),                                                   // Telegram
	pattern(`\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`, ".G", ".X", ".Y", ".Z"), // Discord
	pattern(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, "eyJ"),                       // JSON web tokens
	pattern(`\b(?:npm_|hf_|tvly-|pypi-|dop_v1_|gsk_|xai-|r8_|SG\.)[A-Za-z0-9_.-]{16,}`,
		"npm_", "hf_", "tvly-", "pypi-", "dop_v1_", "gsk_", "xai-", "r8_", "SG."),
	pattern(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|bot)\s+)[^\s"']+`, "uthorization"),
}

// Redact replaces what looks like a secret: keys of known vendors, private keys,
// passwords in URLs, and values whose name says that they are secret (SEC-003).
// What says what the secret was for is kept.
func Redact(text string) string {
	for _, p := range secretPatterns {
		if p.hinted(text) {
			text = p.expr.ReplaceAllString(text, "${1}"+redacted)
		}
	}
	return redactValues(redactURLs(text))
}

func (p secretPattern) hinted(text string) bool {
	for _, h := range p.hints {
		if strings.Contains(text, h) {
			return true
		}
	}
	return false
}

// redactURLs takes the password out of scheme://name:password@host.
func redactURLs(text string) string {
	var b strings.Builder
	for {
		_, after, ok := strings.Cut(text, "://")
		if !ok {
			b.WriteString(text)
			return b.String()
		}
		start := len(text) - len(after)
		b.WriteString(text[:start])
		end := strings.IndexAny(after, "/ \t\r\n\"'<>")
		if end < 0 {
			end = len(after)
		}
		name, password, ok := strings.Cut(after[:end], ":")
		if at := strings.LastIndexByte(password, '@'); ok && at > 0 {
			b.WriteString(name + ":" + redacted)
			text = password[at:] + after[end:]
		} else {
			text = after
		}
	}
}

// secretNames are parts of names whose value is a secret, lower case and without
// separators.
var secretNames = []string{"password", "passwort", "passwd", "secret", "token", "apikey", "accesskey", "privatekey"}

var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// redactValues takes the value out of name=value and name: value, quoted or not,
// if the name says that it is a secret. It looks only around = and :, which is
// much faster than an expression on every word.
func redactValues(text string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '=' && text[i] != ':' || !secretName(text[done:i]) {
			continue
		}
		start := i + 1
		for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
			start++
		}
		if start < len(text) && (text[start] == '"' || text[start] == '\'') {
			start++
		}
		end := start
		for end < len(text) && strings.IndexByte(" \t\r\n\"',;&[]{}", text[end]) < 0 {
			end++
		}
		if end-start < 6 || text[i+1:start] == "" && strings.HasPrefix(text[start:], "//") {
			continue // too short for a secret, or the colon of a URL
		}
		b.WriteString(text[done:start])
		b.WriteString(redacted)
		done, i = end, end-1
	}
	b.WriteString(text[done:])
	return b.String()
}

// secretName says whether text ends with the name of a secret.
func secretName(text string) bool {
	text = strings.TrimRight(text, " \t\"'")
	start := len(text)
	for start > 0 && len(text)-start < 64 && isNameByte(text[start-1]) {
		start--
	}
	if len(text)-start < 5 {
		return false
	}
	name := strings.ToLower(separators.Replace(text[start:]))
	if strings.HasSuffix(name, "tokens") {
		return false // a count
	}
	for _, n := range secretNames {
		if strings.Contains(name, n) {
			return true
		}
	}
	return false
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}
