package scenario

import (
	"fmt"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// mistakes are the rules that may be left out, by the name of what is done
// instead.
var mistakes = []struct {
	name   string
	bug    core.Bugs
	mutant sim.Mutant
}{
	{name: "plain-maximum", bug: core.BugNoWriteBack},
	{name: "one-owner", bug: core.BugOneOwner},
	{name: "unknown-is-no", bug: core.BugUnknownIsNo},
	{name: "callers-context", bug: core.BugCallersContext},
	{name: "validity-from-reply", bug: core.BugValidityFromReply},
	{name: "no-drift", bug: core.BugNoDrift},
	{name: "late-grant-kept", bug: core.BugLateGrantKept},
	{name: "forgets-unseen", mutant: sim.ForgetsUnseen},
	{name: "no-tombstones", mutant: sim.NoTombstones},
}

func (f *File) mistake(c *sim.Config) error {
	if f.Mistake == "" {
		return nil
	}
	for _, m := range mistakes {
		if m.name == f.Mistake {
			c.Bugs, c.Mutant = m.bug, m.mutant
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", f.Mistake, strings.Join(Mistakes(), ", "))
}

// Mistakes returns the names of the rules that a file may leave out.
func Mistakes() []string {
	var names []string
	for _, m := range mistakes {
		names = append(names, m.name)
	}
	return names
}
