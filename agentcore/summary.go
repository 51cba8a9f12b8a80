package agentcore

import (
	"encoding/json"
	"strings"

	"parley/agentcore/llm"
)

// Summary is one line about a call for people: the tool with its arguments in words,
// not in JSON, clipped. A single argument needs no name.
func Summary(c llm.ToolCall) string {
	names, values, ok := arguments(c.Arguments)
	switch {
	case !ok:
		return c.Name + ": " + clipLine(c.Arguments, 100)
	case len(names) == 0:
		return c.Name
	case len(names) == 1:
		return c.Name + ": " + clipLine(values[0], 100)
	}
	for i := range names {
		names[i] += " " + values[i]
	}
	return c.Name + ": " + clipLine(strings.Join(names, ", "), 100)
}

// arguments are the members of a JSON object, in its order; ok is false if the text
// is none.
func arguments(text string) (names, values []string, ok bool) {
	if strings.TrimSpace(text) == "" {
		return nil, nil, true
	}
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, nil, false
		}
		value := string(raw)
		var s string
		if json.Unmarshal(raw, &s) == nil {
			value = s
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values, true
}
