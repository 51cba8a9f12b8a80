package discord

import (
	"strings"
	"testing"

	"parley/adapters/adaptertest/corpus"
	"parley/adapters/adaptertest/fakediscord"
	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// TestCorpus: headings are headings, tables are code, and marks that Discord would
// not read as such around code are left out.
func TestCorpus(t *testing.T) {
	corpus.Run(t, corpus.Rendering{Limits: limits, Render: render, Read: read})
}

func read(markup string) ([]corpus.Span, error) {
	spans, err := fakediscord.Read(markup)
	out := make([]corpus.Span, len(spans))
	for i, s := range spans {
		out[i] = corpus.Span(s)
	}
	return out, err
}

// FuzzRender: whatever a model writes, Discord reads each part of it as it was meant:
// no mark is left over, and nobody is mentioned (MKD-002, MKD-013, MEN-007, SPL-014).
func FuzzRender(f *testing.F) {
	for _, text := range corpus.Texts() {
		f.Add(text.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, part := range markdown.Split(text, limits) {
			markup := compose(chat.Outgoing{Text: part, Progress: []string{text}})
			if strings.TrimSpace(markup) == "" {
				continue
			}
			spans, err := fakediscord.Read(markup)
			if err != nil {
				t.Fatalf("%v\npart %q\nmarkup %q", err, part, markup)
			}
			for _, s := range spans {
				for _, style := range s.Styles {
					if style == "mention" {
						t.Fatalf("%q is mentioned\npart %q\nmarkup %q", s.Text, part, markup)
					}
				}
			}
		}
	})
}
