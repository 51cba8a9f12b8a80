package store_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// storable is what becomes of text: NUL and what is not UTF-8 is replaced, the rest
// stays.
func storable(s string) string {
	return strings.ReplaceAll(string([]rune(s)), "\x00", "\uFFFD")
}

// nasty generates text as it comes from tools and platforms.
func nasty() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x00", "\xff", "\xed\xa0\x80", `\u0000`, `\\u0000`, `\ud800`, `\ud83d\ude00`, `\`, `"`, "日本語", "W\x00s\x00", "a-b-c", "http://x.y/z?a=b&c"}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	return rapid.Map(rapid.SliceOf(piece), func(p []string) string { return strings.Join(p, "") })
}

// PGS-005: whatever a tool, a model or a person writes is stored, in text and JSON, and
// comes back the same but for what no database text can hold.
func TestAnyTextCanBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	rapid.Check(t, func(rt *rapid.T) {
		s := nasty().Draw(rt, "text")
		m := record.Message{
			Role: llm.Assistant, Content: s, Wire: s, ToolCallID: s, ToolName: s, FromName: s,
			ToolCalls: []llm.ToolCall{{ID: s, Name: s, Arguments: s, Extra: json.RawMessage(`{"sig": "<a&b>", "n": [1,2]}`)}},
			Reasoning: &llm.Reasoning{Text: s, Raw: json.RawMessage(s), Issuer: "x"},
			Files:     []chat.File{{ID: s, Name: s}},
		}
		out, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{m})
		if err != nil {
			rt.Fatal(err)
		}
		msgs, err := w.History(t.Context(), k.session)
		if err != nil {
			rt.Fatal(err)
		}
		got := msgs[len(msgs)-1]
		if got.Seq != out[0].Seq || got.Content != storable(s) || got.Wire != storable(s) || got.ToolName != storable(s) {
			rt.Fatalf("got %q, want %q", got.Content, storable(s))
		}
		if got.ToolCalls[0].Arguments != storable(s) || got.ToolCalls[0].ID != got.ToolCallID || got.Reasoning.Text != storable(s) || got.Files[0].Name != storable(s) {
			rt.Fatalf("got %q in JSON, want %q", got.ToolCalls[0].Arguments, storable(s))
		}
		if !json.Valid(got.Reasoning.Raw) && len(got.Reasoning.Raw) > 0 {
			rt.Fatalf("raw reasoning %q", got.Reasoning.Raw)
		}
		if extra := string(got.ToolCalls[0].Extra); extra != `{"sig":"<a&b>","n":[1,2]}` {
			rt.Fatalf("extra %s", extra)
		}
		if _, err := w.Search(t.Context(), k.fence.Conversation, s, 3); err != nil {
			rt.Fatalf("search for %q: %v", s, err)
		}
	})
}

// PGS-005: escapes in raw JSON are read as JSON reads them.
func TestEscapesInRawJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	for raw, want := range map[string]string{
		`{"t":"W\u0000s"}`:                `{"t":"W\ufffds"}`,
		`{"t":"\\u0000"}`:                 `{"t":"\\u0000"}`,
		`{"t":"\\\u0000"}`:                `{"t":"\\\ufffd"}`,
		`{"t":"\ud83d\ude00"}`:            `{"t":"\ud83d\ude00"}`,
		`{"t":"\ud83d"}`:                  `{"t":"\ufffd"}`,
		`{"t":"\ude00\ud83d"}`:            `{"t":"\ufffd\ufffd"}`,
		`{"t":"\ud83d\n\u00e9\uD83D"}`:    `{"t":"\ufffd\n\u00e9\ufffd"}`,
		`{"nested":[{"a":"\u0000"},"b"]}`: `{"nested":[{"a":"\ufffd"},"b"]}`,
	} {
		m := record.Message{Role: llm.Assistant, Reasoning: &llm.Reasoning{Raw: json.RawMessage(raw)}}
		_, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{m})
		w.check(err)
		msgs := w.history(k.session)
		if got := string(msgs[len(msgs)-1].Reasoning.Raw); got != want {
			t.Errorf("%s became %s, want %s", raw, got, want)
		}
	}
}

// PGS-010, TOL-004: results of megabytes are stored whole, whatever the index can take.
func TestHugeResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	words := func(letters string, n int) string {
		r := rand.New(rand.NewPCG(1, 2))
		l := []rune(letters)
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(l[r.IntN(len(l))])
		}
		return b.String()
	}
	for name, s := range map[string]string{
		"one word":      strings.Repeat("x", 2<<20),
		"random words":  words("abcdefghij   ", 2<<20),
		"hyphens":       words("abcdefg- ", 2<<20),
		"wide letters":  words("𝒜𝒷𝒸𝒹𝓮𝓯𝓰 - ", 2<<20),
		"paths":         words("abcdef/.:- ", 2<<20),
		"binary":        strings.Repeat("W\x00s\x00l\x00\xff", 300_000),
		"without space": strings.Repeat("数据库的密码", 100_000),
	} {
		for _, role := range []llm.Role{llm.ToolRole, llm.User} {
			_, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{{Role: role, Content: s}})
			if err != nil {
				t.Errorf("%s as %s: %v", name, role, err)
				continue
			}
			msgs := w.history(k.session)
			if got := msgs[len(msgs)-1].Content; got != storable(s) || !utf8.ValidString(got) {
				t.Errorf("%s did not come back whole", name)
			}
			w.exec(`DELETE FROM messages`)
		}
	}
}

// All fields of a message come back, frozen content and origin included.
func TestMessageFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	turn := w.turn(k)
	m := record.Message{
		Role: llm.User, Content: "c", Wire: "w", Kind: record.KindSteer, ToolCalls: []llm.ToolCall{{ID: "i", Name: "n", Arguments: "{}"}},
		ToolCallID: "t", ToolName: "n", Reasoning: &llm.Reasoning{Text: "r", Raw: json.RawMessage(`[1]`), Issuer: "i"},
		Files: []chat.File{{ID: "f", Name: "n", MIME: "m", Size: 3}}, From: ann, FromName: "Ann", Platform: "p", Turn: turn.ID, Importance: 0.5,
		OriginSession: record.SessionID(record.NewID()), OriginSeq: 9, CreatedAt: turn.StartedAt,
	}
	out, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{m})
	w.check(err)
	m.Session, m.Seq = k.session, 2
	if d := cmp.Diff(m, out[0]); d != "" {
		t.Errorf("returned: %s", d)
	}
	if d := cmp.Diff(m, w.history(k.session)[1]); d != "" {
		t.Errorf("stored: %s", d)
	}
}
