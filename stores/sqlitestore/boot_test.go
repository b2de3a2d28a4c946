//go:build linux

package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

// rebooted is the same machine after a reboot: another boot id, uptime from
// nearly nothing, and a wall clock that may have been anything.
func rebooted(t *testing.T, boot string, wall time.Time) *machine {
	t.Helper()
	c := &clock.Manual{}
	c.Advance(3 * time.Second)
	m := world(t, c)
	m.boot = strings.Repeat(boot, 32)
	m.wall = func() time.Time { return wall }
	return m
}

func TestRebootEndsLeasesAndKeepsTokensGrowing(t *testing.T) {
	for what, wall := range map[string]time.Time{
		"later":            time.Now().Add(time.Hour),
		"same time":        time.Now(),
		"clock lost":       time.Unix(0, 0),
		"clock years back": time.Now().AddDate(-3, 0, 0),
	} {
		t.Run(what, func(t *testing.T) {
			s := fresh(t, clock.System())
			r, old := acquire(t, s, "report")
			after := open(t, rebooted(t, "b", wall), s.file.path)
			if st, err := after.Inspect(t.Context(), r); err != nil || len(st.Holders) != 0 || st.Quarantine {
				t.Fatalf("inspect after the reboot: %+v, %v; want no holder and no quarantine", st, err)
			}
			if _, err := after.Extend(t.Context(), r); !errors.Is(err, quorum.ErrNotHeld) {
				t.Fatalf("extend of a lease from before the reboot: %v, want ErrNotHeld", err)
			}
			_, g := acquire(t, after, "report")
			if g.Token <= old.Token || g.Previous != quorum.PreviousExpired {
				t.Errorf("token %d after %d, previous %v; want more, and expired: the power cut ended it", g.Token, old.Token, g.Previous)
			}
			if _, other := acquire(t, after, "other"); other.Token <= old.Token {
				t.Errorf("a name without a row starts at %d, want more than %d", other.Token, old.Token)
			}
		})
	}
}

// A power cut may undo the last commits but for the record's.
func TestPowerCutUndoesNamesAndTokensStillGrow(t *testing.T) {
	for what, cut := range map[string]string{
		"row gone":    "DELETE FROM quorum_lock",
		"an older":    "UPDATE quorum_lock SET held = early.held, counter = early.counter FROM early",
		"older still": "UPDATE quorum_lock SET held = NULL, counter = NULL",
	} {
		t.Run(what, func(t *testing.T) {
			s := fresh(t, clock.System())
			var last quorum.Grant
			for i := range 20 {
				last = pair(t, s, "report")
				if i == 0 {
					run(t, s.file.db, "CREATE TABLE early AS SELECT held, counter FROM quorum_lock")
				}
			}
			if what == "row gone" {
				run(t, s.file.db, "UPDATE quorum_lock SET counter = NULL")
			}
			run(t, s.file.db, cut)
			after := open(t, rebooted(t, "b", time.Now()), s.file.path)
			if _, g := acquire(t, after, "report"); g.Token <= last.Token {
				t.Errorf("token %d after the power cut, want more than %d", g.Token, last.Token)
			}
			wantHeld(t, after, "report")
		})
	}
}

func TestRebootsInARow(t *testing.T) {
	s := fresh(t, clock.System())
	last := int64(0)
	for _, boot := range []string{"1", "2", "3", "1", "4"} {
		after := open(t, rebooted(t, boot, time.Now()), s.file.path)
		_, g := acquire(t, after, "report")
		if g.Token <= last {
			t.Fatalf("boot %s: token %d, want more than %d", boot, g.Token, last)
		}
		wantHeld(t, after, "report")
		last = g.Token
	}
}

func TestRowsOfEarlierBootsAreDropped(t *testing.T) {
	s := fresh(t, clock.System())
	for i := range 50 {
		acquire(t, s, fmt.Sprint("old ", i))
	}
	m := rebooted(t, "b", time.Now())
	after := open(t, m, s.file.path)
	for i := range 20 {
		pair(t, after, fmt.Sprint("new ", i))
	}
	if n := rows(t, after); n != 70 {
		t.Errorf("%d rows right after the reboot, want 20 and the 50 old ones, to tell how holders ended", n)
	}
	for range 5 {
		m.clock.(*clock.Manual).Advance(keepLife)
		pair(t, after, "now and then")
	}
	if n := rows(t, after); n > 2 {
		t.Errorf("%d rows after 5 steps, want those of at most 2 names in use", n)
	}
}

// The wall clock decides nothing: neither that of the machine nor a zone.
func TestR21F022F023WallClockNeitherFreesNorKeeps(t *testing.T) {
	for what, turn := range map[string]time.Duration{
		"F022 fast": 180 * time.Second, "F022 slow": -180 * time.Second,
		"F023 an hour back": -time.Hour, "years ahead": 50_000 * time.Hour, "years back": -200_000 * time.Hour,
	} {
		t.Run(what, func(t *testing.T) {
			now := &clock.Manual{}
			a := fresh(t, now)
			r := request("report")
			r.TTL = maxTTL
			first := acceptance.MustAcquire(t, a, r)
			turned := world(t, now)
			turned.wall = func() time.Time { return time.Now().In(time.FixedZone("x", 3*3600)).Add(turn) }
			b := open(t, turned, a.file.path)
			for range 5 {
				now.Advance(11 * time.Second)
				wantHeld(t, b, "report")
			}
			acceptance.MustExtend(t, a, r)
			now.Advance(maxTTL - time.Microsecond)
			wantHeld(t, b, "report")
			now.Advance(time.Microsecond)
			if _, g := acquire(t, b, "report"); g.Token <= first.Token {
				t.Errorf("token %d, want more than %d", g.Token, first.Token)
			}
		})
	}
}

// On a network file system another boot may be another machine, whose holders
// live. With two of them nobody gets a lock.
func TestF187NetworkFileSystem(t *testing.T) {
	here, there := world(t, clock.System()), rebooted(t, "b", time.Now())
	for _, m := range []*machine{here, there} {
		m.network = func(*os.File) string { return "NFS" }
	}
	a := open(t, here, newPath(t))
	acceptance.DeclareNew(t, a, request(""))
	acquire(t, a, "report")
	if advice := a.Advice(); len(advice) != 1 || !strings.Contains(advice[0], "NFS") {
		t.Errorf("advice %q, want one about NFS", advice)
	}
	if advice := fresh(t, clock.System()).Advice(); len(advice) != 0 {
		t.Errorf("advice %q for a local file, want none", advice)
	}
	b := open(t, there, a.file.path)
	wantQuarantine(t, b)
	wantQuarantine(t, a)
	there.clock.(*clock.Manual).Advance(maxTTL)
	wantQuarantine(t, b)
	there.clock.(*clock.Manual).Advance(maxTTL)
	step, err := b.ReadStep(t.Context(), request(""))
	if err != nil || !step.Over {
		t.Fatalf("machine b alone for MaxTTL: %+v, %v; want the quarantine's time over", step, err)
	}
}
