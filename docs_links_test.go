package quorum_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// prose returns the pages that people read, by name.
func prose(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(text)
		}
	}
	return all
}

// A page that names a test as evidence must not outlive it.
func TestR89NamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example)\w+)\(`)
	for _, name := range tree(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			have[m[1]] = true
		}
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w*)[`/]")
	for page, text := range prose(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !have[m[1]] {
				t.Errorf("%s names %s, which is no test or example", page, m[1])
			}
		}
	}
}

// Each feature of the systems that this grew from is answered by something that
// a test runs; the test above knows that it exists.
func TestEveryFeatureComparedIsShown(t *testing.T) {
	text := prose(t)["docs/comparison.md"]
	_, text, _ = strings.Cut(text, "\n## The four it grew from\n")
	text, _, _ = strings.Cut(text, "\n## ")
	shown := regexp.MustCompile("`(Test|Example)[A-Z]\\w*`")
	rows := map[string]int{}
	system := ""
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			system = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 3 || strings.Contains(line, "---") || strings.HasPrefix(line, "| feature |") {
			continue
		}
		rows[system]++
		if !shown.MatchString(cells[2]) {
			t.Errorf("%s: nothing is named that shows:%s", system, cells[0])
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d systems have features, want 4: %v", len(rows), rows)
	}
}

// A link within the repository leads somewhere.
func TestR85LinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	pages := prose(t)
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if heading != "" && !hasHeading(pages[target], heading) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
}

// hasHeading reports whether a page has a heading under an anchor, as GitHub
// makes anchors.
func hasHeading(text, anchor string) bool {
	drop := regexp.MustCompile(`[^a-z0-9 _-]`)
	for line := range strings.Lines(text) {
		title, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if ok && strings.HasPrefix(line, "#") &&
			strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(title), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
