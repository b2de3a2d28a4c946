package sim

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios come to into testdata")

// The page of failure modes names every scenario, and no other.
func TestR84FailureModesNameTheScenarios(t *testing.T) {
	text, err := os.ReadFile("../../docs/failure-modes.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("`([a-z]+(-[a-z]+)+)` \\|").FindAllStringSubmatch(string(text), -1) {
		named = append(named, m[1])
		if !slices.Contains(Scenarios(), m[1]) {
			t.Errorf("docs/failure-modes.md names %s, which is no scenario", m[1])
		}
	}
	for _, name := range Scenarios() {
		if !slices.Contains(named, name) {
			t.Errorf("docs/failure-modes.md does not name %s", name)
		}
	}
}

// Every failure mode of docs/failure-modes.md is a file that says what is done
// and, after four dashes, what came of it.
func TestScenarios(t *testing.T) {
	for _, name := range Scenarios() {
		t.Run(name, func(t *testing.T) {
			file := "testdata/" + name + ".txt"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := ParseScenario(string(text))
			if err != nil {
				t.Fatal(err)
			}
			r := s.Play()
			if again := s.Play(); again.Hash != r.Hash {
				t.Errorf("played twice, it was %x and %x", r.Hash, again.Hash)
			}
			var broken []string
			for _, v := range r.Violations {
				if !slices.Contains(broken, v.Checker.String()) {
					broken = append(broken, v.Checker.String())
				}
			}
			if !slices.Equal(broken, s.Breaks) {
				t.Errorf("it breaks %q, and should break %q: %v", broken, s.Breaks, r.Violations)
			}
			input, want, ok := strings.Cut(string(text), "\n----\n")
			if !ok {
				t.Fatal("no line of four dashes")
			}
			got := s.Tell(r)
			if *rewrite {
				if err := os.WriteFile(file, []byte(input+"\n----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("it came to\n%s\nand used to come to\n%s", got, want)
			}
		})
	}
}

// What is wrong in a scenario is said with the line, and what would be right.
func TestScenarioErrors(t *testing.T) {
	head := "stores 3\nclients A B\nuntil 5s\n"
	for text, want := range map[string]string{
		"until 5s":                                `"clients A B" is missing`,
		"clients A":                               `"until 30s" is missing`,
		head + "colour red":                       `line 4, "colour red": unknown setting "colour"`,
		head + "ttl soon":                         `"soon" is no time such as 10s`,
		head + "ttl 10s 20s":                      "one value is needed, not 2",
		head + "stores 99":                        "no number between 1 and 16",
		head + "at 1s A dances":                   "unknown action \"dances\": acquires, tries",
		head + "at 1s A":                          "what does A do?",
		head + "at 1s C acquires":                 `"C" is neither a client nor a fault; faults are partition`,
		head + "at 1s for 2s partition A from x":  `"x" is neither a client`,
		head + "at 1s for 2s partition A from h":  "there are only 3 stores",
		head + "at 1s for 2s hang":                "it names no store",
		head + "at soon A acquires":               `invalid duration "soon"`,
		head + "at 1s A acquires key 100":         "not between 0 and 99",
		head + "at 1s A acquires quickly":         `unknown word "quickly"`,
		head + "order by chance":                  "in order, first then rest, all at once",
		head + "mistake hope":                     "known are: no write-back",
		head + "loss 200%":                        "no share such as 5%",
		head + "quorum 1":                         "share no store",
		head + "clients b":                        "clients begin with a capital",
		head + "ttl 10s\nmax ttl 5s":              "TTL <= MaxTTL",
		head + "at 1s for 1s clock rate a by 9x%": "no percentage",
	} {
		_, err := ParseScenario(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
	}
}
