package engine

import (
	"strings"

	"parley/agentcore/llm"
	"parley/store/record"
)

const (
	// imageTokens is what a picture costs, whatever its bytes (CTX-001).
	imageTokens = 1500
	// envelopeTokens is what surrounds a message, a call or a tool.
	envelopeTokens = 10
)

// PromptTokens estimates the size of the next prompt. It is anchored on the count
// that the provider itself reported, if there is one: only newer rows are
// estimated. Otherwise the system prompt, the tools and all rows are.
func PromptTokens(s record.Session, msgs []record.Message, tools []llm.ToolSpec) int {
	if s.PromptTokens > 0 {
		n := s.PromptTokens
		for i := len(msgs) - 1; i >= 0 && msgs[i].Seq > s.PromptSeq; i-- {
			n += MessageTokens(&msgs[i])
		}
		return n
	}
	return fixedTokens(s, tools) + total(msgs)
}

// fixedTokens is what no compression makes smaller.
func fixedTokens(s record.Session, tools []llm.ToolSpec) int {
	n := TextTokens(s.SystemPrompt)
	for _, t := range tools {
		n += TextTokens(t.Name) + TextTokens(t.Description) + TextTokens(string(t.Schema)) + envelopeTokens
	}
	return n
}

func total(msgs []record.Message) (n int) {
	for i := range msgs {
		n += MessageTokens(&msgs[i])
	}
	return n
}

// MessageTokens estimates one row as it is sent: what was really sent where that
// is frozen, tool calls with their whole envelope, pictures flat. The issuer's
// opaque reasoning counts nothing.
func MessageTokens(m *record.Message) int {
	text := m.Content
	if m.Wire != "" {
		text = m.Wire
	}
	n := envelopeTokens + TextTokens(text) + TextTokens(m.ToolCallID)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		n += envelopeTokens + TextTokens(c.ID) + TextTokens(c.Name) + TextTokens(c.Arguments)
	}
	if m.Reasoning != nil {
		n += TextTokens(m.Reasoning.Text)
	}
	for i := range m.Files {
		if strings.HasPrefix(m.Files[i].MIME, "image/") {
			n += imageTokens
		} else {
			n += envelopeTokens + TextTokens(m.Files[i].Name)
		}
	}
	return n
}

// TextTokens estimates a text by its scripts: four ASCII characters to a token,
// two of the alphabets with two-byte letters, one of Han, kana, Hangul, Thai and
// the like, half an emoji (CTX-002). Pictures inlined as data URLs count flat.
func TextTokens(s string) int {
	images := 0
	for {
		from, to, ok := findDataURL(s)
		if !ok {
			break
		}
		images++
		s = s[:from] + s[to:]
	}
	quarters := 0
	for i := range len(s) {
		quarters += int(quartersOf[s[i]])
	}
	return (quarters+3)/4 + images*imageTokens
}

// quartersOf gives what a byte adds, in quarters of a token. Only the first byte
// of a character counts.
var quartersOf = func() (t [256]uint8) {
	for b := range t {
		switch {
		case b < 0x80:
			t[b] = 1
		case b < 0xC0: // the rest of a character
		case b < 0xE0:
			t[b] = 2
		case b < 0xF0:
			t[b] = 4
		default:
			t[b] = 8
		}
	}
	return t
}()

// findDataURL finds the first picture inlined as base64.
func findDataURL(s string) (from, to int, ok bool) {
	const scheme, coding = "data:image/", ";base64,"
	from = strings.Index(s, scheme)
	if from < 0 {
		return 0, 0, false
	}
	rest := s[from:]
	at := strings.Index(rest[:min(len(rest), 64)], coding)
	if at < 0 {
		return 0, 0, false
	}
	to = from + at + len(coding)
	for to < len(s) && isBase64(s[to]) {
		to++
	}
	return from, to, true
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '='
}
