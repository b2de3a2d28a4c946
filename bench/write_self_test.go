//go:build unix

package bench

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// invented is a run with figures made up: what is drawn and written from a run
// must not be seen first after ten minutes of measuring.
func invented() *measured {
	m := &measured{settings: map[string]*setting{}, blocks: map[string]string{}}
	add := func(name, figure string, rows []row) {
		t := &setting{rows: rows, samples: map[string][]sample{}, measured: true}
		for i, r := range rows {
			t.samples[r.name] = []sample{{figure: float64(1000 * (i + 1)), "commands": 6}}
		}
		m.settings[name] = t
	}
	for _, n := range []int{3, 5} {
		add(fmt.Sprintf("W2 N = %d, 128 goroutines", n), "rate", rowsFor(n, []row{limit}, orders, redlock))
		add(fmt.Sprintf("W3 N = %d, 64 workers", n), "longest", rowsFor(n, orders, redlock))
	}
	for _, n := range servers6 {
		add(fmt.Sprintf("W6 N = %d", n), "cycle", rows6)
	}
	m.sum()
	return m
}

func TestReportIsWritten(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	text := "before\n<!-- bench: summary -->\n\nold\n\n<!-- /bench -->\nbetween\n<!-- bench: W7 -->\n\nkept\n\n<!-- /bench -->\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := invented().write(filepath.Join(dir, "results"), page); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(out)
	for _, want := range []string{"before\n", "results/throughput.svg", "| the same a second, 128 goroutines, three servers", " 3000 ", "\nbetween\n", "kept"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") {
		t.Errorf("the page still has the old block:\n%s", got)
	}
	for _, name := range []string{"throughput", "wait", "growth"} {
		svg, err := os.Open(filepath.Join(dir, "results", name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(svg)
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s.svg is no XML: %v", name, err)
		}
		_ = svg.Close()
	}
}
