package quorum

import (
	"fmt"
	"strings"
	"sync"
)

// identities is what the members of a set have said of who their servers are.
// One server under two names would have two votes: the later of the two never
// votes. It is knowledge of servers, not of locks.
type identities struct {
	mu    sync.RWMutex
	known []string // comma-joined where a member is several servers
	twin  []int    // of whom, or -1
}

func newIdentities(n int) *identities {
	twin := make([]int, n)
	for i := range twin {
		twin[i] = -1
	}
	return &identities{known: make([]string, n), twin: twin}
}

// meet notes that member i is the server that answered, and returns of which
// other member it is a twin, or -1.
func (x *identities) meet(i int, server string) (of int) {
	x.mu.RLock()
	same, of := x.known[i] == server || server == "", x.twin[i]
	if of >= 0 && server != "" && !shareServer(server, x.known[of]) {
		same = false
	}
	x.mu.RUnlock()
	if same {
		return of
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known[i], x.twin[i] = server, -1
	for j, other := range x.known {
		if j != i && other != "" && x.twin[j] < 0 && shareServer(server, other) {
			x.twin[i] = j // the later to be met
			return j
		}
	}
	return -1
}

// all returns every server met, for a composite that is asked who it is.
func (x *identities) all() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []string
	for _, s := range x.known {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ",")
}

func shareServer(a, b string) bool {
	if a == b {
		return true
	}
	for s := range strings.SplitSeq(a, ",") {
		for t := range strings.SplitSeq(b, ",") {
			if s == t {
				return true
			}
		}
	}
	return false
}

// twinError says that two members are one server.
func twinError(a, b string) error {
	return fmt.Errorf("store %q is the same server as %q, and does not vote: one server is one vote", a, b)
}

// errTwins is an [ErrInvalidOption] whose words are plain beside stores that
// granted; their votes say which they are.
var errTwins error = twinsError{}

type twinsError struct{}

func (twinsError) Error() string { return "two members are one server" }
func (twinsError) Unwrap() error { return ErrInvalidOption }
