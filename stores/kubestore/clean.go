package kubestore

import (
	"context"
	"time"

	coordination "k8s.io/api/coordination/v1"
)

const cleanLimit = time.Minute // for one round in the background

// Clean deletes the Leases that no name needs, and returns how many: those of
// names that nobody holds, by what this client has seen, and whose next token,
// counted from the store's step, is above all that were given. A Lease that
// changed meanwhile stays. The store does so by itself about every five
// minutes, when one of its calls moves the step.
func (s *Store) Clean(ctx context.Context) (dropped int, err error) {
	next := ""
	for {
		list, err := s.list(ctx, "labelSelector", prefixLabel+"="+s.prefix, next)
		if err == nil {
			var n int
			n, err = s.cleanPage(ctx, list.Items)
			dropped += n
		}
		if err != nil {
			err, _ = explain(err)
			return dropped, s.wrap(inspect, "", err)
		}
		if next = list.Continue; next == "" {
			return dropped, nil
		}
	}
}

func (s *Store) cleanPage(ctx context.Context, leases []coordination.Lease) (dropped int, err error) {
	// The step only grows, so one that was read before a Lease is deleted is not
	// above the one that whoever starts the name again reads.
	record := &snapshot{}
	if err := s.readRecord(ctx, record); err != nil || record.set == nil || record.fell {
		return 0, err
	}
	now := s.wall().UnixMicro()
	for i := range leases {
		o, err := newObject(&leases[i])
		if err != nil {
			return dropped, err
		}
		snap := *record
		name := o.lease.Annotations[nameKey]
		if leaseName(s.prefix, name) != o.lease.Name || s.takeName(&snap, name, o) != nil || !snap.idle(now) {
			continue
		}
		done, err := s.remove(ctx, o)
		if err != nil {
			return dropped, err
		}
		if done {
			dropped++
		}
	}
	return dropped, nil
}

// stepBits is how many tokens a step has, as the protocol has it.
const stepBits = 26

// idle reports whether a name needs its Lease no more.
func (s *snapshot) idle(now int64) bool {
	return len(s.lasting()) == 0 && s.count.Number < s.record.Step<<stepBits && s.count.Keep <= now
}

// cleanRound is a round in the background. What goes wrong harms no lock and is
// met again in the next round.
func (s *Store) cleanRound(ctx context.Context) { _, _ = s.Clean(ctx) }
