package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// List draws a list for platforms that have no markup for lists: bullets and numbers,
// the items below each other, their content indented below their first line by pad and
// the width of the mark. draw renders the blocks of an item with an indentation and
// what stands between two of them.
func (t Tree) List(list *ast.List, pad string, draw func(parent ast.Node, pad, between string) string) string {
	var out []string
	number := list.Start
	for c := list.FirstChild(); c != nil; c = c.NextSibling() {
		item, ok := c.(*ast.ListItem)
		if !ok {
			continue
		}
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		inner := pad + strings.Repeat(" ", len([]rune(mark)))
		if s := t.item(item, mark, pad, draw(item, inner, "\n")); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n")
}

// item puts the mark before an item's content; what does not begin with text goes
// below it.
func (t Tree) item(item *ast.ListItem, mark, pad, body string) string {
	inner := pad + strings.Repeat(" ", len([]rune(mark)))
	first := item.FirstChild()
	switch {
	case body == "" || t.Continued(item):
		return body
	case first.FirstChild() != nil && first.FirstChild().Kind() == east.KindTaskCheckBox:
		return pad + strings.TrimPrefix(body, inner)
	case first.Kind() == ast.KindParagraph || first.Kind() == ast.KindTextBlock || first.Kind() == ast.KindHeading:
		return pad + mark + strings.TrimPrefix(body, inner)
	default:
		return pad + strings.TrimRight(mark, " ") + "\n" + body
	}
}
