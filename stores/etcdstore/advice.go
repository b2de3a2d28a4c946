package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// oldest is the first version that is supported: before it a member that leads
// no more, and does not know it yet, could acknowledge a renewal (etcd issue
// 15247, mended in 3.5.10).
var oldest = [3]int{3, 5, 10}

// fullAt is the share of the quota at which the database counts as nearly full,
// in per cent.
const fullAt = 80

// adviceLimit bounds how long the answer to a store's first call waits for it.
const adviceLimit = 500 * time.Millisecond

// advice is what is known of a server beside its locks.
type advice struct {
	asked sync.Once
	mu    sync.Mutex
	texts []string
}

// Advice implements [quorum.Adviser]. The server is asked once, after the
// store's first call.
func (s *Store) Advice() []string {
	s.advice.mu.Lock()
	defer s.advice.mu.Unlock()
	return slices.Clone(s.advice.texts)
}

// advise asks a member of the cluster how it is, on the connection that there
// is. Without an answer there is no advice.
func (s *Store) advise(ctx context.Context) {
	s.advice.asked.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, adviceLimit)
		defer cancel()
		maintenance := etcdserverpb.NewMaintenanceClient(s.client().ActiveConnection())
		status, err := maintenance.Status(ctx, &etcdserverpb.StatusRequest{})
		if err != nil {
			return
		}
		s.advice.mu.Lock()
		defer s.advice.mu.Unlock()
		s.advice.texts = adviceOf(status)
	})
}

func adviceOf(status *etcdserverpb.StatusResponse) []string {
	var all []string
	var v [3]int
	_, err := fmt.Sscanf(status.Version, "%d.%d.%d", &v[0], &v[1], &v[2])
	if err == nil && slices.Compare(v[:], oldest[:]) < 0 {
		all = append(all, fmt.Sprintf("etcd %s may confirm a lock by a member that leads no more; use %d.%d.%d or newer",
			status.Version, oldest[0], oldest[1], oldest[2]))
	}
	if quota := status.DbSizeQuota; quota > 0 && status.DbSizeInUse >= quota/100*fullAt {
		all = append(all, fmt.Sprintf("the database uses %d of its quota of %d MiB, and takes no write when that is reached, "+
			"not even a release; set --auto-compaction-retention, and defragment it", status.DbSizeInUse>>20, quota>>20))
	}
	for _, alarm := range status.Errors {
		all = append(all, "the server raised an alarm: "+alarm)
	}
	return all
}
