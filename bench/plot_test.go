//go:build unix

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-analyze/charts"
)

// plots draws what the pages show.
func (m *measured) plots(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bars := []struct {
		name, title, workload, figure string
		settings                      []string
		scale                         float64
	}{
		{"throughput", "Acquire and release, 128 goroutines: cycles a second", "W2", "rate",
			[]string{"N = 3, 128 goroutines", "N = 5, 128 goroutines"}, 1},
		{"wait", "64 workers, one lock: longest wait, ms", "W3", "longest",
			[]string{"N = 3, 64 workers", "N = 5, 64 workers"}, 1e-3},
	}
	for _, p := range bars {
		if err := m.bars(filepath.Join(dir, p.name+".svg"), p.title, p.workload, p.figure, p.settings, p.scale); err != nil {
			return fmt.Errorf("plot %s: %w", p.name, err)
		}
	}
	if err := m.growth(filepath.Join(dir, "growth.svg")); err != nil {
		return fmt.Errorf("plot growth: %w", err)
	}
	return nil
}

// bars draws a figure of each row, a bar a setting.
func (m *measured) bars(file, title, workload, figure string, settings []string, scale float64) error {
	for _, s := range settings {
		if m.settings[workload+" "+s] == nil {
			return nil // not asked for, or not measured: the last plot stays
		}
	}
	names := names(m.settings[workload+" "+settings[0]].rows)
	slices.Reverse(names) // the first row is drawn on top
	var data [][]float64
	for _, s := range settings {
		var values []float64
		for _, name := range names {
			values = append(values, scale*m.settings[workload+" "+s].median(name, figure))
		}
		data = append(data, values)
	}
	o := charts.NewBarChartOptionWithData(data)
	o.Horizontal = true
	o.Title.Text = title
	o.ValueFormatter = whole
	for i := range names {
		names[i] += "\u2003" // the widths of fonts differ
	}
	o.CategoryAxis.Labels = names
	for _, s := range settings {
		n, _, _ := strings.Cut(s, ",")
		o.Legend.SeriesNames = append(o.Legend.SeriesNames, n)
	}
	o.Legend.Offset = charts.OffsetStr{Left: "650"}
	o.Padding = charts.NewBoxEqual(20)
	return draw(file, 120+55*len(names), func(p *charts.Painter) error { return p.BarChart(o) })
}

// growth draws W6: a line a row over the number of servers.
func (m *measured) growth(file string) error {
	var data [][]float64
	var labels []string
	for _, n := range servers6 {
		label := fmt.Sprintf("N = %d", n)
		if m.settings["W6 "+label] == nil {
			return nil
		}
		labels = append(labels, label)
	}
	names := names(m.settings["W6 "+labels[0]].rows)
	for _, name := range names {
		var values []float64
		for _, label := range labels {
			values = append(values, m.settings["W6 "+label].median(name, "cycle")/1000)
		}
		data = append(data, values)
	}
	o := charts.NewLineChartOptionWithData(data)
	o.Title.Text = "Acquire and release, 1 ms each way: ms a cycle"
	o.XAxis.Labels = labels
	o.Legend.SeriesNames = names
	o.Legend.Offset = charts.OffsetStr{Top: "30"}
	o.Padding = charts.NewBoxEqual(20)
	return draw(file, 420, func(p *charts.Painter) error { return p.LineChart(o) })
}

func names(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.name)
	}
	return out
}

func draw(file string, height int, chart func(*charts.Painter) error) error {
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: 900, Height: height})
	if err := chart(p); err != nil {
		return err
	}
	text, err := p.Bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
