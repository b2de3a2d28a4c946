package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/quorumlock/quorum"
)

// crowd is how many goroutines a check lets loose on one store. A composite
// makes many calls of each, under limits that hold also on a slow machine.
func (c *call) crowd() int {
	if c.composite {
		return 8
	}
	return 32
}

// answer is what one of them got.
type answer struct {
	owner quorum.Owner
	grant quorum.Grant
	err   error
}

// together runs f for each of a crowd at the same time and returns what they
// got. The goroutines have all ended when it returns.
func (c *call) together(f func(i int) answer) []answer {
	answers := make([]answer, c.crowd())
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-start
			answers[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return answers
}

var concurrentChecks = []check{
	{"concurrent/one winner of 32", "two owners would hold one name", func(c *call) {
		var winners []answer
		for _, a := range c.together(func(int) answer {
			o := owner()
			g, err := c.tryAcquire(o)
			return answer{o, g, err}
		}) {
			switch {
			case a.err == nil:
				winners = append(winners, a)
			case !errors.Is(a.err, quorum.ErrHeld):
				c.failf("a loser got %v, want ErrHeld", a.err)
			}
		}
		if len(winners) != 1 {
			c.fatalf("%d of %d owners were granted the name at once, want 1", len(winners), c.crowd())
		}
		token := winners[0].grant.Token
		c.equal("the winner's token", c.extend(winners[0].owner, floor(token)).Token, token)
	}},
	{"concurrent/no token twice", "two owners' writes could not be told apart", func(c *call) {
		var mu sync.Mutex
		seen := map[int64]int{}
		last, fell := int64(0), ""
		for _, a := range c.together(func(int) (r answer) {
			for range 4 {
				o := owner()
				g, err := c.tryAcquire(o)
				if errors.Is(err, quorum.ErrHeld) {
					_ = c.tryRelease(o)
					continue
				}
				if err != nil {
					return answer{err: err}
				}
				mu.Lock() // the name is held, so nobody else's token comes between
				seen[g.Token]++
				if g.Token <= last {
					fell = fmt.Sprintf("token %d was given after %d", g.Token, last)
				}
				last = g.Token
				mu.Unlock()
				if r.err = c.tryRelease(o); r.err != nil {
					return r
				}
			}
			return r
		}) {
			if a.err != nil {
				c.failf("a goroutine got %v, want grants and ErrHeld only", a.err)
			}
		}
		for token, n := range seen {
			if n > 1 {
				c.failf("token %d was given %d times", token, n)
			}
		}
		if fell != "" {
			c.failf("%s", fell)
		}
		if len(seen) == 0 {
			c.failf("nobody was granted the name")
		}
	}},
	{"concurrent/32 names at once", "work on one name would disturb another", func(c *call) {
		for i, a := range c.together(func(i int) answer {
			o, k := owner(), key(fmt.Sprintf("%s %d", c.key, i))
			g, err := c.tryAcquire(o, k)
			if err != nil {
				return answer{err: err}
			}
			if _, err = c.tryExtend(o, k, floor(g.Token)); err != nil {
				return answer{err: err}
			}
			return answer{err: c.tryRelease(o, k)}
		}) {
			if a.err != nil {
				c.failf("name %d: %v", i, a.err)
			}
		}
	}},
	{"concurrent/doubled requests are one vote", "a request that was sent twice would be interrupted by itself", func(c *call) {
		o := owner()
		tokens := map[int64]bool{}
		for _, a := range c.together(func(int) answer {
			g, err := c.tryAcquire(o)
			return answer{grant: g, err: err}
		}) {
			if a.err != nil {
				c.failf("a copy of the request got %v", a.err)
				continue
			}
			tokens[a.grant.Token] = true
		}
		if len(tokens) > 1 {
			c.failf("%d copies of one request got %d different tokens, want 1", c.crowd(), len(tokens))
		}
	}},
	{"concurrent/readers all get in", "readers would push one another out", func(c *call) {
		c.needShares()
		readers := c.together(func(int) answer {
			o := owner()
			g, err := c.tryAcquire(o, shared)
			return answer{o, g, err}
		})
		for _, a := range readers {
			if a.err != nil {
				c.failf("a reader got %v", a.err)
				continue
			}
			c.equal("a reader's token", a.grant.Token, readers[0].grant.Token)
		}
		c.contended(owner())
		for _, a := range readers {
			c.release(a.owner)
		}
		c.free()
	}},
	{"concurrent/release and acquire", "a release could remove the vote of whoever came next", func(c *call) {
		for range 8 {
			old := owner()
			c.acquire(old)
			var held []answer
			for _, a := range c.together(func(i int) answer {
				if i%4 == 0 {
					return answer{err: errors.Join(c.tryRelease(old), quorum.ErrHeld)}
				}
				o := owner()
				g, err := c.tryAcquire(o)
				if err != nil {
					_ = c.tryRelease(o) // as whoever was not granted must
				}
				return answer{o, g, err}
			}) {
				if a.err == nil {
					held = append(held, a)
				}
			}
			if len(held) > 1 {
				c.fatalf("%d owners were granted the name after one release", len(held))
			}
			if len(held) == 1 {
				c.extend(held[0].owner, floor(held[0].grant.Token))
				c.release(held[0].owner)
			}
		}
	}},
}
