package etcdstore

import (
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// move is what a request makes of what was seen, before it is carried out.
type move struct {
	req    core.Request
	seen   *sight
	answer core.Answer

	record     *model.Record // to be written, or nil
	quarantine bool          // it begins one, which needs a lease

	name  model.Name // afterwards
	tally string     // to be written, or empty
	vote  *model.Vote
	leaf  string // where the vote is kept
	write bool   // the vote has to be written, not only renewed
	lease clientv3.LeaseID
	// proof is the lease that the owner's vote was under: it is renewed, also
	// where the vote moves to a longer one, since only that shows that the vote
	// was not over.
	proof clientv3.LeaseID
	// seconds is what the vote's lease is granted for. Without a lease it asks
	// for one.
	seconds int64
	drops   []string // leaves to delete
	marks   []mark   // tombstones and the word of a take-over, under one lease

	waiters waitlist.List // as seen
	queue   string        // afterwards
	moves   bool          // it has to be written
}

type mark struct{ leaf, text string }

// decide runs the model on a sight. forgot says that the server was seen to
// have gone back, ages for how long each line of the queue has been as it is.
func decide(seen *sight, req core.Request, now model.Time, forgot bool, ages map[string]time.Duration) *move {
	m := &move{req: req, seen: seen, name: seen.name.Clone()}
	rec := seen.record
	if forgot && rec.Standing != model.Missing {
		rec.Standing = model.Doubtful
	}
	if rec.Standing == model.Quarantined && !seen.over {
		rec.End = now.Add(max(req.MaxTTL, time.Second)) // its lease knows when; it has not ended
	}
	if o := &m.req.Raise; req.Verb == core.Raise {
		o.Quarantine = quarantineOf(&rec, seen.quarantine, o.Quarantine)
	}
	m.stand(now)
	m.line(now, ages)
	m.answer = apply(&rec, &m.name, m.req, now)
	rec.End = 0
	if m.answer.Outcome == core.Undelivered || rec.Standing == model.Missing {
		return m
	}
	if rec.Standing == model.Doubtful { // a stranger's request: the next of its set begins the quarantine
		rec.Standing = seen.record.Standing
	}
	m.quarantine = rec.Standing == model.Quarantined &&
		(seen.record.Standing != model.Quarantined || forgot || m.answer.Outcome == core.Granted && m.req.Raise.Forgotten)
	if rec != seen.record || m.quarantine {
		m.record = &rec
	}
	if req.Key != "" {
		m.compare()
		m.queue = m.lineAfter(&rec)
		m.moves = m.queue != seen.kept[queueLeaf].text
	}
	return m
}

// quarantineOf turns the name that a quarantine has outside, its lease, into
// the model's, and any other name into one that the model refuses.
func quarantineOf(rec *model.Record, lease int64, name string) string {
	switch {
	case name == "":
		return ""
	case rec.Standing == model.Quarantined && name == quarantineName(lease):
		return rec.Quarantine()
	}
	return "another"
}

// stand gives everything that is there an end that lies ahead: the server
// removes it when its lease ends. A counter rests until the sweep takes it.
func (m *move) stand(now model.Time) {
	n := &m.name
	for i := range n.Votes {
		_, leaf := m.seen.vote(n.Votes[i].Owner.ID)
		n.Votes[i].Until = now.Add(time.Duration(m.seen.kept[leaf].seconds) * time.Second)
	}
	for i := range n.Tombs {
		n.Tombs[i].Until = now.Add(time.Hour)
	}
	for i := range n.Forced {
		n.Forced[i].Until = now.Add(time.Hour)
	}
	n.Keep = math.MaxInt64 - model.Time(24*time.Hour)
}

// compare finds what the model changed of the name.
func (m *move) compare() {
	n, id := &m.name, m.req.Owner.ID
	if m.vote = find(n.Votes, id); m.renews() {
		m.leaf = voteLeafOf(id, m.vote.Mode)
		_, leaf := m.seen.vote(id)
		old := m.seen.kept[leaf]
		m.proof = old.lease
		if m.lease, m.seconds = old.lease, old.seconds; m.lease == 0 || m.seconds < seconds(m.req.TTL) {
			m.lease, m.seconds = 0, seconds(m.req.TTL)
		}
		m.write = m.lease == 0 || leaf != m.leaf || voteText(*m.vote, m.seconds) != old.text
	}
	for _, before := range m.seen.name.Votes {
		leaf := voteLeafOf(before.Owner.ID, before.Mode)
		after := find(n.Votes, before.Owner.ID)
		if (after == nil || after.Mode != before.Mode) && !(m.write && leaf == m.leaf) {
			m.drops = append(m.drops, leaf)
		}
	}
	t := tally{n.Counter, n.Writer, n.Last, len(n.Votes) > 0}
	if text := t.text(); n.Known && text != m.seen.kept[countLeaf].text && (m.renews() || len(m.drops) > 0) {
		m.tally = text
	}
	for _, t := range n.Tombs {
		if t.ID == id && m.req.Entomb {
			m.marks = append(m.marks, mark{tombLeafOf(t.ID), tombText(t)})
		}
	}
	for _, f := range n.Forced {
		text := forcedText(f)
		if leaf := forcedLeafOf(f.ID); m.seen.kept[leaf].text != text {
			m.marks = append(m.marks, mark{leaf, text})
		}
	}
}

func find(votes []model.Vote, id core.ID) *model.Vote {
	for i := range votes {
		if votes[i].Owner.ID == id {
			return &votes[i]
		}
	}
	return nil
}

// renews reports whether the owner's vote is given or kept.
func (m *move) renews() bool {
	return m.vote != nil && m.answer.Outcome == core.Granted && (m.req.Verb == core.Acquire || m.req.Verb == core.Extend)
}

// idle reports whether there is nothing to do but to answer.
func (m *move) idle() bool {
	return m.record == nil && m.tally == "" && len(m.drops) == 0 && len(m.marks) == 0 && !m.moves && !m.renews()
}

// seconds is the whole number of seconds that a lease must have to last for d.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
