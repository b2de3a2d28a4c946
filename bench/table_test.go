//go:build unix

package bench

import (
	"fmt"
	"math"
	"strings"
)

// table is one that people read, in the terminal and as Markdown.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String is the table as Markdown, which reads well enough as it is.
func (t *table) String() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				cell, pad = cell+pad, ""
			}
			out.WriteString("| " + pad + cell + " ")
		}
		out.WriteString("|\n")
	}
	line(t.head)
	for i := range t.head {
		out.WriteString("| " + map[bool]string{true: "---", false: "---:"}[i == 0] + " ")
	}
	out.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
	return out.String()
}

// column is a figure of a table's rows.
type column struct {
	head, figure string
	form         func(float64) string
}

// figures is a table with a row for each of a setting's, and columns of medians.
func (t *setting) figures(columns ...column) *table {
	out := &table{head: []string{"row"}}
	for _, c := range columns {
		out.head = append(out.head, c.head)
	}
	for _, r := range t.rows {
		cells := []string{r.name}
		for _, c := range columns {
			cells = append(cells, c.form(t.figure(r.name, c.figure)))
		}
		out.add(cells...)
	}
	return out
}

// How figures are written. What was not measured is a dash.
func whole(v float64) string      { return form("%.0f", v) }
func tenth(v float64) string      { return form("%.1f", v) }
func hundred(v float64) string    { return form("%.2f", v) }
func thousandth(v float64) string { return form("%.3f", v) }
func percent(v float64) string    { return form("%.0f %%", 100*v) }
func millis(us float64) string    { return form("%.2f", us/1000) }

func form(format string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}
