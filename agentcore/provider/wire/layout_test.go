package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/agentcore/llm"
)

// TestLayout: whatever an answer was made of, its issuer gets it back piece by piece
// (PRV-010); another model gets the text and the calls, and so does the issuer once the
// message was changed.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Layout
		var want, texts []string
		m := llm.Message{Role: llm.Assistant}
		for i := range rapid.IntRange(1, 6).Draw(t, "pieces") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				item := fmt.Sprintf(`{"n":1.0,"b":"<%d>"}`, i)
				l, want = append(l, Piece{Item: json.RawMessage(item)}), append(want, item)
			case 1:
				text := rapid.StringN(1, 5, -1).Draw(t, "text")
				l, want, texts = append(l, Piece{Text: len(text), Phase: "p"}), append(want, text), append(texts, text)
			default:
				id := fmt.Sprint("call ", i)
				l, want = append(l, Piece{Call: true}), append(want, id)
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id})
			}
		}
		if len(texts) > 0 {
			m.Parts = []llm.Part{{Text: strings.Join(texts, separator)}}
		}
		m.Reasoning = &llm.Reasoning{Raw: l.Encode(), Issuer: "a/m"}
		walk := func(issuer string) (got []string, ours bool) {
			pieces, ours := LayoutOf(m, issuer)
			pieces.Walk(m, func(p Piece, text string, call *llm.ToolCall) {
				switch {
				case call != nil:
					got = append(got, call.ID)
				case len(p.Item) > 0:
					got = append(got, string(p.Item))
				default:
					got = append(got, text)
				}
			})
			return got, ours
		}
		if got, ours := walk("a/m"); l.Encode() != nil && (!ours || fmt.Sprint(got) != fmt.Sprint(want)) {
			t.Fatalf("the issuer gets %q, want %q", got, want)
		}
		if got, ours := walk("b/m"); ours || strings.Contains(fmt.Sprint(got), `"n"`) {
			t.Fatalf("another model gets %q", got)
		}
		m.Parts = []llm.Part{{Text: m.Text() + " and more"}}
		if got, ours := walk("a/m"); ours || len(got) != 1+len(m.ToolCalls) {
			t.Fatalf("changed: %q", got)
		}
	})
}

func TestLayoutSaysNothingNew(t *testing.T) {
	if raw := (Layout{{Text: 3}, {Call: true}}).Encode(); raw != nil {
		t.Errorf("a layout of text and calls is stored: %s", raw)
	}
}
