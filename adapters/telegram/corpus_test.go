package telegram

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"parley/adapters/adaptertest/corpus"
	"parley/adapters/adaptertest/faketelegram"
	"parley/gateway/markdown"
)

// TestCorpus: headings are bold, and so is what is bold in them; tables are code.
func TestCorpus(t *testing.T) {
	corpus.Run(t, corpus.Rendering{Limits: limits, Render: render, Read: read})
}

// formats are the corpus's names of Telegram's entities.
var formats = map[string]string{
	"bold": "bold", "italic": "italic", "strikethrough": "strike", "code": "code", "pre": "pre", "blockquote": "quote", "text_link": "link",
	"text_mention": "mention",
}

// read cuts what Telegram makes of HTML where its format changes.
func read(html string) ([]corpus.Span, error) {
	text, entities, err := faketelegram.Read(html)
	if err != nil {
		return nil, err
	}
	units := utf16.Encode([]rune(text))
	cuts := []int{0, len(units)}
	for _, e := range entities {
		cuts = append(cuts, e.Offset, e.Offset+e.Length)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var spans []corpus.Span
	for i, from := range cuts[:len(cuts)-1] {
		s := corpus.Span{Text: string(utf16.Decode(units[from:cuts[i+1]]))}
		for _, e := range entities {
			if e.Offset <= from && from < e.Offset+e.Length {
				s.Styles = append(s.Styles, formats[e.Type])
				if more := e.URL + e.Language; more != "" {
					s.Styles = append(s.Styles, more)
				}
			}
		}
		spans = append(spans, s)
	}
	return spans, nil
}

// FuzzRender: whatever a model writes, Telegram takes each part of it (MKD-002, MKD-003, MKD-013, SPL-014).
func FuzzRender(f *testing.F) {
	for _, text := range corpus.Texts() {
		f.Add(text.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, part := range markdown.Split(text, limits) {
			html := render(part)
			if strings.TrimSpace(html) == "" {
				continue // it is sent as it was written
			}
			if _, _, err := faketelegram.Read(html); err != nil {
				t.Fatalf("%v\npart %q\nHTML %q", err, part, html)
			}
		}
	})
}
