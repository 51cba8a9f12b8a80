package wire

import (
	"encoding/json"

	"parley/agentcore/llm"
)

// Piece is one piece of an answer: what only its issuer understands, a part of the
// visible text, or a call.
type Piece struct {
	// Item is the issuer's, as it came: encrypted or signed thinking, and what we do
	// not know.
	Item json.RawMessage `json:"item,omitempty"`
	// Text is the length in bytes of this part of the message's text. Parts are
	// joined by a blank line.
	Text int `json:"text,omitempty"`
	// Phase is the issuer's word for the part ("commentary").
	Phase string `json:"phase,omitempty"`
	// Call: the message's next call stands here.
	Call bool `json:"call,omitempty"`
}

// Layout is an answer's pieces in their order. An issuer that signs its thinking
// wants them back as one unit and in this order, or not at all (PRV-010). Texts and
// calls are held by the message itself; the layout says where they stood.
type Layout []Piece

// separator stands between two parts of a text.
const separator = "\n\n"

// Encode makes the Raw of a Reasoning. It is nil for a layout that says nothing that
// the message does not.
func (l Layout) Encode() json.RawMessage {
	tells := false
	for _, p := range l {
		tells = tells || len(p.Item) > 0 || p.Phase != ""
	}
	if !tells {
		return nil
	}
	raw, err := Encode(l)
	if err != nil {
		return nil
	}
	return raw
}

// LayoutOf returns how to say an assistant message to a model: as that gave it if it
// is the issuer and nothing was changed since, else the text and then the calls.
// ours says whether it is the issuer's own layout.
func LayoutOf(m llm.Message, issuer string) (pieces Layout, ours bool) {
	if r := m.Reasoning; r != nil && len(r.Raw) > 0 && r.Issuer == issuer {
		if json.Unmarshal(r.Raw, &pieces) == nil && pieces.fits(m) {
			return pieces, true
		}
	}
	pieces = nil
	if n := len(m.Text()); n > 0 {
		pieces = append(pieces, Piece{Text: n})
	}
	for range m.ToolCalls {
		pieces = append(pieces, Piece{Call: true})
	}
	return pieces, false
}

// fits says whether the message is still the one that the layout was made of.
func (l Layout) fits(m llm.Message) bool {
	text, calls := 0, 0
	for _, p := range l {
		if p.Call {
			calls++
		}
		if p.Text > 0 {
			if text > 0 {
				text += len(separator)
			}
			text += p.Text
		}
	}
	return text == len(m.Text()) && calls == len(m.ToolCalls)
}

// Walk calls f for each piece with its part of the message's text, and with its call
// if it is one.
func (l Layout) Walk(m llm.Message, f func(p Piece, text string, call *llm.ToolCall)) {
	rest, calls, begun := m.Text(), m.ToolCalls, false
	for _, p := range l {
		text, call := "", (*llm.ToolCall)(nil)
		if p.Text > 0 {
			if begun {
				rest = rest[len(separator):]
			}
			text, rest, begun = rest[:p.Text], rest[p.Text:], true
		}
		if p.Call {
			call, calls = &calls[0], calls[1:]
		}
		f(p, text, call)
	}
}
