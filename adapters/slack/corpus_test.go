package slack

import (
	"strings"
	"testing"

	"parley/adapters/adaptertest/corpus"
	"parley/adapters/adaptertest/fakeslack"
	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// spans are what the fake reads, in the corpus's words. What has no width is not
// shown.
func spans(read []fakeslack.Span, err error) ([]corpus.Span, error) {
	var all []corpus.Span
	for _, s := range read {
		all = append(all, corpus.Span{Text: strings.ReplaceAll(s.Text, apart, ""), Styles: s.Styles})
	}
	return all, err
}

// TestCorpus: what stands in a markdown block.
func TestCorpus(t *testing.T) {
	corpus.Run(t, corpus.Rendering{
		Limits: limits,
		Render: func(s string) string { return strings.TrimSpace(inert(s)) },
		Read:   func(s string) ([]corpus.Span, error) { return spans(fakeslack.ReadMarkdown(s)) },
	})
}

// noticeLimits are those of a text in Slack's own markup.
var noticeLimits = chat.Limits{Text: noticeLimit, Measure: func(s string) int { return length(render(s)) }}

// TestNoticeCorpus: what stands in a text in Slack's own markup. Tables are code, and
// links have no styles inside.
func TestNoticeCorpus(t *testing.T) {
	corpus.Run(t, corpus.Rendering{
		Folder: "notice", Limits: noticeLimits, Render: render, Lacks: []string{"bold"}, // in links
		Read: func(s string) ([]corpus.Span, error) { return spans(fakeslack.ReadMrkdwn(s)) },
	})
}

// FuzzRender: whatever a model writes, Slack takes each part of it in both forms, and
// it calls nobody (MKD-002, MKD-003, MKD-013, MEN-007, SPL-014).
func FuzzRender(f *testing.F) {
	for _, text := range corpus.Texts() {
		f.Add(text.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, part := range markdown.Split(text, limits) {
			c := strings.TrimSpace(inert(part))
			if c == "" {
				continue
			}
			if _, err := fakeslack.ReadMarkdown(c); err != nil {
				t.Fatalf("%v\npart %q", err, part)
			}
			n := notice(part)
			if wrong := fakeslack.CheckMrkdwn(n); len(wrong) > 0 || length(n) > noticeLimit {
				t.Fatalf("%v\npart %q\nnotice %q", wrong, part, n)
			}
			if called := append(fakeslack.Mentions(c), fakeslack.Mentions(n)...); len(called) > 0 {
				t.Fatalf("calls %q\npart %q\nnotice %q", called, part, n)
			}
		}
	})
}
