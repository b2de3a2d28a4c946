package quorum

import (
	"fmt"
	"runtime"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// AskOrderOf shows in which order a set asks its members for a key.
func AskOrderOf(c *CombinedStore, key string) []int {
	order := make([]int, len(c.members))
	for n := range order {
		order[n] = c.askOrder(key).At(n)
	}
	return order
}

// FingerprintOf shows what stands for a set.
func FingerprintOf(c *CombinedStore, maxTTL time.Duration) Fingerprint { return c.fingerprint(maxTTL) }

// Defaults shows the table of defaults, a setting a line.
func Defaults() string {
	s := defaults()
	return fmt.Sprintf(`TTL %v
MaxTTL %v
RenewEvery %v
NoRenew %v
Wait %v
FailOnOutage %v
AskOrder %v
Backoff %v %v
CallLimit %v
ReleaseLimit %v
InFlight %v
Drift %v %v
Expiring %v
MaxHold %v
Mode %v
Label %q
Observe %v
WithClock %T
Cluster %v
`, s.ttl, s.maxTTL, s.renewEvery, s.noRenew, s.wait, s.failOnOutage, s.order, s.backoffMin, s.backoffMax, s.callLimit,
		s.releaseLimit, s.inFlight, s.driftRate, s.driftFixed, s.expiring, s.maxHold, s.mode, s.label, s.observe != nil, s.clock, s.cluster)
}

// MetOf shows whether a set of votes, by position, is a quorum.
func MetOf(c *CombinedStore, votes uint) bool { return c.rule.Met(core.Set(votes)) }

// HashOf is what the order of asking is made of.
func HashOf(key, name string) uint64 { return hash(hash(fnvOffset, key)*fnvPrime, name) }

// Overtaken calls acquire, whose lease is let in, as by who stood before it in
// line, while the goroutine that calls acquire is about to fall in.
func Overtaken(l *Locker, acquire func()) {
	l.hub.mu.Lock() // which it needs for that
	done := make(chan struct{})
	go func() {
		defer close(done)
		acquire()
	}()
	var lease *Lease
	for lease == nil {
		l.mu.Lock()
		for _, lease = range l.live {
		}
		l.mu.Unlock()
		runtime.Gosched()
	}
	go lease.admit()
	for range 1000 { // a chance to be decided, where that is possible
		runtime.Gosched()
	}
	l.hub.mu.Unlock()
	<-done
}

// PlacesOf returns how many places of releases are taken.
func PlacesOf(l *Locker) int { return len(l.releases) }

// RefillsOf returns how many stores are on their way out of quarantine.
func RefillsOf(l *Locker) int {
	l.keeper.mu.Lock()
	defer l.keeper.mu.Unlock()
	return len(l.keeper.running)
}

// MeetQuarantine has store i looked after, as if it had answered that it is in
// quarantine.
func MeetQuarantine(l *Locker, i int) { l.keeper.start(seat{l.set, i}) }
