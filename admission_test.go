package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// asked lists the keys for which any store of b was asked, sorted.
func (b *bed) asked() []string {
	var keys []string
	for _, sp := range b.spoil {
		for _, c := range sp.Log(nil) {
			keys = append(keys, c.Request.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// crowd starts n acquisitions of names of their own.
func crowd(ctx context.Context, l *quorum.Locker, n int) chan error {
	done := make(chan error, n)
	for i := range n {
		go func() {
			lease, err := l.Acquire(ctx, fmt.Sprint("name ", i))
			if err == nil {
				err = lease.Release(ctx)
			}
			done <- err
		}()
	}
	return done
}

func TestInFlightBoundsHowManyAsk(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.InFlight(2))
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Hang()))
		}
		done := crowd(t.Context(), l, 9)
		synctest.Wait()
		if keys := b.asked(); len(keys) != 2 {
			t.Errorf("asked for %q while two may ask", keys)
		}
		for _, sp := range b.spoil {
			sp.Set()
			sp.Thaw()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if keys := b.asked(); len(keys) != cap(done) {
			t.Errorf("asked for %q in the end", keys)
		}
	})
}

// Who waits for a place has asked nobody: it can be neither contention nor an
// outage, and nothing needs to be taken back.
func TestWaitingForAPlaceEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(cancel func(), l *quorum.Locker)
		wait quorum.Option
		want error
	}{
		"by its context": {func(cancel func(), _ *quorum.Locker) { cancel() }, quorum.Wait(time.Hour), context.Canceled},
		"by Wait":        {func(func(), *quorum.Locker) {}, quorum.Wait(100 * time.Millisecond), context.DeadlineExceeded},
		"by Close":       {func(_ func(), l *quorum.Locker) { go l.Close(context.Background()) }, quorum.Wait(time.Hour), quorum.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				l := b.locker(quorum.InFlight(1))
				for _, sp := range b.spoil {
					sp.Set(storetest.Always(storetest.Hang()))
					defer sp.Thaw()
				}
				first := crowd(t.Context(), l, 1)
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				failed := make(chan error, 1)
				go func() {
					_, err := l.Acquire(ctx, "late", tc.wait)
					failed <- err
				}()
				synctest.Wait()
				tc.end(cancel, l)
				err := <-failed
				if !errors.Is(err, tc.want) || errors.Is(err, quorum.ErrHeld) || errors.Is(err, quorum.ErrNoQuorum) {
					t.Errorf("%v, want %v and nothing of the stores", err, tc.want)
				}
				if keys := b.asked(); slices.Contains(keys, "late") {
					t.Errorf("asked for %q", keys)
				}
				for _, sp := range b.spoil {
					sp.Set()
					sp.Thaw()
				}
				<-first
			})
		})
	}
}

// A place is free again when the first attempt is decided, whatever came of it.
func TestWhoWaitsForALockTakesNoPlace(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		holder, l := b.locker(), b.locker(quorum.InFlight(1))
		lease := must(t, holder, "k")
		var waiters []chan error
		for range 3 {
			done := make(chan error, 1)
			waiters = append(waiters, done)
			go func() {
				mine, err := l.Acquire(t.Context(), "k")
				if err == nil {
					err = mine.Release(t.Context())
				}
				done <- err
			}()
		}
		time.Sleep(time.Second)
		if err := must(t, l, "other").Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		for _, done := range waiters {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		must(t, l, "k")
	})
}

// A reader is let in by the one before it in line as soon as it stands there,
// and may have its lock before its own goroutine asks for it.
func TestPlaceIsGivenBackByWhoIsOvertaken(t *testing.T) {
	l, err := quorum.New(memstore.New("memory"), quorum.InFlight(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.Background()) }()
	cycle := func() {
		lease, err := l.Acquire(t.Context(), "report", quorum.Shared(), quorum.Wait(10*time.Second))
		if err != nil {
			t.Error(err)
			return
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	quorum.Overtaken(l, cycle)
	cycle()
}

// Releases have places of their own, and Close waits for one no longer than a
// call may take.
func TestReleasesWaitForNoAcquisitionAndCloseForNoCallThatHangs(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.InFlight(1))
		free, stuck, behind := must(t, l, "free"), must(t, l, "stuck"), must(t, l, "behind")
		b.settle()
		for _, sp := range b.spoil {
			sp.Set(storetest.On(func(c storetest.Call) bool {
				return c.Verb == storetest.VerbAcquire || c.Request.Key == "stuck"
			}, storetest.Hang()))
		}
		waiting := crowd(t.Context(), l, 5)
		synctest.Wait()
		start := time.Now()
		if err := free.Release(t.Context()); err != nil {
			t.Error(err)
		}
		within(t, "a release beside acquisitions that hang", since(start), 0, 0)

		back := make(chan error, 2)
		go func() { back <- stuck.Release(t.Context()) }()
		synctest.Wait()
		go func() { back <- behind.Release(t.Context()) }()
		synctest.Wait()
		if n := b.held("behind"); n != 3 {
			t.Fatalf("the second of two releases was sent while one may be: held by %d stores", n)
		}
		closed := make(chan error)
		go func() { closed <- l.Close(t.Context()) }()
		if one, other := <-back, <-back; !errors.Is(errors.Join(one, other), quorum.ErrNoQuorum) || one != nil && other != nil {
			t.Errorf("released: %v, %v; want that one hangs, and the other does not", one, other)
		}
		within(t, "a release that Close made", since(start), time.Second, time.Second)
		synctest.Wait() // it waits for no store that is sick
		b.checkEmpty("behind")
		for range cap(waiting) {
			if err := <-waiting; !errors.Is(err, quorum.ErrClosed) {
				t.Errorf("an acquisition beside Close: %v", err)
			}
		}
		for _, sp := range b.spoil {
			sp.Set()
			sp.Thaw()
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		b.checkEmpty("stuck")
	})
}
