package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

func TestWhoMayUseADirectory(t *testing.T) {
	const me, mine, theirs = 1000, 1000, 2000
	for _, c := range []struct {
		what     string
		uid, gid int
		mode     fs.FileMode
		user     int
		files    fs.FileMode // 0 is refused
		why      string
	}{
		{"own", me, mine, 0o700, me, 0o600, ""},
		{"own, readable", me, mine, 0o755, me, 0o600, ""},
		{"own, world-writable", me, mine, 0o777, me, 0, "everybody may write"},
		{"own, sticky as /tmp", me, mine, 0o777 | fs.ModeSticky, me, 0, "everybody may write"},
		{"root's for my group", 0, mine, 0o770, me, 0o660, ""},
		{"root's for my group, readable", 0, mine, 0o775, me, 0o660, ""},
		{"root's for my group, not writable", 0, mine, 0o750, me, 0, "the group needs rwx"},
		{"root's for my group, sticky", 0, mine, 0o770 | fs.ModeSticky, me, 0, "chmod -t"},
		{"root's for another group", 0, theirs, 0o770, me, 0, "needs to be in that group"},
		{"root's, world-writable", 0, mine, 0o773, me, 0, "everybody may write"},
		{"another user's", theirs, mine, 0o770, me, 0, "user 2000 owns it"},
		{"another user's, for root", theirs, mine, 0o700, 0, 0, "user 2000 owns it"},
		{"root's, for root", 0, 0, 0o700, 0, 0o600, ""},
		{"root's for a group, for root", 0, theirs, 0o2770, 0, 0o660, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := &machine{user: c.user, groups: []int{mine}, owner: func(fs.FileInfo) (int, int) { return c.uid, c.gid }}
			mode, group, err := m.access(info{fs.ModeDir | c.mode})
			if c.files == 0 {
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Fatalf("mode %v, error %v; want a refusal that says %q", mode, err, c.why)
				}
				return
			}
			wantGroup := -1
			if c.files == 0o660 {
				wantGroup = c.gid
			}
			if err != nil || mode != c.files || group != wantGroup {
				t.Errorf("mode %04o, group %d, error %v; want %04o and %d", mode, group, err, c.files, wantGroup)
			}
		})
	}
}

type info struct{ mode fs.FileMode }

func (i info) Name() string       { return "locks" }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

func TestF173FilesAreTheUsersAlone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := newDir(t)
	acquire(t, open(t, dir, clock.System()), request("report"))
	wantModes(t, dir, 0o700, 0o600, -1)
}

func TestF173FilesInRootsDirectoryAreTheGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a directory for a group")
	}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	const group = 4711
	dir := newDir(t)
	if err := errors.Join(os.Mkdir(dir, 0o770), os.Chown(dir, 0, group), os.Chmod(dir, 0o770)); err != nil {
		t.Fatal(err)
	}
	acquire(t, open(t, dir, clock.System()), request("report"))
	wantModes(t, dir, 0o770, 0o660, group)
}

func wantModes(t *testing.T, dir string, dirMode, fileMode fs.FileMode, group int) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		want := fileMode
		if e.IsDir() {
			want = dirMode
		} else {
			files++
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, fi.Mode().Perm(), want)
		}
		if _, gid := owner(fi); group >= 0 && gid != group {
			t.Errorf("%s belongs to group %d, want %d", path, gid, group)
		}
		return nil
	})
	if err != nil || files != 3 {
		t.Errorf("%d files, error %v; want lock, record and one name", files, err)
	}
}

func TestNewRefusesWhatIsNoDirectoryOfItsOwn(t *testing.T) {
	base := t.TempDir()
	target := filepath.Join(base, "target")
	link := filepath.Join(base, "link")
	file := filepath.Join(base, "file")
	write(t, file, nil)
	if err := errors.Join(os.Mkdir(target, 0o700), os.Symlink(target, link), os.Chmod(base, 0o777)); err != nil {
		t.Fatal(err)
	}
	for dir, why := range map[string]string{
		link: "symbolic link", file: "not a directory", base: "everybody may write", filepath.Join(file, "x"): "not a directory",
	} {
		if s, err := New("host", dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("New in %s: %v, %v; want an error that says %q", dir, s, err, why)
		}
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) != 0 {
		t.Errorf("the link's target holds %v, %v; want nothing", entries, err)
	}
}

// A planted link is an error, and what it points to stays as it is.
func TestF173PlantedLinkIsNotFollowed(t *testing.T) {
	for _, victim := range []string{lockName, recordName, "name"} {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, to a file inside %v", victim, inside), func(t *testing.T) {
				dir := newDir(t)
				s := open(t, dir, clock.System())
				r := request("report")
				acquire(t, s, r)
				release(t, s, r)
				path := filepath.Join(dir, victim)
				if victim == "name" {
					path = nameFile(t, s, "report")
				}
				target := filepath.Join(filepath.Dir(dir), "target")
				if inside {
					target = filepath.Join(dir, "target")
				}
				if err := errors.Join(os.Rename(path, target), os.Symlink(target, path)); err != nil {
					t.Fatal(err)
				}
				before := readFile(t, target)
				_, err := s.Acquire(context.Background(), request("report"))
				wantLinkError(t, err)
				if victim == lockName {
					_, err := newStore(world(t, clock.System()), "host", dir)
					wantLinkError(t, err)
				}
				if after := readFile(t, target); string(after) != string(before) {
					t.Error("the link's target was changed")
				}
			})
		}
	}
}

func wantLinkError(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, quorum.ErrHeld) || !strings.Contains(err.Error(), "symbolic link") {
		t.Fatalf("error %v, want one that names the symbolic link", err)
	}
}

// A pipe in place of a file must not hang the opener.
func TestPlantedPipeIsRefused(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir, clock.System())
	remove(t, filepath.Join(dir, recordName))
	if err := syscall.Mkfifo(filepath.Join(dir, recordName), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(context.Background(), request("report")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Fatalf("error %v, want one about the pipe", err)
	}
}

func TestF173F175KeysStayInside(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "a", "locks")
	s := open(t, dir, clock.System())
	second := open(t, dir, clock.System())
	keys := []string{
		"../../tmp/x", "/etc/x", "a/../b", "..", ".", "/", "lock", "record", "fresh", "a\nb", "CON", "report", "Report",
		"é", "e\u0301", " ", strings.Repeat("k", 64), strings.Repeat("k", 65), strings.Repeat("k", 255),
		strings.Repeat("k", 256), strings.Repeat("k", 512), strings.Repeat("é", 256),
	}
	for _, key := range keys {
		acquire(t, s, request(key))
		wantHeld(t, second, key)
	}
	for _, key := range []string{"", strings.Repeat("k", 513), strings.Repeat("k", 4096), "a\x00b", "a\xffb"} {
		if _, err := s.Acquire(context.Background(), request(key)); !errors.Is(err, quorum.ErrInvalidKey) {
			t.Errorf("key %.20q of %d bytes: %v, want ErrInvalidKey", key, len(key), err)
		}
	}
	if files := nameFiles(t, dir); len(files) != len(keys) {
		t.Errorf("%d files for %d keys", len(files), len(keys))
	}
	folded := map[string]bool{}
	for _, file := range nameFiles(t, dir) {
		folded[strings.ToLower(file)] = true
	}
	if len(folded) != len(keys) {
		t.Errorf("%d files where case does not count, want %d", len(folded), len(keys))
	}
	for _, outside := range []string{base, filepath.Join(base, "a")} {
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("%s holds %v, %v; want the way to the directory alone", outside, entries, err)
		}
	}
}

// No descriptor is inherited, and none is locked while a lease is held: a
// daemon that a holder started keeps nothing.
func TestF085ChildInheritsNothing(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir, clock.System())
	r := request("report")
	acquire(t, s, r)
	wantHeld(t, open(t, dir, clock.System()), "report") // opens what the first one made
	list, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil {
		t.Skipf("ls: %v", err)
	}
	if strings.Contains(string(list), dir) {
		t.Errorf("a child of the holder has descriptors of the directory:\n%s", list)
	}
	// ls fails when another descriptor of this process is closed meanwhile.
	if own, err := exec.Command("ls", "-l", fmt.Sprintf("/proc/%d/fd", os.Getpid())).Output(); !strings.Contains(string(own), dir) {
		t.Fatalf("this process shows no descriptor of the directory, so the test shows nothing: %v", err)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	release(t, s, r)
	acquire(t, open(t, dir, clock.System()), request("report"))
}
