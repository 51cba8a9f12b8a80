package markdown

import "testing"

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"**bold _both_** `c<d` ~~gone~~":       "bold both c<d gone",
		"# Head\ntext":                         "Head\ntext",
		"- a\n- b\n  1. c\n  2. d":             "- a\n- b\n  1. c\n  2. d",
		"> quoted\n> > deeper":                 "quoted\ndeeper",
		"[label](https://x.example) &amp; \\*": "label & *",
		"\\&amp;":                              "&amp;",
		"|a|b|\n|-|-|\n|c|d|":                  "a | b\nc | d",
		"- [x] done\n- [ ] open":               "- [x] done\n- [ ] open",
		"1. <!-- -->\n\n   goes on\n2. next":   "goes on\n2. next",
		"[a]: https://x.example":               "[a]: https://x.example", // definitions stay visible
		"Title\n---\nx":                        "Title\n---\nx",
		"<div>a</div>":                         "<div>a</div>",
		"one\ntwo":                             "one\ntwo", // MKD-010
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
}
