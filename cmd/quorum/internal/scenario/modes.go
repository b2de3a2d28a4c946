package scenario

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/quorum/internal/sim"
)

//go:embed modes
var modes embed.FS

// Modes returns the names of the failure modes, in the order of a reader: what
// the lock stands first, then what breaks its assumptions, then the mistakes,
// and then what is told in the plain text of the simulator's own histories.
func Modes() []string {
	names := worlds()
	for _, name := range sim.Scenarios() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// worlds returns those that are files as users write them.
func worlds() []string {
	text, err := modes.ReadFile("modes/index")
	if err != nil {
		panic(err) // it is part of the program
	}
	return strings.Fields(string(text))
}

// Source returns the file of a failure mode, or nothing if there is none of
// that name.
func Source(name string) []byte {
	if text, err := modes.ReadFile("modes/" + name + ".yaml"); err == nil {
		return text
	}
	return sim.Source(name)
}

// Mode is a failure mode that was played.
type Mode struct {
	Title, Text string // paragraphs of Text are apart by empty lines
	Breaks      string // the checker that it fails, if it is one that does
	Report      *sim.Report
}

// Play plays a failure mode.
func Play(name string) (*Mode, error) {
	if text, err := modes.ReadFile("modes/" + name + ".yaml"); err == nil {
		f, err := Parse(text)
		if err != nil {
			return nil, err
		}
		return &Mode{f.Title, f.Text, f.Breaks, f.Show()}, nil
	}
	s, err := sim.Named(name)
	if err != nil {
		return nil, fmt.Errorf("there is no failure mode %q: one of %s", name, strings.Join(Modes(), ", "))
	}
	m := &Mode{Title: s.Title, Text: s.Story, Report: s.Play()}
	if len(s.Breaks) > 0 {
		m.Breaks = s.Breaks[0]
	}
	return m, nil
}

// Title returns the title of a failure mode.
func Title(name string) string {
	if text, err := modes.ReadFile("modes/" + name + ".yaml"); err == nil {
		if f, err := Parse(text); err == nil {
			return f.Title
		}
	}
	if s, err := sim.Named(name); err == nil {
		return s.Title
	}
	return ""
}
