package filestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

func wantQuarantine(t *testing.T, s quorum.Store) {
	t.Helper()
	_, err := s.Acquire(context.Background(), request("report"))
	if quorum.OutcomeOf(err) != quorum.OutcomeQuarantined {
		t.Fatalf("acquire: %v, want quarantine", err)
	}
}

func wantVotes(t *testing.T, s quorum.Store) {
	t.Helper()
	r := request("is it voting?")
	acquire(t, s, r)
	release(t, s, r)
}

func TestNewDirectoryVotesAtOnce(t *testing.T) {
	made := newDir(t)
	wantVotes(t, open(t, made, clock.System()))
	wantVotes(t, open(t, made, clock.System()))
	untouched := t.TempDir()
	if err := os.Chmod(untouched, 0o711); err != nil {
		t.Fatal(err)
	}
	wantVotes(t, open(t, untouched, clock.System()))
	wantVotes(t, open(t, filepath.Join(t.TempDir(), "a", "b", "c"), clock.System()))
}

func TestDirectoryWithoutItsRecordForgot(t *testing.T) {
	for what, spoil := range map[string]func(t *testing.T, dir string){
		"record removed": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, recordName)) },
		"emptied": func(t *testing.T, dir string) {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := newDir(t)
			c := &clock.Manual{}
			live := open(t, dir, c)
			r := request("report")
			last := acquire(t, live, r)
			waitForClockTick(t, dir)
			spoil(t, dir)
			for _, s := range []*Store{open(t, dir, c), live} {
				wantQuarantine(t, s)
			}
			c.Advance(maxTTL)
			step, err := live.ReadStep(context.Background(), r)
			if err != nil || !step.Over {
				t.Fatalf("after MaxTTL: %+v, %v; want the quarantine's time over", step, err)
			}
			if err := live.Raise(context.Background(), r, quorum.Raise{Quarantine: step.Quarantine, Alone: true}); err != nil {
				t.Fatal(err)
			}
			if g := acquire(t, live, request("report")); g.Token <= last.Token {
				t.Errorf("token %d after forgetting, want more than %d", g.Token, last.Token)
			}
			wantHeld(t, open(t, dir, c), "report")
		})
	}
}

// waitForClockTick returns when a file that is changed now gets a later time
// than the directory's birth: file systems count in ticks of the kernel.
func waitForClockTick(t *testing.T, dir string) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	born, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 1_000_000 {
		write(t, probe, nil)
		if fi, err := os.Stat(probe); err == nil && fi.ModTime().After(born.ModTime()) {
			return
		}
	}
	t.Fatal("the file system's clock stands still")
}

func TestDirectoryWithOtherFilesIsNotNew(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "of somebody else"), nil)
	wantQuarantine(t, open(t, dir, clock.System()))
}

func TestFileSystemWithoutTimesOfBirthIsWarnedOf(t *testing.T) {
	m := world(t, clock.System())
	m.untouched = func(*os.File) (bool, bool) { return false, false }
	s := openOn(t, m, newDir(t))
	wantVotes(t, s)
	if a := s.Advice(); len(a) != 1 || !strings.Contains(a[0], "time of birth") {
		t.Errorf("advice %q, want one about the time of birth", a)
	}
	if a := open(t, newDir(t), clock.System()).Advice(); len(a) != 0 {
		t.Errorf("advice %q for a local directory, want none", a)
	}
}

// On a network file system another boot may be another machine, whose holders
// live. With two of them nobody gets a lock.
func TestF187NetworkFileSystem(t *testing.T) {
	dir := newDir(t)
	here, there := world(t, clock.System()), rebooted(t, time.Now())
	for _, m := range []*machine{here, there} {
		m.network = func(*os.File) string { return "NFS" }
	}
	a := openOn(t, here, dir)
	r := request("report")
	acquire(t, a, r)
	if advice := a.Advice(); len(advice) != 1 || !strings.Contains(advice[0], "NFS") {
		t.Errorf("advice %q, want one about NFS", advice)
	}
	b := openOn(t, there, dir)
	wantQuarantine(t, b)
	wantQuarantine(t, a)
	there.clock.(*clock.Manual).Advance(maxTTL)
	wantQuarantine(t, b)
	there.clock.(*clock.Manual).Advance(maxTTL)
	step, err := b.ReadStep(context.Background(), r)
	if err != nil || !step.Over {
		t.Fatalf("machine b alone for MaxTTL: %+v, %v; want the quarantine's time over", step, err)
	}
}

func TestDamagedFileIsAnErrorAndNeverContention(t *testing.T) {
	for _, victim := range []string{recordName, "name"} {
		t.Run(victim, func(t *testing.T) {
			dir := newDir(t)
			s := open(t, dir, clock.System())
			acquire(t, s, request("report"))
			file := filepath.Join(dir, recordName)
			if victim == "name" {
				file = nameFile(t, s, "report")
			}
			whole := readFile(t, file)
			for what, text := range map[string][]byte{
				"empty": nil, "half": whole[:len(whole)/2], "flipped": flip(whole, len(whole)-3), "text": []byte("pid 4711\n"),
				"of another version": newCell([]byte(`{"Format":2}`)), "not JSON": newCell([]byte(`{`)),
			} {
				if what == "of another version" && victim == "name" {
					text = newCell([]byte(`{"Key":"another"}`))
				}
				write(t, file, text)
				_, err := s.Acquire(context.Background(), request("report"))
				if err == nil || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
					t.Fatalf("%s: %v; want an error that counts as not sent", what, err)
				}
				if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "remove") {
					t.Errorf("%s: %v; want the file named, and what to do", what, err)
				}
				if now := readFile(t, file); string(now) != string(text) {
					t.Errorf("%s: the file was changed", what)
				}
			}
			write(t, file, whole)
			wantHeld(t, s, "report")
		})
	}
}

// The way out that the error names.
func TestRecordRemovedAfterDamageHeals(t *testing.T) {
	dir := newDir(t)
	c := &clock.Manual{}
	s := open(t, dir, c)
	last := acquire(t, s, request("report"))
	write(t, nameFile(t, s, "report"), nil)
	remove(t, filepath.Join(dir, recordName))
	wantQuarantine(t, s)
	r := request("report")
	step, err := s.ReadStep(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Raise(context.Background(), r, quorum.Raise{Quarantine: step.Quarantine, Fresh: true}); err != nil {
		t.Fatal(err)
	}
	if g := acquire(t, s, r); g.Token < last.Token>>26<<26 {
		t.Errorf("token %d, want the step of %d at least", g.Token, last.Token)
	}
}

func TestReplacedDirectoryIsAnError(t *testing.T) {
	for _, successor := range []bool{false, true} {
		dir := newDir(t)
		s := open(t, dir, clock.System())
		acquire(t, s, request("report"))
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		if successor {
			open(t, dir, clock.System())
		}
		_, err := s.Acquire(context.Background(), request("report"))
		if !errors.Is(err, errReplaced) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
			t.Errorf("successor %v: %v, want %v", successor, err, errReplaced)
		}
	}
}
