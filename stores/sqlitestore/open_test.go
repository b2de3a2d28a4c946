//go:build linux

package sqlitestore

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

func TestR62Opener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?b #%.db")
	escaped := (&url.URL{Path: path}).String()
	t.Chdir(filepath.Dir(path))
	for dsn, want := range map[string]string{
		"sqlite:" + escaped: "", "sqlite://" + escaped: "", "sqlite://localhost" + escaped: "", "sqlite:a%3Fb%20%23%25.db": "",
		"sqlite://other/" + escaped: "not on other", "sqlite:" + escaped + "?name=host&x=1": "no parameter",
		"sqlite:" + escaped + "#x": "fragment", "sqlite://user@localhost" + escaped: "user", "sqlite:": "needs the path",
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
		if got := s.(*Store).file.path; got != path || s.Name() != "host" {
			t.Errorf("%s: store %s in %s, want host in %s", dsn, s.Name(), got, path)
		}
		if err := s.(*Store).Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestF173NewFileIsTheUsersAlone(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s := fresh(t, clock.System())
	pair(t, s, "report")
	files, err := filepath.Glob(s.file.path + "*")
	if err != nil || len(files) != 3 {
		t.Fatalf("files %q, %v; want the database, its log and the log's index", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
			t.Errorf("%s has mode %v, %v; want 0600: it holds owners' IDs", f, info.Mode(), err)
		}
	}
}

func TestOpenLeavesTheJournalOfAFileAlone(t *testing.T) {
	for journal, level := range map[string]int{"delete": full, "wal": normal} {
		path := newPath(t)
		run(t, database(t, path, journal), "CREATE TABLE of_another (x)")
		s := open(t, world(t, clock.System()), path)
		if got := one[string](t, s.file.db, "PRAGMA journal_mode"); got != journal {
			t.Errorf("journal mode %s, want %s as it was", got, journal)
		}
		if got := one[int](t, s.file.db, "PRAGMA synchronous"); got != level {
			t.Errorf("in journal mode %s synchronous is %d, want %d", journal, got, level)
		}
	}
	s := fresh(t, clock.System())
	if got := one[string](t, s.file.db, "PRAGMA journal_mode"); got != "wal" {
		t.Errorf("journal mode %s of a new file, want wal", got)
	}
}

func TestCloseEndsCalls(t *testing.T) {
	s := fresh(t, clock.System())
	r, _ := acquire(t, s, "report")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Extend(t.Context(), r)
	wantFailure(t, err, nil, "closed")
}
