package prompt

import (
	"bytes"
	"encoding/json"
	"strings"
)

// quote makes text inert: one JSON string of at most limit characters, without
// characters that are read but not seen.
func quote(text string, limit int) string {
	r := []rune(visible(text))
	if len(r) > limit {
		r = append(r[:limit:limit], '…')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(string(r)) != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// quoteLines quotes each line of a text that is not blank.
func quoteLines(text string) string {
	var lines []string
	for l := range strings.Lines(text) {
		if l = strings.TrimRight(l, " \t\r\n"); l != "" {
			lines = append(lines, quote(l, len(l)))
		}
	}
	return strings.Join(lines, "\n")
}

// visible takes out NUL, direction overrides and tag characters, by which a text
// can say to a model what a person does not see.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0, '\u202A' <= r && r <= '\u202E', '\u2066' <= r && r <= '\u2069', 0xE0000 <= r && r <= 0xE007F:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
