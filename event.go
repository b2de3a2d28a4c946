package quorum

import "time"

// EventKind says what an [Event] tells. docs/events.md has a table of all: what
// each fills, and what to do about it.
type EventKind uint8

// The kinds of event.
const (
	EventAcquired    EventKind = iota // Took: how long the wait was
	EventFailed                       // an Acquire failed: Err
	EventWaiting                      // an Acquire has waited for Took, by contention or outage: Err; after 2 s, then every 10 s
	EventRenewed                      // a round of extension succeeded
	EventRenewFailed                  // a round did not; the lease stands until its end
	EventExpiring                     // Left until the lease ends, and no renewal has succeeded
	EventLost                         // Err is a *LostError
	EventReleased                     // Took: how long the lock was held
	EventReleaseFail                  // a store was not released until the limit; it frees itself at the TTL
	EventStoreFailed                  // a store gave no clear answer: Store, Err
	EventTwin                         // a store is the same server as another member and does not vote: Store, Err
	EventQuarantine                   // a store may have forgotten and does not vote for Left: Store
	EventRefilled                     // a store left quarantine: Store; Err when only the servers' clocks vouch for token order
	EventNewSet                       // every store is in quarantine: a new set waits for MaxTTL unless Init declares it new
	EventAdvice                       // a setting that endangers locks, such as an eviction policy: Store, Err
	EventPromoted                     // a reader's lease became a writer's, with a new Token
	EventDemoted                      // a writer's lease became a reader's
	EventChange                       // the stores are changing from one set to another: Stage; Left while leases of the old set may last
)

// Event is something worth a line of a log or a count of a metric. Fields may
// be added.
type Event struct {
	Kind  EventKind
	Key   string // empty where the event concerns a store only
	Store string
	Label string // of the holder, when waiting for one
	Token int64
	Took  time.Duration
	Left  time.Duration
	Err   error
	Votes []Vote
	Stage ChangeStage
}

// String names the kind in lower case.
func (k EventKind) String() string {
	return [...]string{
		"acquired", "failed", "waiting", "renewed", "renewal failed", "expiring", "lost", "released",
		"release failed", "store failed", "twin", "quarantine", "refilled", "new set", "advice",
		"promoted", "demoted", "change",
	}[k]
}
