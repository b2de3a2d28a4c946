//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestR66SharedRunsTogether(t *testing.T) {
	set := stores(t)
	hold(t, set, "key", "--shared")
	run(t, set, "run", "--try", "--shared", "key", "--", "true").expect(0)
	run(t, set, "run", "--try", "key", "--", "true").expect(75)
}

func TestR66SlotsRunAsManyAsThereAre(t *testing.T) {
	set := stores(t)
	hold(t, set, "key", "--slots", "2")
	r := run(t, set, "run", "--try", "--slots", "2", "key", "--", "sh", "-c", "echo $QUORUM_SLOT $QUORUM_KEY").expect(0)
	if text := r.stdout.String(); text != "1 key\n" && text != "2 key\n" {
		t.Errorf("the command found slot and key %q", text)
	}
	hold(t, set, "key", "--slots", "2")
	run(t, set, "run", "--try", "--slots", "2", "key", "--", "true").expect(75)
	run(t, set, "run", "--try", "--slots", "3", "key", "--", "true").expect(78)
	run(t, set, "run", "--try", "--slots", "0", "key", "--", "true").expect(64)
	run(t, set, "status", "key").expect(0) // slots have names of their own
	run(t, set, "status", "key#1").expect(75)
	if r := run(t, set, "status", "--help").expect(0); !strings.Contains(r.stdout.String(), "KEY#1") {
		t.Errorf("the help does not say how to ask for slots:\n%s", r.stdout)
	}
}

func TestR71ForceFreesALock(t *testing.T) {
	set := stores(t)
	holder := hold(t, set, "key", "--ttl", "3s")
	run(t, set, "force", "key").expect(64)
	r := run(t, set, "force", "--yes", "--label", "operator", "key").expect(0)
	if !strings.Contains(r.stdout.String(), "key is free") {
		t.Errorf("force says %q", r.stdout)
	}
	run(t, set, "status", "key").expect(0)
	holder.wait()
	holder.expect(76)
	if text := holder.stderr.String(); !strings.Contains(text, "forced by") || !strings.Contains(text, "operator") {
		t.Errorf("the holder is not told who forced it:\n%s", text)
	}
}
