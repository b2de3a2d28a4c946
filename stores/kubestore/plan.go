package kubestore

import (
	"bytes"
	"crypto/rand"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// plan is what a decision changes.
type plan struct {
	before *snapshot
	record *recordValue // to be written first
	after  *snapshot    // the name's part of it is to be written
}

// decide has f decide on a snapshot, and works out what there is to write.
func (c *call) decide(snap *snapshot, key string, f decide) (*plan, error) {
	rec := snap.recordOf()
	now, err := c.now(snap, &rec)
	if err != nil {
		return nil, err
	}
	beat := rand.Text()
	if snap.set == nil || snap.fell {
		rec.Run = beat // of the quarantine that begins
	}
	standing, end := rec.Standing, rec.End
	p := &plan{before: snap}
	if key == "" {
		f(&rec, nil, now)
	} else {
		name := snap.nameOf(c.r.Owner.Hex(), now)
		before := bytesOf(&name)
		f(&rec, &name, now)
		if !name.Known {
			name.Known, name.Writer, name.Counter = snap.counted, snap.count.Writer, snap.count.Number
		}
		if !bytes.Equal(before, bytesOf(&name)) {
			p.after = snap.changed(&name, c.r.Owner.Hex(), now)
		}
	}
	begun := rec.Standing == model.Quarantined && (standing != model.Quarantined || end != rec.End)
	p.record = c.planRecord(snap, &rec, begun, beat, now)
	return p, nil
}

func bytesOf(n *model.Name) []byte {
	of := *n
	of.Keep = 0                     // a hint, and no reason to write
	text, _ := of.AppendBinary(nil) // never fails
	return text
}

// planRecord is the record if it changed.
func (c *call) planRecord(snap *snapshot, rec *model.Record, begun bool, beat string, now model.Time) *recordValue {
	v := recordValue{
		Version: version, Member: rec.Member, Step: rec.Step, Base: rec.Base, Lost: rec.Lost, Life: snap.record.Life,
	}
	if snap.set != nil {
		v.Lease = string(snap.set.lease.UID)
	}
	for _, set := range rec.Serves[:rec.Serving] {
		v.Sets = append(v.Sets, quorum.Fingerprint(set).String())
	}
	switch {
	case begun:
		v.Quarantine, v.End, v.TTL = beat, int64(rec.End), int64(rec.End-now)
		v.Life = max(v.Life, c.history.latest().life) + 1
	case rec.Standing == model.Quarantined:
		v.Quarantine, v.End, v.TTL = snap.record.Quarantine, snap.record.End, snap.record.TTL
	case rec.Standing != model.Voting:
		return nil // a release or another set's request, which leaves the record as it is
	}
	if snap.set != nil && encode(v) == encode(snap.record) {
		return nil
	}
	return &v
}

// changed is the name as the model left it. What lasts longer than before
// begins anew, with another beat, and is never shortened.
func (s *snapshot) changed(name *model.Name, owner string, now model.Time) *snapshot {
	after := *s
	after.count = countValue{Number: name.Counter, Writer: name.Writer, Keep: int64(name.Keep), Last: uint8(name.Last)}
	after.counted = name.Known
	after.votes, after.marks = nil, marksValue{}
	until := func(before lasting, known, end model.Time) lasting {
		if before.Beat != "" && end <= known {
			return before
		}
		return lasting{rand.Text(), max(int64(end-now), micros(s.left[before.Beat]))}
	}
	for i := range name.Votes {
		v := &name.Votes[i]
		value := voteValue{
			Owner: hexID(v.Owner.ID), Attempt: v.Owner.Attempt, Shared: v.Mode == shared, Token: v.Token,
			Since: int64(v.Since), Label: v.Label,
		}
		var before lasting
		if had := s.vote(value.Owner); had != nil {
			before = had.lasting
		}
		known := now.Add(s.left[before.Beat])
		if value.Owner == owner {
			known = now + 1
		}
		value.lasting = until(before, known, v.Until)
		after.votes = append(after.votes, value)
	}
	mark := func(had []markValue, m markValue, end model.Time) markValue {
		for _, h := range had {
			if h.Owner == m.Owner {
				m.lasting = h.lasting
			}
		}
		m.lasting = until(m.lasting, now.Add(s.left[m.Beat]), end)
		return m
	}
	for _, t := range name.Tombs {
		m := markValue{Owner: hexID(t.ID), Attempt: t.Attempt}
		after.marks.Tombs = append(after.marks.Tombs, mark(s.marks.Tombs, m, t.Until))
	}
	for _, f := range name.Forced {
		m := markValue{Owner: hexID(f.ID), Label: f.Label}
		after.marks.Forced = append(after.marks.Forced, mark(s.marks.Forced, m, f.Until))
	}
	return &after
}
