package history

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"parley/agentcore/llm"
)

// Canonical returns arguments with sorted keys and without blanks, so that two
// calls that mean the same compare equal. Nothing and null, which several models
// send where there are no arguments, are an empty object; ok is false if they are
// not a JSON object.
func Canonical(arguments string) (canonical string, ok bool) {
	if s := strings.TrimSpace(arguments); s == "" || s == "null" {
		return "{}", true
	}
	dec := json.NewDecoder(strings.NewReader(arguments))
	dec.UseNumber() // large numbers keep their digits
	var object map[string]any
	if err := dec.Decode(&object); err != nil || object == nil {
		return "", false
	}
	if _, err := dec.Token(); err != io.EOF { // something follows the object
		return "", false
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// wireCalls copies calls so that a provider accepts them: valid objects go out
// byte for byte, anything else as an empty object (PRV-019, PRV-020, PRV-032).
func wireCalls(calls []llm.ToolCall) []llm.ToolCall {
	if len(calls) == 0 {
		return nil
	}
	out := make([]llm.ToolCall, len(calls))
	for i, c := range calls {
		c.Name = ToolName(c.Name)
		c.Arguments = wireArguments(c.Arguments)
		out[i] = c
	}
	return out
}

func wireArguments(a string) string {
	if len(a) > 1 && a[0] == '{' && json.Valid([]byte(a)) && clean(a) == a && !hasSurrogate(a) {
		return a
	}
	if c, ok := Canonical(clean(a)); ok {
		return c
	}
	return "{}"
}

// hasSurrogate finds \ud800 and its like: a lone one makes a request invalid for
// servers that decode the arguments (PRV-008). Decoding and encoding mends it.
func hasSurrogate(a string) bool {
	return strings.Contains(a, `\ud`) || strings.Contains(a, `\uD`)
}

// ToolName returns a name that every provider accepts: letters, digits, _ and -,
// at most 64, never empty.
func ToolName(name string) string {
	if legalName(name) {
		return name
	}
	s := strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, name)
	if s == "" {
		return "unnamed"
	}
	return s[:min(len(s), 64)]
}

func legalName(s string) bool {
	for _, r := range s {
		if !nameRune(r) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func nameRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
