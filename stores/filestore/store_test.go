package filestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

func TestF037StoresOfOneProcessExcludeEachOther(t *testing.T) {
	dir := newDir(t)
	a, b := open(t, dir, clock.System()), open(t, dir, clock.System())
	acquire(t, a, request("report"))
	wantHeld(t, b, "report")

	// And so do their calls: b gets the directory when a gives it back.
	release, err := a.dir.hold(context.Background(), exclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	try := b.dir.tryLock
	b.dir.tryLock = func(f *os.File, kind lockKind) error {
		err := try(f, kind)
		if errors.Is(err, errLocked) {
			cancel()
		}
		return err
	}
	_, err = b.Acquire(ctx, request("other"))
	if !errors.Is(err, context.Canceled) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
		t.Errorf("acquire while another call is under way: %v; want it to end with its context, not sent", err)
	}
	release()
	acquire(t, b, request("other"))
}

func TestCallsOfOneStoreWaitForTheirTurn(t *testing.T) {
	s := open(t, newDir(t), clock.System())
	release, err := s.dir.hold(context.Background(), exclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = s.Acquire(ctx, request("report"))
	if !errors.Is(err, context.DeadlineExceeded) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
		t.Errorf("acquire while another call is under way: %v; want its deadline, not sent", err)
	}
	release()
	acquire(t, s, request("report"))
}

// The lock file is removed under the feet of stores that have it open.
func TestLockFileRemovedByHand(t *testing.T) {
	dir := newDir(t)
	a, b := open(t, dir, clock.System()), open(t, dir, clock.System())
	acquire(t, a, request("report"))
	remove(t, filepath.Join(dir, lockName))
	wantHeld(t, b, "report")
	releaseB, err := b.dir.hold(context.Background(), exclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := a.dir.hold(ctx, exclusive); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held the directory beside b: %v", err)
	}
	releaseB()
	wantHeld(t, a, "report")
}

func TestF020OnlyTheOwnerItselfOwns(t *testing.T) {
	dir := newDir(t)
	a, b := open(t, dir, clock.System()), open(t, dir, clock.System())
	r := request("report")
	r.Label = "node-10 4711"
	acquire(t, a, r)
	before := readFile(t, nameFile(t, a, "report"))
	other := r
	other.Owner.ID[15]++
	other.Label = "node-1 4711"
	_, err := b.Extend(context.Background(), other)
	if !errors.Is(err, quorum.ErrNotHeld) {
		t.Errorf("extend by another owner: %v, want ErrNotHeld", err)
	}
	if err := b.Release(context.Background(), other); !errors.Is(err, quorum.ErrNotHeld) {
		t.Errorf("release by another owner: %v, want ErrNotHeld", err)
	}
	if after := readFile(t, nameFile(t, a, "report")); string(after) != string(before) {
		t.Error("the file was written")
	}
}

func TestF034OpeningTouchesNothing(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir, clock.System())
	r := request("report")
	acquire(t, s, r)
	before := readFile(t, nameFile(t, s, "report"))
	for range 20 {
		open(t, dir, clock.System())
	}
	if after := readFile(t, nameFile(t, s, "report")); string(after) != string(before) {
		t.Error("the holder's file was written")
	}
	if _, err := s.Extend(context.Background(), r); err != nil {
		t.Errorf("extend: %v", err)
	}
}

// A left-over file names a process that lives, and is not its owner's any more.
func TestF083LivenessIsNotThePIDs(t *testing.T) {
	dir := newDir(t)
	c := &clock.Manual{}
	s := open(t, dir, c)
	r := request("report")
	r.Label = fmt.Sprint("host ", os.Getpid())
	acquire(t, s, r)
	c.Advance(r.TTL - time.Microsecond)
	wantHeld(t, s, "report")
	c.Advance(time.Microsecond)
	if g := acquire(t, s, request("report")); g.Previous != quorum.PreviousExpired {
		t.Errorf("previous %v, want expired", g.Previous)
	}
}

func TestFilesDoNotGrowWithNamesEverUsed(t *testing.T) {
	dir := newDir(t)
	c := &clock.Manual{}
	s := open(t, dir, c)
	most := 0
	for i := range 600 {
		r := request(fmt.Sprint("job ", i))
		acquire(t, s, r)
		release(t, s, r)
		c.Advance(50 * time.Second) // some 19 of them rest at any time
		if i%50 == 49 {
			most = max(most, len(nameFiles(t, dir)))
		}
	}
	if most > 150 {
		t.Errorf("up to %d files with 19 names in use", most)
	}
	acquire(t, s, request("held"))
	wantHeld(t, s, "held")
}

// What a power cut must not take is on disk before it is answered, and nothing
// else waits for the disk.
func TestOnlyTheRecordIsSynced(t *testing.T) {
	dir := newDir(t)
	c := &clock.Manual{}
	m := world(t, c)
	var synced []string
	m.sync = func(f *os.File) error {
		synced = append(synced, strings.TrimPrefix(f.Name(), dir+"/"))
		return f.Sync()
	}
	took := func() []string { defer func() { synced = nil }(); return synced }
	s := openOn(t, m, dir)
	first := took()
	if !slices.Contains(first, freshName) {
		t.Errorf("opening a new directory synced %q, want the record among them", first)
	}
	pair := func(key string) {
		r := request(key)
		acquire(t, s, r)
		release(t, s, r)
	}
	pair("report") // the first request enrols its set
	if got := took(); len(got) != 2 {
		t.Errorf("the first request synced %q, want the record and the directory", got)
	}
	for i := range 100 {
		pair(fmt.Sprint("report ", i%10))
	}
	if got := took(); got != nil {
		t.Errorf("100 acquisitions in one step synced %q, want nothing", got)
	}
	c.Advance(5 * time.Minute)
	pair("report")
	if got := took(); len(got) != 2 || got[0] != freshName {
		t.Errorf("the step's move synced %q, want the record and the directory", got)
	}
	r := request("report")
	r.Floor = 1 << 52 >> 1
	if _, err := s.Acquire(context.Background(), r); err == nil {
		t.Fatal("a floor beyond reach was taken")
	}
	r.Floor = acquireAndRelease(t, s).Token + 1<<30
	took()
	acquire(t, s, r)
	if got := took(); len(got) != 2 {
		t.Errorf("a floor above the step synced %q, want the record and the directory", got)
	}
}

func acquireAndRelease(t *testing.T, s *Store) quorum.Grant {
	t.Helper()
	r := request("report")
	g := acquire(t, s, r)
	release(t, s, r)
	return g
}

// A record that others can see may not be on disk, if who wrote it was killed
// at the wrong moment.
func TestRecordOfAnotherIsSyncedBeforeItIsReliedOn(t *testing.T) {
	dir := newDir(t)
	acquireAndRelease(t, open(t, dir, clock.System()))
	m := world(t, clock.System())
	failing := errors.New("disk fails")
	var syncs int
	m.sync = func(f *os.File) error {
		if syncs++; syncs <= 2 {
			return failing
		}
		return f.Sync()
	}
	s := openOn(t, m, dir)
	r := request("report")
	if _, err := s.Acquire(context.Background(), r); !errors.Is(err, failing) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
		t.Fatalf("acquire on a disk that fails: %v; want its error, and nothing done", err)
	}
	if st, err := s.Inspect(context.Background(), r); err != nil || len(st.Holders) != 0 {
		t.Fatalf("inspect: %+v, %v; want no holder", st, err)
	}
	acquire(t, s, r)
	if syncs != 4 {
		t.Errorf("%d syncs, want the record's and the directory's twice", syncs)
	}
	if _, err := s.Extend(context.Background(), r); err != nil || syncs != 4 {
		t.Errorf("extend: %v after %d syncs, want no more", err, syncs)
	}
}

// A counter must not be seen above the step that is on disk.
func TestNameIsNotWrittenBeforeItsStepIsOnDisk(t *testing.T) {
	dir := newDir(t)
	c := &clock.Manual{}
	m := world(t, c)
	s := openOn(t, m, dir)
	acquireAndRelease(t, s)
	before := readFile(t, nameFile(t, s, "report"))
	failing := errors.New("disk fails")
	m.sync = func(*os.File) error { return failing }
	c.Advance(5 * time.Minute)
	if _, err := s.Acquire(context.Background(), request("report")); !errors.Is(err, failing) {
		t.Fatalf("acquire on a disk that fails: %v, want its error", err)
	}
	if after := readFile(t, nameFile(t, s, "report")); string(after) != string(before) {
		t.Error("the name was written although the step was not synced")
	}
}

func TestServerIsTheDirectory(t *testing.T) {
	dir := newDir(t)
	a, b := open(t, dir, clock.System()), open(t, dir+"/../locks", clock.System())
	other := open(t, newDir(t), clock.System())
	ga, go_ := acquire(t, a, request("a")), acquire(t, other, request("a"))
	gb := acquire(t, b, request("b"))
	if ga.Server == "" || ga.Server != gb.Server || ga.Server == go_.Server {
		t.Errorf("servers %q, %q and %q; want the first two equal", ga.Server, gb.Server, go_.Server)
	}
}

func TestCloseEndsCalls(t *testing.T) {
	s, err := New("host", newDir(t))
	if err != nil {
		t.Skip(err)
	}
	r := request("report")
	acquire(t, s, r)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Extend(context.Background(), r); !errors.Is(err, os.ErrClosed) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
		t.Errorf("extend after Close: %v, want os.ErrClosed, not sent", err)
	}
}

func TestNewRefusesSettings(t *testing.T) {
	for _, c := range [][2]string{{"", newDir(t)}, {"host", ""}} {
		if _, err := New(c[0], c[1]); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("New(%q, %q): %v, want ErrInvalidOption", c[0], c[1], err)
		}
	}
	if _, err := New("host", newDir(t), Option{}); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("New with an empty Option: %v, want ErrInvalidOption", err)
	}
}

func TestOpener(t *testing.T) {
	dir := newDir(t)
	t.Chdir(filepath.Dir(dir))
	for dsn, want := range map[string]string{
		"file:" + dir: "", "file://" + dir: "", "file://localhost" + dir: "", "file:locks": "", "file:loc%6Bs": "",
		"file://other" + dir: "not on other", "file:" + dir + "?name=host&x=1": "no parameter", "file:" + dir + "#x": "fragment",
		"file://user@localhost" + dir: "user", "file:": "needs a name",
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if u.RawQuery == "" {
			u.RawQuery = "name=host"
		}
		s, err := Opener().Open(context.Background(), u)
		if want != "" {
			if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want ErrInvalidOption that says %q", dsn, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := s.(*Store).dir.path; got != dir || s.Name() != "host" {
			t.Errorf("%s: store %s in %s, want host in %s", dsn, s.Name(), got, dir)
		}
		_ = s.(*Store).Close()
	}
}
