package web

import (
	"bytes"
	"html"
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"parley/gateway/markdown"
)

// newRenderer renders the house dialect. Single line breaks are kept (MKD-010).
func newRenderer() renderer.Renderer {
	return renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(strict{}, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(extension.NewTaskCheckBoxHTMLRenderer(), 500),
		util.Prioritized(ghtml.NewRenderer(ghtml.WithHardWraps()), 1000),
	))
}

// render turns CommonMark into HTML of a fixed set of tags and attributes. Markup
// in the text is shown as text (MKD-002), links lead only where people expect
// (http, https, mailto), and nothing loads by itself.
func render(r renderer.Renderer, commonMark string) string {
	tree := markdown.Parse(commonMark)
	prepare(tree)
	var b bytes.Buffer
	if err := r.Render(&b, tree.Source, tree.Root); err != nil {
		return "<pre>" + html.EscapeString(commonMark) + "</pre>"
	}
	return b.String()
}

// prepare lets each block find its own writing direction, and marks list items
// that go on from the message before.
func prepare(tree markdown.Tree) {
	_ = ast.Walk(tree.Root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindParagraph, ast.KindHeading, ast.KindList, ast.KindListItem, ast.KindBlockquote, east.KindTableCell:
			n.SetAttributeString("dir", []byte("auto"))
		}
		if item, ok := n.(*ast.ListItem); ok && tree.Continued(item) {
			item.SetAttributeString("class", []byte("continued"))
			item.RemoveChild(item, item.FirstChild())
		}
		return ast.WalkContinue, nil
	})
}

// strict renders the nodes that could carry a foreign page's will.
type strict struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (s strict) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, s.rawHTML)
	r.Register(ast.KindLink, s.link)
	r.Register(ast.KindAutoLink, s.autoLink)
	r.Register(ast.KindImage, s.image)
	r.Register(ast.KindFencedCodeBlock, s.code)
	r.Register(ast.KindCodeBlock, s.code)
	r.Register(east.KindTable, s.table)
}

func (strict) rawHTML(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(html.EscapeString(string(n.(*ast.RawHTML).Segments.Value(src))))
	}
	return ast.WalkSkipChildren, nil
}

func (strict) link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if href, ok := safeURL(n.(*ast.Link).Destination); ok {
		if entering {
			_, _ = w.WriteString(openLink(href))
		} else {
			_, _ = w.WriteString("</a>")
		}
	}
	return ast.WalkContinue, nil
}

func (strict) autoLink(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	link := n.(*ast.AutoLink)
	label := html.EscapeString(string(link.Label(src)))
	target := link.URL(src)
	if link.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(target), []byte("mailto:")) {
		target = append([]byte("mailto:"), target...)
	}
	if href, ok := safeURL(target); ok {
		label = openLink(href) + label + "</a>"
	}
	_, _ = w.WriteString(label)
	return ast.WalkContinue, nil
}

// image shows a link in place of a picture: loading one would tell its server
// that the answer was read, and carry whatever the address holds.
func (strict) image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	href, ok := safeURL(n.(*ast.Image).Destination)
	switch {
	case entering && ok:
		_, _ = w.WriteString(openLink(href) + "🖼 ")
		if n.FirstChild() == nil {
			_, _ = w.WriteString(href)
		}
	case entering:
		_, _ = w.WriteString("🖼 ")
	case ok:
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func (strict) code(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		language = html.EscapeString(string(f.Language(src)))
	}
	_, _ = w.WriteString(`<figure class="code" dir="ltr"><figcaption><span>` + language +
		`</span><button type="button" class="copy-code">Copy<span class="hidden"> the code</span></button></figcaption><pre tabindex="0"><code>`)
	_, _ = w.WriteString(html.EscapeString(string(n.Lines().Value(src))))
	_, _ = w.WriteString("</code></pre></figure>\n")
	return ast.WalkSkipChildren, nil
}

// table lets a wide table scroll by itself.
func (strict) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="table" tabindex="0"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

func openLink(href string) string {
	return `<a href="` + href + `" target="_blank" rel="noopener noreferrer nofollow">`
}

// safeURL returns a destination as an attribute's value.
func safeURL(destination []byte) (string, bool) {
	u, err := url.Parse(string(destination))
	if err != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https", "mailto":
		return string(util.EscapeHTML(util.URLEscape(destination, true))), true
	}
	return "", false
}
