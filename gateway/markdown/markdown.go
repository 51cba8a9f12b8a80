// Package markdown is parley's one reading of CommonMark. Models write it, every
// adapter renders it from the tree that Parse returns, and Cut and Split are the
// only places where a text is divided into messages.
//
// The dialect is CommonMark with tables, strikethrough, task lists and bare links,
// and without the three constructs whose meaning depends on text that has not
// arrived yet: link reference definitions, underlined headings ("Title\n---" is a
// paragraph and a rule) and HTML blocks. All of them stay visible as text. So a
// block means the same whatever is written after it, which streaming needs.
//
// Everything here is pure and safe for concurrent use.
package markdown

import (
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Tree is a parsed text. Its nodes are goldmark's; their segments are ranges of
// Source.
type Tree struct {
	Root   ast.Node
	Source []byte
}

// dialect is immutable after construction, as goldmark documents.
var dialect = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(shallow{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
	)),
	goldmark.WithExtensions(extension.Strikethrough, extension.Table, extension.TaskList, extension.Linkify),
)

// maxDepth is how deep quotes and lists nest; what is deeper stays text. It bounds
// the work of the parser, which grows with the square of the depth, and of every
// renderer.
const maxDepth = 12

// shallow opens no container beyond maxDepth.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if n.Kind() != ast.KindList {
			depth++
		}
	}
	if depth > maxDepth {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, r, pc)
}

// Parse reads a text.
func Parse(s string) Tree {
	src := []byte(s)
	return Tree{Root: dialect.Parser().Parse(text.NewReader(src)), Source: src}
}

// continued is what Cut writes into a list item that it reopens; it shows nothing.
const continued = "<!-- -->"

// Continued says that a list item goes on from the part before: it is drawn
// without its bullet or number, and its first child shows nothing.
func (t Tree) Continued(item *ast.ListItem) bool {
	first := item.FirstChild()
	if first == nil || first.Lines() == nil || first.Lines().Len() != 1 {
		return false
	}
	seg := first.Lines().At(0)
	return strings.TrimSpace(string(seg.Value(t.Source))) == continued
}

// Text returns the characters of a leaf of text as they are shown: entities are
// decoded and backslash escapes removed, except in code.
func (t Tree) Text(n *ast.Text) string {
	v := n.Segment.Value(t.Source)
	if n.IsRaw() || n.Parent() != nil && n.Parent().Kind() == ast.KindCodeSpan {
		return string(v)
	}
	return unescape(string(v))
}

// entity matches an HTML entity as CommonMark knows it.
var entity = regexp.MustCompile(`^&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)

// unescape decodes entities and removes backslash escapes, in one pass: an escaped
// ampersand begins no entity.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			e := entity.FindString(s[i:])
			if e == "" {
				b.WriteByte('&')
				continue
			}
			b.WriteString(html.UnescapeString(e))
			i += len(e) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Code returns the lines of a code block.
func (t Tree) Code(n ast.Node) string {
	return strings.TrimRight(string(n.Lines().Value(t.Source)), "\n")
}

// Raw returns the source of an inline HTML tag.
func (t Tree) Raw(n *ast.RawHTML) string { return string(n.Segments.Value(t.Source)) }

// Plain returns what a text shows, without markup: for notices, titles, search and
// comparison. List items keep their markers, links their addresses are dropped.
func Plain(s string) string {
	t := Parse(s)
	var b strings.Builder
	t.plainBlocks(&b, t.Root, "")
	return strings.TrimSpace(b.String())
}

// plainBlocks writes the children of a container, each on a line of its own.
func (t Tree) plainBlocks(b *strings.Builder, parent ast.Node, indent string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		t.plainBlock(b, n, indent)
	}
}

func (t Tree) plainBlock(b *strings.Builder, n ast.Node, indent string) {
	line := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			b.WriteString(indent + strings.ReplaceAll(s, "\n", "\n"+indent) + "\n")
		}
	}
	switch n := n.(type) {
	case *ast.List:
		t.plainList(b, n, indent)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		if code := t.Code(n); code != "" {
			b.WriteString(code + "\n")
		}
	case *ast.ThematicBreak:
		line("---")
	case *east.Table:
		for row := n.FirstChild(); row != nil; row = row.NextSibling() {
			var cells []string
			for c := row.FirstChild(); c != nil; c = c.NextSibling() {
				cells = append(cells, t.Inline(c))
			}
			line(strings.Join(cells, " | "))
		}
	case *ast.Blockquote:
		t.plainBlocks(b, n, indent)
	default:
		line(t.Inline(n))
	}
}

func (t Tree) plainList(b *strings.Builder, list *ast.List, indent string) {
	number := list.Start
	for c := list.FirstChild(); c != nil; c = c.NextSibling() {
		item, ok := c.(*ast.ListItem)
		if !ok {
			continue
		}
		mark := "- "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		var body strings.Builder
		t.plainBlocks(&body, item, indent+"  ")
		if t.Continued(item) || body.Len() == 0 {
			b.WriteString(body.String())
			continue
		}
		b.WriteString(indent + mark + strings.TrimLeft(body.String(), " "))
	}
}

// Inline returns what the inline content of a block shows.
func (t Tree) Inline(n ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(t.Text(n))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(t.Source))
		case *ast.RawHTML:
			if raw := t.Raw(n); raw != continued {
				b.WriteString(raw)
			}
		case *ast.Link:
			if n.ChildCount() == 0 {
				b.Write(n.Destination)
			}
		case *ast.Image:
			if n.ChildCount() == 0 {
				b.Write(n.Destination)
			}
		case *east.TaskCheckBox:
			b.WriteString(map[bool]string{true: "[x] ", false: "[ ] "}[n.IsChecked])
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
