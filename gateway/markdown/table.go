package markdown

import (
	"strings"

	"github.com/rivo/uniseg"
	east "github.com/yuin/goldmark/extension/ast"
)

// Table draws a table as text whose columns are aligned in a fixed-width font, for
// platforms that have no tables.
func (t Tree) Table(n *east.Table) string {
	var rows [][]string
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cell := strings.NewReplacer("<br>", " ", "<br/>", " ", "<br />", " ", "\n", " ").Replace(t.Inline(c))
			if cells = append(cells, cell); len(widths) < len(cells) {
				widths = append(widths, 0)
			}
			widths[len(cells)-1] = max(widths[len(cells)-1], uniseg.StringWidth(cell))
		}
		rows = append(rows, cells)
	}
	var b strings.Builder
	for i, cells := range rows {
		var line strings.Builder
		for j, cell := range cells {
			if j > 0 {
				line.WriteString(" | ")
			}
			line.WriteString(cell + strings.Repeat(" ", widths[j]-uniseg.StringWidth(cell)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if i == 0 {
			for j, w := range widths {
				if j > 0 {
					b.WriteString("-+-")
				}
				b.WriteString(strings.Repeat("-", w))
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
