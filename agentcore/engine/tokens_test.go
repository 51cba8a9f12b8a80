package engine

import (
	"strings"
	"testing"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// CTX-002, CTX-001.
func TestTextTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		min, max int
	}{
		"nothing":  {"", 0, 0},
		"English":  {strings.Repeat("word ", 1000), 1000, 1500},
		"Han":      {strings.Repeat("漢", 100_000), 80_000, 130_000},
		"Hangul":   {strings.Repeat("한", 100_000), 80_000, 130_000},
		"Thai":     {strings.Repeat("ก", 1000), 500, 1300},
		"Cyrillic": {strings.Repeat("ж", 1000), 300, 600},
		"emoji":    {strings.Repeat("🙂", 100), 100, 300},
		"data URL": {"see data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100_000) + "= there", 1500, 1520},
		"no image": {"data:image/ is a scheme " + strings.Repeat("x", 400), 100, 120},
	} {
		if n := TextTokens(tc.text); n < tc.min || n > tc.max {
			t.Errorf("%s: %d tokens, want %d to %d", name, n, tc.min, tc.max)
		}
	}
}

func TestMessageTokens(t *testing.T) {
	plain := MessageTokens(&record.Message{Content: "hello"})
	photo := MessageTokens(&record.Message{Content: "hello", Files: []chat.File{{MIME: "image/png", Size: 1_900_000}}})
	if photo-plain != imageTokens {
		t.Errorf("a photo costs %d", photo-plain)
	}
	wired := MessageTokens(&record.Message{Content: "hello", Wire: strings.Repeat("recalled ", 100)})
	if wired < 200 {
		t.Errorf("what was really sent is not counted: %d", wired)
	}
	if thought := MessageTokens(&record.Message{Content: "hello", Reasoning: &llm.Reasoning{Text: strings.Repeat("because ", 100)}}); thought-plain < 150 {
		t.Errorf("reasoning, which is sent again, costs %d (PRV-037)", thought-plain)
	}
	call := MessageTokens(&record.Message{ToolCalls: []llm.ToolCall{{ID: "call_0123456789abcdef", Name: "session_search", Arguments: `{}`}}})
	if call < 2*envelopeTokens+8 {
		t.Errorf("a call's envelope is not counted: %d", call)
	}
}

func TestPromptTokensIsAnchored(t *testing.T) {
	msgs := said("uauaua", 400)
	s := record.Session{SystemPrompt: strings.Repeat("rule ", 400)}
	tools := []llm.ToolSpec{{Name: "x", Schema: []byte(strings.Repeat("x", 4000))}}
	if got := PromptTokens(s, msgs, tools); got < 500+1000+6*100 {
		t.Errorf("without an anchor: %d", got)
	}
	s.PromptTokens, s.PromptSeq = 7000, 4
	if got, want := PromptTokens(s, msgs, tools), 7000+total(msgs[4:]); got != want {
		t.Errorf("with an anchor: %d, want %d", got, want)
	}
}
