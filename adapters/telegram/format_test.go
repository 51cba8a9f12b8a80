package telegram

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"parley/gateway/chat"
	"parley/gateway/markdown"
)

func TestRender(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"MKD-002 foreign tags", "<h1>a</h1> b<br>c <!-- x --> <b>d", "&lt;h1&gt;a&lt;/h1&gt; b\nc &lt;!-- x --&gt; &lt;b&gt;d"},
		{"MKD-002 operators", "a < b && c > \"d\"", "a &lt; b &amp;&amp; c &gt; &quot;d&quot;"},
		{"MKD-002 quote", "> Hello\n> **you**", "<blockquote>Hello\n<b>you</b></blockquote>"},
		{"MKD-002 list with code", "1. Foo:\n   ```go\n   x := 1\n     y\n   ```\n2. Bar",
			"1. Foo:\n<pre><code class=\"language-go\">x := 1\n  y</code></pre>\n2. Bar"},
		{"MKD-002 table in a quote", "> |a|bb|\n> |-|-|\n> |ccc|d|", "<blockquote><pre>a   | bb\n----+---\nccc | d</pre></blockquote>"},
		{"MKD-003 underscores", "`**antique_identifier**` https://x.example/a_b_c_d * and 2 > 1",
			`<code>**antique_identifier**</code> <a href="https://x.example/a_b_c_d">https://x.example/a_b_c_d</a> * and 2 &gt; 1`},
		{"MKD-010 line breaks", "line one\nline two\n- a\n- b", "line one\nline two\n\n• a\n• b"},
		{"MKD-013 overlap", "**bold _both** italic_ ***x***", "<b>bold _both</b> italic_ <i><b>x</b></i>"},
		{"heading", "# A *b*\n\ntext", "<b>A <i>b</i></b>\n\ntext"},
		{"nesting", "- a\n  - b\n    1. c\n- d", "• a\n  • b\n    1. c\n• d"},
		{"numbers", "3. a\n3. b", "3. a\n4. b"},
		{"tasks", "- [x] a\n- [ ] b", "☑ a\n☐ b"},
		{"continued", "2. <!-- -->\n\n   goes on\n3. c", "goes on\n3. c"},
		{"links", `[a"b](https://x.example/?q="1"&r) [rel](/path) [](https://e.example)`,
			`<a href="https://x.example/?q=&quot;1&quot;&amp;r">a&quot;b</a> rel (/path) https://e.example`},
		{"javascript", "[a](javascript:alert%281%29)", "a (javascript:alert%281%29)"},
		{"mail", "<a@x.example> [write](mailto:a@x.example) [local](http://localhost:80/)", "a@x.example write (a@x.example) local (http://localhost:80/)"},
		{"MEN-007 somebody", "[you](tg://user?id=1)", "you (tg://user?id=1)"},
		{"image", "![cat](https://x.example/c.png)", `<a href="https://x.example/c.png">cat</a>`},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb"},
		{"strike", "~~a~~", "<s>a</s>"},
		{"quote in a quote", "> a\n> > b", "<blockquote>a\n&gt; b</blockquote>"},
		{"entities", "&lt; &copy; \\*", "&lt; © *"},
		{"language", "```c++ x=\"1\"\na\n```", `<pre><code class="language-c++">a</code></pre>`},
		{"wide cells", "|猫|x|\n|-|-|\n|a|b|", "<pre>猫 | x\n---+--\na  | b</pre>"},
		{"NUL and broken bytes", "a\x00b\xff", "ab\uFFFD"},
		{"nothing", "[]()\n\n#\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, render(tc.in)); d != "" {
				t.Error(d)
			}
		})
	}
}

// SPL-006: what counts is UTF-16 units after the tags are gone.
func TestMeasure(t *testing.T) {
	for in, want := range map[string]int{
		"":                            0,
		"abc":                         3,
		"**😀**":                       2,
		"a < b":                       5,
		"[x](https://a.example)":      5, // an eighth of the markup
		strings.Repeat("word ", 1000): 4999,
	} {
		if got := measure(in); got != want {
			t.Errorf("measure(%.20q) = %d, want %d", in, got, want)
		}
	}
}

// SPL-014: 1,250 quoted lines are few characters but much markup.
func TestMarkupIsBounded(t *testing.T) {
	in := strings.Repeat("`a` [b](https://example.com/a/long/path)\n", 1250)
	for _, part := range markdown.Split(in, limits) {
		if html := render(part); len(html) > 32<<10 || visible(html) > textLimit {
			t.Fatalf("%d bytes, %d units", len(html), visible(html))
		}
	}
}

func TestComposeProgress(t *testing.T) {
	m := chat.Outgoing{Text: "**Answer**", Progress: []string{"🔎 a < b", "second\nline"}}
	if d := cmp.Diff("<blockquote>🔎 a &lt; b\nsecond line</blockquote>\n<b>Answer</b>", compose(m).html); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("🔎 a < b\nsecond line\n\n**Answer**", compose(m).text); d != "" {
		t.Error(d)
	}
	m.Progress = append(m.Progress, "3", "4")
	if got := compose(m).html; !strings.HasPrefix(got, "<blockquote expandable>") {
		t.Errorf("many lines are not folded: %s", got)
	}
	m = chat.Outgoing{Text: strings.Repeat("x", 4090), Progress: []string{"older", "new"}}
	if got := compose(m).html; visible(got) > textLimit || !strings.Contains(got, "new") || strings.Contains(got, "older") {
		t.Errorf("progress does not give way: %d units, %.40s", visible(got), got)
	}
	m = chat.Outgoing{Text: strings.Repeat("**x**", 815), Progress: []string{"a line of progress that is long enough"}}
	if got := len(utf16.Encode([]rune(compose(m).text))); got > textLimit {
		t.Errorf("the plain form has %d units", got)
	}
}
