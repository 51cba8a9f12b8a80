package web

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRender(t *testing.T) {
	r := newRenderer()
	link := func(href, label string) string {
		return `<p dir="auto"><a href="` + href + `" target="_blank" rel="noopener noreferrer nofollow">` + label + "</a></p>\n"
	}
	for _, tc := range []struct{ name, in, want string }{
		{"line breaks stay (MKD-010)", "one\ntwo", "<p dir=\"auto\">one<br>\ntwo</p>\n"},
		{"nesting is balanced (MKD-013)", "***x***", "<p dir=\"auto\"><em><strong>x</strong></em></p>\n"},
		{"markup is text (MKD-002)", "a <b onclick=x()>b</b> < c && d", "<p dir=\"auto\">a &lt;b onclick=x()&gt;b&lt;/b&gt; &lt; c &amp;&amp; d</p>\n"},
		{"a block of markup is text", "<script>alert(1)</script>", "<p dir=\"auto\">&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"},
		{"link", "[a](https://x.example/?a=1&b=2)", link("https://x.example/?a=1&amp;b=2", "a")},
		{"mail", "<me@x.example>", link("mailto:me@x.example", "me@x.example")},
		{"bare link", "https://x.example", link("https://x.example", "https://x.example")},
		{"script link", "[a](javascript:alert(1))", "<p dir=\"auto\">a</p>\n"},
		{"script link in capitals", "[a](JaVaScRiPt:alert(1))", "<p dir=\"auto\">a</p>\n"},
		{"script link with entities", "[a](java&#x73;cript:alert(1))", "<p dir=\"auto\">a</p>\n"},
		{"automatic script link", "<javascript:alert(1)>", "<p dir=\"auto\">javascript:alert(1)</p>\n"},
		{"data link", "[a](data:text/html,x)", "<p dir=\"auto\">a</p>\n"},
		{"link of this page", "[a](/api/stop)", "<p dir=\"auto\">a</p>\n"},
		{"link that takes the scheme", "[a](//evil.example)", "<p dir=\"auto\">a</p>\n"},
		{"quote in a link", `[a](https://x.example/"onmouseover="alert(1))`, link("https://x.example/%22onmouseover=%22alert(1)", "a")},
		{"picture", "![cat](https://x.example/c.png)", link("https://x.example/c.png", "🖼 cat")},
		{"picture without words", "![](https://x.example/c.png)", link("https://x.example/c.png", "🖼 https://x.example/c.png")},
		{"bad picture", "![cat](javascript:x)", "<p dir=\"auto\">🖼 cat</p>\n"},
		{"code", "```go\"><img\na < b\n```", `<figure class="code" dir="ltr"><figcaption><span>go&#34;&gt;&lt;img</span><button type="button" class="copy-code">Copy<span class="hidden"> the code</span></button></figcaption><pre tabindex="0"><code>a &lt; b` + "\n</code></pre></figure>\n"},
		{"code that is not closed yet", "```\na", `<figure class="code" dir="ltr"><figcaption><span></span><button type="button" class="copy-code">Copy<span class="hidden"> the code</span></button></figcaption><pre tabindex="0"><code>a` + "\n</code></pre></figure>\n"},
		{"table", "|a|\n|-|\n|b|", "<div class=\"table\" tabindex=\"0\"><table>\n<thead>\n<tr>\n<th dir=\"auto\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td dir=\"auto\">b</td>\n</tr>\n</tbody>\n</table></div>\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := render(r, tc.in); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

var (
	tag       = regexp.MustCompile(`<(/?)([a-z0-9]+)((?: [a-z]+(?:="[^"<>]*")?)*)>`)
	attribute = regexp.MustCompile(` ([a-z]+)(?:="([^"]*)")?`)
	address   = regexp.MustCompile(`(?i)^(https?:|mailto:)`)
	tags      = strings.Fields("p br em strong del code pre figure figcaption span button a ul ol li blockquote h1 h2 h3 h4 h5 h6 hr div table thead tbody tr th td input")
	names     = strings.Fields("dir class href target rel type tabindex start align disabled checked")
)

// Whatever the text, the result is tags of the fixed set, balanced (MKD-013), with
// harmless attributes, and text.
func TestRenderIsSafeWhateverTheText(t *testing.T) {
	r := newRenderer()
	piece := rapid.SampledFrom([]string{
		"<script>", "</script>", "<svg onload=alert(1)>", "<img src=x onerror=alert(1)>", "<a href='javascript:x'>", "<!--", "-->", "<![CDATA[", "]]>", "<?php", "?>",
		"javascript:alert(1)", "https://x.example", "data:text/html,", "vbscript:", "\"", "'", "`", "``", "```", "~~~", "\n", "\n\n", "> ", "- ", "1. ", "# ", "| a | b |\n|---|---|\n", "| a | b |\n|--:|:-:|\n| c | d |\n",
		"[", "](", "]: ", ")", "![", "*", "**", "_", "~~", "\\", "&lt;", "&#x6a;", "&colon;", "<", ">", "&", "word", "שלום", "\t", " ", "    ", "- [ ] ", "- [x] ", "\x00", "\xff", "<me@x.example>", "mailto:me",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "text"), "")
		out := render(r, in)
		if rest := tag.ReplaceAllString(out, ""); strings.ContainsAny(rest, "<>") {
			t.Fatalf("%q leaves raw markup: %q", in, out)
		}
		var open []string
		for _, m := range tag.FindAllStringSubmatch(out, -1) {
			name := m[2]
			if !slices.Contains(tags, name) {
				t.Fatalf("%q makes a tag %s: %q", in, name, out)
			}
			for _, a := range attribute.FindAllStringSubmatch(m[3], -1) {
				if !slices.Contains(names, a[1]) || a[1] == "href" && !address.MatchString(a[2]) {
					t.Fatalf("%q makes an attribute %s: %q", in, a[0], out)
				}
			}
			switch {
			case name == "br" || name == "hr" || name == "input":
			case m[1] == "":
				open = append(open, name)
			case len(open) == 0 || open[len(open)-1] != name:
				t.Fatalf("%q is not balanced: %q", in, out)
			default:
				open = open[:len(open)-1]
			}
		}
		if len(open) > 0 {
			t.Fatalf("%q leaves %v open: %q", in, open, out)
		}
	})
}
