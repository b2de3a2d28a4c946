package kubestore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorum/internal/model"
)

// snapshot is the record and a name as they were read, and how long what they
// hold lasts by what this client has seen.
type snapshot struct {
	set    *object // nil where the record is missing
	record recordValue
	waits  time.Duration // until the quarantine's time is over
	fell   bool          // the server was seen to have gone back

	lease   *object // of the name, nil where there is none
	count   countValue
	counted bool        // it has one
	votes   []voteValue // that are not over
	marks   marksValue  // that are not over
	left    map[string]time.Duration
	kept    bool // it is what this client left, and not what was read now
}

// Numbers of the model's constants, as they are stored.
const (
	shared   = 1 // core.Shared
	released = 1 // core.PreviousReleased
	expired  = 2 // core.PreviousExpired
)

// read takes a snapshot. The record is read beside the name, but for a name
// that has no counter: the record's step, from which it starts, is read after
// the Lease was, so that no counter that an earlier Lease had is above it.
func (s *Store) read(ctx context.Context, key string) (*snapshot, error) {
	snap := &snapshot{}
	if key == "" {
		return snap, s.readRecord(ctx, snap)
	}
	name := leaseName(s.prefix, key)
	before := s.seen.furthest(name)
	read := make(chan error, 1)
	go func() { read <- s.readRecord(ctx, snap) }()
	lease, err := s.get(ctx, name)
	if failed := <-read; err == nil {
		err = failed
	}
	if err != nil || lease == nil {
		return snap, err
	}
	if _, counted := lease.lease.Annotations[countKey]; !counted {
		if err := s.readRecord(ctx, snap); err != nil {
			return nil, err
		}
	}
	snap.fell = snap.fell || snap.at(lease).below(before)
	return snap, s.takeName(snap, key, lease)
}

// at is the position that a Lease of the snapshot shows.
func (s *snapshot) at(o *object) position { return position{s.record.Life, o.index} }

func (s *Store) readRecord(ctx context.Context, snap *snapshot) error {
	name := setName(s.prefix)
	before := s.seen.furthest(name)
	o, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	return s.takeRecord(snap, o, before)
}

func (s *Store) takeRecord(snap *snapshot, o *object, before position) error {
	snap.set, snap.record = o, recordValue{}
	if o == nil {
		return nil
	}
	if err := o.value(recordKey, &snap.record); err != nil {
		return err
	}
	if v := snap.record.Version; v != version {
		return fmt.Errorf("the record in Lease %s has version %d, which this package does not know; use another prefix", o.lease.Name, v)
	}
	at := snap.at(o)
	copied := snap.record.Lease != "" && snap.record.Lease != string(o.lease.UID)
	snap.fell = snap.fell || copied || at.below(before)
	s.history.raise(at)
	left := s.seen.seen(o.lease.Name, at, snap.record.lasting(), s.clock.Now())
	snap.waits = max(left[0], 0)
	return nil
}

// lasting is the quarantine, if there is one.
func (r *recordValue) lasting() []lasting { return []lasting{{r.Quarantine, r.TTL}} }

// takeName reads a name's Lease, and leaves out what is over.
func (s *Store) takeName(snap *snapshot, key string, o *object) error {
	if name := o.lease.Annotations[nameKey]; name != key {
		return fmt.Errorf("the Lease %s is of another name, %q: two names have one digest, or the annotation %s was changed by hand",
			o.lease.Name, name, nameKey)
	}
	snap.lease = o
	_, snap.counted = o.lease.Annotations[countKey]
	for key, v := range map[string]any{countKey: &snap.count, votesKey: &snap.votes, marksKey: &snap.marks} {
		if err := o.value(key, v); err != nil {
			return err
		}
	}
	s.history.raise(snap.at(o))
	s.measure(snap)
	return nil
}

// measure finds out what is left of what the name holds, and leaves out what is
// over.
func (s *Store) measure(snap *snapshot) {
	all := snap.lasting()
	snap.left = make(map[string]time.Duration, len(all))
	for i, left := range s.seen.seen(snap.lease.lease.Name, snap.at(snap.lease), all, s.clock.Now()) {
		if left > 0 {
			snap.left[all[i].Beat] = left
		}
	}
	live := len(snap.votes)
	snap.votes = lively(snap.votes, snap.left)
	if len(snap.votes) < live {
		snap.count.Last = expired
	}
	snap.marks = marksValue{Tombs: lively(snap.marks.Tombs, snap.left), Forced: lively(snap.marks.Forced, snap.left)}
}

func (l lasting) beat() string { return l.Beat }

// lively are those that are not over, in a list of their own.
func lively[T interface{ beat() string }](all []T, left map[string]time.Duration) (live []T) {
	for _, v := range all {
		if left[v.beat()] > 0 {
			live = append(live, v)
		}
	}
	return live
}

// lasting is all of the name that ends.
func (s *snapshot) lasting() []lasting {
	var all []lasting
	for _, v := range s.votes {
		all = append(all, v.lasting)
	}
	for _, m := range slices.Concat(s.marks.Tombs, s.marks.Forced) {
		all = append(all, m.lasting)
	}
	return all
}

func (s *snapshot) vote(owner string) *voteValue {
	for i := range s.votes {
		if s.votes[i].Owner == owner {
			return &s.votes[i]
		}
	}
	return nil
}

// nameOf is the name as the model has it at now. Of the vote of the owner that
// asks the least counts: another client may know it for longer than this one,
// and take it over sooner, so no more is promised than what is written anew.
func (s *snapshot) nameOf(owner string, now model.Time) model.Name {
	n := model.Name{Known: s.counted, Writer: s.count.Writer, Counter: s.count.Number, Keep: model.Time(s.count.Keep)}
	switch s.count.Last {
	case released:
		n.Last = released
	case expired:
		n.Last = expired
	}
	for _, v := range s.votes {
		vote := model.Vote{Token: v.Token, Since: model.Time(v.Since), Label: v.Label, Until: now.Add(s.left[v.Beat])}
		vote.Owner.ID, vote.Owner.Attempt = [16]byte(ownerID(v.Owner)), v.Attempt
		if v.Shared {
			vote.Mode = shared
		}
		if v.Owner == owner {
			vote.Until = now + 1
		}
		n.Votes = append(n.Votes, vote)
	}
	for _, t := range s.marks.Tombs {
		n.Tombs = append(n.Tombs, model.Tomb{ID: [16]byte(ownerID(t.Owner)), Attempt: t.Attempt, Until: now.Add(s.left[t.Beat])})
	}
	for _, f := range s.marks.Forced {
		n.Forced = append(n.Forced, model.Forced{ID: [16]byte(ownerID(f.Owner)), Label: f.Label, Until: now.Add(s.left[f.Beat])})
	}
	return n
}

// recordOf is the record as the model has it. A record that is missing, or
// that is older than one seen before, begins a quarantine.
func (s *snapshot) recordOf() model.Record {
	if s.set == nil {
		return model.Record{}
	}
	r := s.record
	rec := model.Record{Standing: model.Voting, Lost: r.Lost, Member: r.Member, Step: r.Step, Base: r.Base}
	if r.Quarantine != "" {
		rec.Standing, rec.Run, rec.End = model.Quarantined, r.Quarantine, model.Time(r.End)
	}
	if s.fell {
		rec.Standing = model.Doubtful
	}
	for i, set := range r.Sets[:min(len(r.Sets), len(rec.Serves))] {
		rec.Serves[i], _ = strconv.ParseUint(set, 16, 64)
		rec.Serving++
	}
	return rec
}
