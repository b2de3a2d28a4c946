package scenario

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed modes
var modes embed.FS

// Modes returns the names of the failure modes, in the order of a reader: what
// the lock stands first, then what breaks its assumptions, then the mistakes.
func Modes() []string {
	text, err := modes.ReadFile("modes/index")
	if err != nil {
		panic(err) // it is part of the program
	}
	return strings.Fields(string(text))
}

// Source returns the file of a failure mode, or nothing if there is none of
// that name.
func Source(name string) []byte {
	text, err := modes.ReadFile("modes/" + name + ".yaml")
	if err != nil {
		return nil
	}
	return text
}

// Mode returns a failure mode by its name.
func Mode(name string) (*File, error) {
	text := Source(name)
	if text == nil {
		return nil, fmt.Errorf("there is no failure mode %q", name)
	}
	return Parse(text)
}
