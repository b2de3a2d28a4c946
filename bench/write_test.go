//go:build unix

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// pages are those that show figures, from this folder.
var pages = []string{"../README.md", "../docs/performance.md"}

// write puts each block between its marks in the pages, and draws the plots.
func (m *measured) write(results string, pages ...string) error {
	m.blocks["machine"] = machine()
	if err := m.plots(results); err != nil {
		return err
	}
	for block, image := range map[string]string{
		"summary": "![cycles a second](bench/results/throughput.svg)",
		"W2":      "![cycles a second](../bench/results/throughput.svg)",
		"W3":      "![longest wait](../bench/results/wait.svg)",
		"W6":      "![a cycle by the number of servers](../bench/results/growth.svg)",
	} {
		name := image[strings.LastIndex(image, "/")+1 : len(image)-1]
		if _, err := os.Stat(filepath.Join(results, name)); err == nil && m.blocks[block] != "" {
			m.blocks[block] = image + "\n\n" + m.blocks[block]
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		out := string(text)
		for name, block := range m.blocks {
			out = splice(out, name, block)
		}
		if err := os.WriteFile(page, []byte(out), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// splice puts text between the marks of a block. A page without them stays as it
// is.
func splice(page, block, text string) string {
	const end = "<!-- /bench -->"
	mark := "<!-- bench: " + block + " -->\n"
	before, rest, found := strings.Cut(page, mark)
	if !found {
		return page
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return page
	}
	return before + mark + "\n" + strings.TrimSpace(text) + "\n\n" + end + after
}

// machine says what was measured on what, as far as figures depend on it.
func machine() string {
	model := "an unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo") // Linux has it
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("Measured on %d cores (%s), %s/%s, %s, with clients and all servers on the same cores.",
		runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
