package storetest

import (
	"context"
	"strings"
	"sync"

	"github.com/quorumlock/quorum"
)

// watching is what a watch has told so far.
type watching struct {
	mu     sync.Mutex
	told   []quorum.Wake
	ended  chan error
	cancel context.CancelFunc
}

// watch begins a watch of the name and waits until it stands.
func (c *call) watch(mods ...mod) *watching {
	s, ok := quorum.As[quorum.Watcher](c.store)
	if limits := c.store.Limits(); !ok || !limits.Watches {
		if ok != limits.Watches {
			c.failf("Limits.Watches is %v, and the store is a Watcher: %v", limits.Watches, ok)
		}
		c.skip("the store is no Watcher")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	w := &watching{ended: make(chan error, 1), cancel: cancel}
	go func() {
		w.ended <- s.Watch(ctx, c.request(quorum.Owner{}, mods...), func(wake quorum.Wake) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, wake)
		})
	}()
	c.hears(w, "that the watch stands", func(k quorum.Wake) bool { return k.Kind == quorum.WakeStarted })
	return w
}

// hears waits until the watch has told something of the kind. Other wakes may
// come before: each is a hint.
func (c *call) hears(w *watching, what string, is func(quorum.Wake) bool) quorum.Wake {
	var found quorum.Wake
	c.await(what, patience, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, k := range w.told {
			if is(k) {
				found, w.told = k, nil
				return true
			}
		}
		return false
	})
	return found
}

func changed(k quorum.Wake) bool { return k.Kind == quorum.WakeChanged }

// watched leaves the mark that some stores need to tell.
func watched(r *quorum.Request) { r.Wait = quorum.WaitWatch }

var watchChecks = []check{
	{"watch/a release is told", "a waiter would sleep until its next poll", func(c *call) {
		w := c.watch()
		a := owner()
		c.acquire(a)
		c.contended(owner(), watched)
		c.release(a)
		c.hears(w, "a release", changed)
	}},
	{"watch/a take-over by force is told", "a holder would believe for up to a third of its TTL", func(c *call) {
		w := c.watch()
		c.acquire(owner())
		c.contended(owner(), watched)
		c.acquire(owner(), kind(quorum.KindForce))
		c.hears(w, "a take-over", changed)
	}},
	{"watch/any number watch one name", "waiters of several processes would not all be woken", func(c *call) {
		w, v := c.watch(), c.watch()
		a := owner()
		c.acquire(a)
		c.contended(owner(), watched)
		c.release(a)
		c.hears(w, "a release, to the first", changed)
		c.hears(v, "a release, to the second", changed)
	}},
	{"watch/ends with its context", "a goroutine would be left behind", func(c *call) {
		w := c.watch()
		w.cancel()
		if err := <-w.ended; err != nil {
			c.failf("Watch = %v after its context ended, want nil", err)
		}
		c.free()
	}},
	{"watch/a turn is told to the head", "the line would move at the pace of polls", func(c *call) {
		c.needQueues()
		w := c.watch()
		a, b, d := owner(), owner(), owner()
		token := c.acquire(a).Token
		c.stands(b, behind, 1, 0, c.take(1))
		c.stands(d, behind, 2, 1, c.take(2))
		c.release(a)
		k := c.hears(w, "a turn", func(k quorum.Wake) bool { return k.Kind == quorum.WakeTurn })
		if k.Owner != b.Digest() || k.Counter != token {
			c.failf("the turn of %q with counter %d, want %q and %d", k.Owner, k.Counter, b.Digest(), token)
		}
	}},
	{"watch/the next in line is told when to look", "a waiter that died would stop the line", func(c *call) {
		c.needQueues()
		w := c.watch()
		a, b, d := owner(), owner(), owner()
		c.acquire(a)
		c.stands(b, behind, 1, 0, c.take(1))
		c.stands(d, behind, 2, 1, c.take(2))
		c.release(a)
		k := c.hears(w, "who is next", func(k quorum.Wake) bool { return k.Kind == quorum.WakeNext })
		if k.Owner != d.Digest() || k.After != c.ttl {
			c.failf("next is %q after %v, want %q after %v", k.Owner, k.After, d.Digest(), c.ttl)
		}
	}},
	{"watch/shows no owner", "whoever may watch could release other's locks", func(c *call) {
		c.needQueues()
		w := c.watch()
		a, b := owner(), owner()
		c.acquire(a)
		c.stands(b, behind, 1, 0, c.take(1))
		c.release(a)
		k := c.hears(w, "a turn", func(k quorum.Wake) bool { return k.Kind == quorum.WakeTurn })
		if strings.Contains(k.Owner, b.Hex()) || len(k.Owner) > 12 {
			c.failf("a wake names its owner by %d characters, want the digest", len(k.Owner))
		}
	}},
}
