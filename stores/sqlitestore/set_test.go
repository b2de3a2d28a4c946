//go:build linux

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/rwtest"
	"github.com/quorumlock/quorum/storetest"
)

func TestSetOfThree(t *testing.T) {
	acceptance.Suite{TTL: time.Second, New: func(t *testing.T) []acceptance.Member {
		var members []acceptance.Member
		for i := range 3 {
			s, err := Open(t.Context(), fmt.Sprint("file", i), newPath(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			members = append(members, acceptance.Member{Store: s, Forget: func() {
				run(t, s.file.db, "UPDATE quorum_lock SET counter = NULL")
				run(t, s.file.db, "DELETE FROM quorum_lock")
				run(t, s.file.db, "DELETE FROM quorum_record")
			}})
		}
		return members
	}}.Run(t)
}

// TestR45OneFileIsOneVote: a set of two names for one file has one vote, that
// of the name by which the file was met first.
func TestR45OneFileIsOneVote(t *testing.T) {
	a := open(t, world(t, clock.System()), newPath(t))
	b, err := New(t.Context(), "b", a.file.db)
	if err != nil {
		t.Fatal(err)
	}
	second := storetest.Spoil(b, storetest.Always(storetest.Fail(storetest.ErrSpoiled)))
	both, err := quorum.Combine(quorum.Unanimous(), a, second)
	if err != nil {
		t.Fatal(err)
	}
	l := acceptance.Locker(t, both, quorum.ReleaseLimit(100*time.Millisecond)) // b cannot release
	acceptance.Await(t, "the store to be met by its first name", func() bool {
		_ = l.Init(t.Context(), "host") // again where it took longer than that
		_, err := l.TryAcquire(t.Context(), "job")
		return err != nil && strings.Contains(err.Error(), "host granted")
	})
	second.Set() // from here on it may well answer before the other does
	lease, err := l.TryAcquire(t.Context(), "job")
	if lease != nil || !errors.Is(err, quorum.ErrNoQuorum) || !strings.Contains(err.Error(), `store "b" is the same server as "host"`) {
		t.Errorf("a quorum of one file and itself: %v, want a single vote", err)
	}
}

func TestR32R33ReadersAndWriters(t *testing.T) {
	s := open(t, world(t, clock.System()), newPath(t))
	locker := func() *quorum.Locker {
		l, err := quorum.New(s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		return l
	}
	if err := locker().Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed := acceptance.Seed(t)
	stats, err := rwtest.Run(t.Context(), locker, 5, 3, 2000, time.Minute, seed)
	t.Logf("%+v", stats)
	if err != nil || stats.Acquired == 0 {
		t.Errorf("%v after %+v (QUORUM_SEED=%d)", err, stats, seed)
	}
}
