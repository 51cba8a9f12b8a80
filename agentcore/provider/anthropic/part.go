package anthropic

import (
	"encoding/json"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// kind is what a block of an answer is.
type kind uint8

const (
	kindOther kind = iota // what we do not know
	kindText
	kindThinking
	kindRedacted
	kindCall
)

// part is a block of an answer as far as it has come.
type part struct {
	kind  kind
	index int             // as the server numbered it, -1 if it did not
	head  json.RawMessage // as it began
	// text is the text, the thinking or the arguments so far.
	text      strings.Builder
	signature string
	data      string // of redacted thinking
	// spoiled: pieces came that we cannot put together.
	spoiled bool

	call  int    // the index among the calls
	input string // the arguments of a call that has no pieces
}

// head is a block as it begins.
type head struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// begin opens a block. Some servers put all of it into its beginning.
func (f *fold) begin(index *int, raw json.RawMessage) {
	var h head
	if json.Unmarshal(raw, &h) != nil {
		return
	}
	p := &part{index: -1, head: raw}
	if index != nil {
		p.index = *index
	}
	f.parts = append(f.parts, p)
	switch h.Type {
	case "text":
		p.kind = kindText
		f.say(p, h.Text)
	case "thinking":
		p.kind, p.signature = kindThinking, h.Signature
		f.muse(p, h.Thinking)
	case "redacted_thinking":
		p.kind, p.data = kindRedacted, h.Data
	case "tool_use":
		p.kind, p.call, p.input = kindCall, f.calls, "{}"
		f.calls++
		if s := string(h.Input); s != "" && s != "null" {
			p.input = s
		}
		if h.Name == "" {
			h.Name = wire.UnnamedTool
		}
		f.events = append(f.events, llm.ToolCallDelta{Index: p.call, ID: f.ids.Unique(h.ID), Name: h.Name})
	}
}

// find returns the newest block of that number, or the newest of all for a piece
// without one.
func (f *fold) find(index *int) *part {
	for i := len(f.parts) - 1; i >= 0; i-- {
		if index == nil || f.parts[i].index == *index {
			return f.parts[i]
		}
	}
	return nil
}

// thought and redacted are what the API takes back of a thinking block; fields that
// it only gives are refused.
type (
	thought struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	redacted struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
)

// piece is what the block says about the order of the answer, and what of it goes back
// as it came.
func (p *part) piece(signed bool) (wire.Piece, bool) {
	switch p.kind {
	case kindText:
		return wire.Piece{Text: p.text.Len()}, p.text.Len() > 0
	case kindCall:
		return wire.Piece{Call: true}, true
	case kindThinking:
		if p.signature == "" && (signed || p.text.Len() == 0) {
			return wire.Piece{}, false
		}
		return itemPiece(thought{"thinking", p.text.String(), p.signature})
	case kindRedacted:
		if p.data == "" {
			return wire.Piece{}, false
		}
		return itemPiece(redacted{"redacted_thinking", p.data})
	case kindOther:
	}
	return wire.Piece{Item: p.head}, !p.spoiled
}

func itemPiece(v any) (wire.Piece, bool) {
	raw, err := wire.Encode(v)
	return wire.Piece{Item: raw}, err == nil
}
