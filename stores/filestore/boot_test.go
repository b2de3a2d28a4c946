package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

// rebooted is the same machine after a reboot: another boot id, uptime from
// nearly nothing, and a wall clock that may have been anything.
func rebooted(t *testing.T, wall time.Time) *machine {
	t.Helper()
	c := &clock.Manual{}
	c.Advance(3 * time.Second)
	m := world(t, c)
	m.boot = strings.Repeat("b", 32)
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
			dir := newDir(t)
			r := request("report")
			s := open(t, dir, clock.System())
			old := acquire(t, s, r)

			after := openOn(t, rebooted(t, wall), dir)
			if st, err := after.Inspect(context.Background(), r); err != nil || len(st.Holders) != 0 || st.Quarantine {
				t.Fatalf("inspect after the reboot: %+v, %v; want no holder and no quarantine", st, err)
			}
			if _, err := after.Extend(context.Background(), r); !errors.Is(err, quorum.ErrNotHeld) {
				t.Fatalf("extend of a lease from before the reboot: %v, want ErrNotHeld", err)
			}
			g := acquire(t, after, request("report"))
			if g.Token <= old.Token {
				t.Errorf("token %d after the reboot, want more than %d", g.Token, old.Token)
			}
			if g.Previous != quorum.PreviousExpired {
				t.Errorf("previous holder %v, want expired: the power cut ended it", g.Previous)
			}
			if other := acquire(t, after, request("other")); other.Token <= old.Token {
				t.Errorf("a name without a file starts at %d, want more than %d", other.Token, old.Token)
			}
		})
	}
}

// A power cut may leave the names' files as they were some time before, or
// torn: only the record is synced.
func TestPowerCutTearsNamesAndTokensStillGrow(t *testing.T) {
	for what, cut := range map[string]func(t *testing.T, file string, early []byte){
		"gone":     func(t *testing.T, file string, _ []byte) { remove(t, file) },
		"empty":    func(t *testing.T, file string, _ []byte) { write(t, file, nil) },
		"zeros":    func(t *testing.T, file string, early []byte) { write(t, file, make([]byte, len(early))) },
		"an older": func(t *testing.T, file string, early []byte) { write(t, file, early) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := newDir(t)
			s := open(t, dir, clock.System())
			var early []byte
			var last quorum.Grant
			for i := range 20 {
				r := request("report")
				last = acquire(t, s, r)
				release(t, s, r)
				if i == 0 {
					early = readFile(t, nameFile(t, s, "report"))
				}
			}
			cut(t, nameFile(t, s, "report"), early)
			after := openOn(t, rebooted(t, time.Now()), dir)
			if g := acquire(t, after, request("report")); g.Token <= last.Token {
				t.Errorf("token %d after the power cut, want more than %d", g.Token, last.Token)
			}
			wantHeld(t, after, "report")
		})
	}
}

func TestRebootsInARow(t *testing.T) {
	dir := newDir(t)
	last := int64(0)
	for i, boot := range []string{"1", "2", "3", "1", "4"} {
		m := rebooted(t, time.Now())
		m.boot = strings.Repeat(boot, 32)
		s := openOn(t, m, dir)
		g := acquire(t, s, request("report"))
		if g.Token <= last {
			t.Fatalf("boot %d: token %d, want more than %d", i, g.Token, last)
		}
		wantHeld(t, s, "report")
		last = g.Token
	}
}

func TestFilesOfEarlierBootsAreRemoved(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir, clock.System())
	for i := range 50 {
		acquire(t, s, request(strings.Repeat("n", i+1)))
	}
	m := rebooted(t, time.Now())
	after := openOn(t, m, dir)
	for i := range 20 { // enough to pass all shards by
		acquire(t, after, request(fmt.Sprint("new ", i)))
	}
	if n := len(nameFiles(t, dir)); n != 70 {
		t.Errorf("%d files right after the reboot, want 20 and the 50 old ones, to tell how holders ended", n)
	}
	for range 20 {
		m.clock.(*clock.Manual).Advance(keepLife)
		r := request("now and then")
		acquire(t, after, r)
		release(t, after, r)
	}
	if n := len(nameFiles(t, dir)); n > 2 {
		t.Errorf("%d files after 20 steps, want those of at most 2 names in use", n)
	}
}

// The wall clock decides nothing: neither that of the machine nor a zone.
func TestR21F022F023WallClockNeitherFreesNorKeeps(t *testing.T) {
	for what, turn := range map[string]time.Duration{
		"F022 fast": 180 * time.Second, "F022 slow": -180 * time.Second,
		"F023 an hour back": -time.Hour, "years ahead": 50_000 * time.Hour, "years back": -200_000 * time.Hour,
	} {
		t.Run(what, func(t *testing.T) {
			dir := newDir(t)
			c := &clock.Manual{}
			a := open(t, dir, c)
			r := request("report")
			r.TTL = maxTTL
			first := acquire(t, a, r)
			turned := world(t, c)
			turned.wall = func() time.Time { return time.Now().In(time.FixedZone("x", 3*3600)).Add(turn) }
			b := openOn(t, turned, dir)
			for range 29 {
				c.Advance(2 * time.Second)
				wantHeld(t, b, "report")
			}
			if _, err := a.Extend(context.Background(), r); err != nil {
				t.Fatalf("the holder's extension: %v", err)
			}
			c.Advance(maxTTL - time.Microsecond)
			wantHeld(t, b, "report")
			c.Advance(time.Microsecond)
			if g := acquire(t, b, request("report")); g.Token <= first.Token {
				t.Errorf("token %d, want more than %d", g.Token, first.Token)
			}
		})
	}
}

func nameFile(t *testing.T, s *Store, key string) string {
	t.Helper()
	_, r, err := s.dir.loadRecord()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(s.dir.path, fileOf(key, r.Life))
}

func nameFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if _, ours := lifeOf(e.Name()); ours {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}
