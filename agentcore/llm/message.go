package llm

import (
	"encoding/json"
	"strings"
)

// Role says who speaks.
type Role string

// The roles of messages.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message in OpenAI's shape, whatever provider is behind it.
type Message struct {
	Role Role
	// Parts is the content. Assistant and tool messages have at most one text
	// part; a user message has one for each thing said since the last answer.
	Parts []Part
	// ToolCalls are an assistant's, in order.
	ToolCalls []ToolCall
	// ToolCallID says which call a tool message answers.
	ToolCallID string
	// Reasoning is kept beside an assistant's content, never inside it.
	Reasoning *Reasoning
}

// Part is a piece of content: text, or an image.
type Part struct {
	Text  string
	Image *Image
}

// Image is a picture for a model that can see.
type Image struct {
	MIME string
	Data []byte
}

// ToolCall is a model's wish to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON text as the model wrote it; it may be invalid.
	Arguments string `json:"arguments"`
	// Extra is the issuer's opaque companion data (thought signatures), stored as
	// it came and sent back only to Issuer.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Issuer is the model that Extra came from; empty without Extra.
	Issuer string `json:"issuer,omitempty"`
}

// Reasoning is a model's thinking.
type Reasoning struct {
	Text string `json:"text,omitempty"`
	// Raw is the issuer's own form (signatures, encrypted items), stored as it
	// came and replayed only to Issuer.
	Raw    json.RawMessage `json:"raw,omitempty"`
	Issuer string          `json:"issuer,omitempty"`
}

// Text makes a message of one text part.
func Text(r Role, s string) Message { return Message{Role: r, Parts: []Part{{Text: s}}} }

// Text returns the message's text parts joined by blank lines.
func (m Message) Text() string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text // as almost all are
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
