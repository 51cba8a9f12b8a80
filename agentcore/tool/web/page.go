package web

import (
	"context"
	"errors"
	"slices"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxElements bounds what readability looks at, whose time grows faster than the
	// page; maxNesting what is walked through recursively.
	maxElements = 20_000
	maxNesting  = 400
	// thin is less text than an article has: then the whole page is taken.
	thin = 250
)

// readHTML finds the readable part of a page and makes Markdown of it. A page too
// large or too deep for that gives its plain text.
func (d *document) readHTML(ctx context.Context, text string) error {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		d.text = plainText(text)
		return nil
	}
	elements, depth := measure(root)
	d.title = titleOf(root)
	if elements > maxElements || depth > maxNesting {
		d.text = plainText(text)
		return nil
	}
	strip(root)
	node := root
	p := readability.NewParser()
	article, err := p.ParseDocument(root, d.url)
	if err == nil && article.Node != nil && len(strings.TrimSpace(textOf(article.Node))) >= thin {
		node = article.Node
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Escapes would only be noise to a model, and looking for them takes quadratic time.
	markdown, err := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin())).
		ConvertNode(node, converter.WithContext(ctx), converter.WithDomain(d.url.Scheme+"://"+d.url.Host))
	switch {
	case err == nil:
		d.text = strings.TrimSpace(string(markdown))
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		d.text = plainText(text)
	}
	return nil
}

// measure counts elements and how deep they are, without recursion.
func measure(root *html.Node) (elements, depth int) {
	level := 0
	for n := root; n != nil; {
		if n.Type == html.ElementNode {
			elements++
		}
		depth = max(depth, level)
		if n.FirstChild != nil {
			n, level = n.FirstChild, level+1
			continue
		}
		for n != nil && n.NextSibling == nil {
			n, level = n.Parent, level-1
		}
		if n != nil {
			n = n.NextSibling
		}
	}
	return elements, depth
}

// strip takes out what a reader does not see: scripts, comments, hidden elements, in
// which a page can speak to a model behind a person's back.
func strip(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.CommentNode || c.Type == html.ElementNode && unseen(c) {
			n.RemoveChild(c)
		} else {
			strip(c)
		}
		c = next
	}
}

func unseen(n *html.Node) bool {
	if slices.Contains([]atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object, atom.Svg}, n.DataAtom) {
		return true
	}
	for _, a := range n.Attr {
		style := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
		switch {
		case a.Key == "hidden", a.Key == "aria-hidden" && a.Val == "true":
			return true
		case a.Key == "style" && (strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") ||
			strings.Contains(style, "font-size:0") || strings.Contains(style, "opacity:0;") || strings.HasSuffix(style, "opacity:0")):
			return true
		}
	}
	return false
}

func titleOf(root *html.Node) string {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Title && n.FirstChild != nil {
			return n.FirstChild.Data
		}
	}
	return ""
}

func textOf(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// plainText is the text between the tags of a page, read in one pass.
func plainText(page string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(1 << 20)
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); errors.Is(err, html.ErrBufferExceeded) {
				b.WriteString("\n[…]")
			}
			return strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '\n' }), "\n")
		case html.TextToken:
			if skip == "" {
				if text := strings.Join(strings.Fields(html.UnescapeString(string(z.Raw()))), " "); text != "" {
					b.WriteString(text + "\n")
				}
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			if s := string(name); skip == "" && (s == "script" || s == "style" || s == "noscript" || s == "template") {
				skip = s
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}
