//go:build unix

package main

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// The variables that a command finds. They are never read as settings.
const (
	keyVariable   = "QUORUM_KEY"
	tokenVariable = "QUORUM_TOKEN"
	untilVariable = "QUORUM_VALID_UNTIL"
	slotVariable  = "QUORUM_SLOT"
)

// environment is the command's: quorum's own without any QUORUM_ variable,
// since DSNs hold passwords, and with what the command may know of its lock.
// The end of validity, in milliseconds since 1970, is how it stands now; it
// only moves later while the lock is renewed.
func environment(inherited []string, lease lock, now time.Time) []string {
	env := slices.DeleteFunc(slices.Clone(inherited), func(v string) bool { return strings.HasPrefix(v, "QUORUM_") })
	if slot, ok := lease.(*quorum.Slot); ok {
		env = append(env, slotVariable+"="+strconv.Itoa(slot.Number()))
	}
	return append(env,
		keyVariable+"="+lease.Key(),
		tokenVariable+"="+strconv.FormatInt(lease.Token(), 10),
		untilVariable+"="+strconv.FormatInt(now.Add(lease.Remaining()).UnixMilli(), 10),
	)
}

// warnUnread names variables that look like settings and are not read.
func warnUnread(inherited []string, stderr io.Writer) {
	read := []string{storesVariable, keyVariable, tokenVariable, untilVariable, slotVariable}
	for _, v := range inherited {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "QUORUM_") && !slices.Contains(read, name) {
			say(stderr, "warning: %s is set, and quorum does not read it; of the environment it reads %s only", name, storesVariable)
		}
	}
}
