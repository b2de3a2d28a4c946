package core

import "github.com/quorumlock/quorum/clock"

// modeChange is a change of mode that was asked for.
type modeChange struct {
	serial uint32
	to     Mode
	told   bool // its end; only the undoing goes on
}

// changeStep is where the first change of the list stands.
type changeStep uint8

const (
	changeWaits     changeStep = iota // for the round under way
	changeLooks                       // a promotion: an extension that counts readers
	changePromoting                   // votes are being converted
	changeUndoing                     // and back
	changeDemoting
)

// Mode returns with whom the lease is shared at present.
func (l *Lease) Mode() Mode { return l.q.Mode() }

// undoing reports whether a promotion that failed is being undone.
func (l *Lease) undoing() bool { return l.asked != nil && l.asked.step == changeUndoing }

// Promote asks to make a reader's lease a writer's; serial comes back in the
// notice. It waits for the round under way. Where another reader is seen it
// fails with nothing changed, so two readers that want to be promoted both
// hear of it and neither waits. After a failure the reader's lease goes on.
func (l *Lease) Promote(now clock.Instant, serial uint32) { l.change(now, serial, Exclusive) }

// Demote asks to make a writer's lease a reader's; serial comes back in the
// notice. The token stays. One that cannot be confirmed ends the lease, because
// readers may be in.
func (l *Lease) Demote(now clock.Instant, serial uint32) { l.change(now, serial, Shared) }

func (l *Lease) change(now clock.Instant, serial uint32, to Mode) {
	l.expire(now)
	if l.stage == Holding {
		r := l.requests()
		r.changes = append(r.changes, modeChange{serial: serial, to: to})
	} else {
		l.tell(Notice{Kind: NoticeChanged, Serial: serial})
	}
	l.settle(now)
}

// Desist gives a promotion up whose caller does not wait any longer. One that
// has won stands, and so does a demotion.
func (l *Lease) Desist(now clock.Instant, serial uint32) {
	l.expire(now)
	r := l.requests()
	for i := range r.changes {
		c := &r.changes[i]
		if c.serial != serial || c.to != Exclusive || c.told {
			continue
		}
		c.told = true
		l.tell(Notice{Kind: NoticeChanged, Serial: serial, Failure: ByAbandoned})
		switch {
		case i > 0 || r.step <= changeLooks:
			r.changes = append(r.changes[:i:i], r.changes[i+1:]...)
			if i == 0 {
				r.step = changeWaits
			}
		case r.step == changePromoting:
			l.q.Abandon(now)
		}
		break
	}
	l.settle(now)
}

// beginChange starts the first change of the list. The caller has seen that no
// round is under way.
func (l *Lease) beginChange(now clock.Instant) {
	to := l.asked.changes[0].to
	switch {
	case to == l.Mode():
		l.endChange(true, NoFailure)
	case to == Exclusive:
		l.asked.step = changeLooks
		l.extend(now, l.q.TTL())
	default:
		l.asked.step = changeDemoting
		l.q.Demote(now, l.q.TTL())
		l.followRound(now)
	}
	l.settleHold(now)
}

// settleChange carries the change under way on.
func (l *Lease) settleChange(now clock.Instant) {
	r := l.asked
	if r == nil || l.q.Phase() == Lost {
		return
	}
	_, won := l.q.Extending()
	switch r.step {
	case changeLooks:
		switch {
		case l.inRound:
		case !won:
			l.endChange(false, ByNoQuorum)
		case l.q.Readers() > 1:
			l.endChange(false, ByHeld)
		default:
			r.step = changePromoting
			l.q.Promote(now)
			l.settleChange(now)
		}
	case changePromoting:
		switch {
		case l.q.Promoting():
		case l.q.Failure() == NoFailure:
			l.renewAt, l.warned, l.misses = l.renewal(l.q.start), false, 0
			l.endChange(true, NoFailure)
			// The others were asked of the reader's lease, which is over.
			for l.Changing() {
				l.endChange(false, ByAbandoned)
			}
		default:
			r.step = changeUndoing
			l.followRound(now)
			l.settleChange(now)
		}
	case changeUndoing:
		if won {
			l.renewAt = l.renewal(l.roundAt) // also where it had to be repeated without renewal
			l.endChange(false, l.q.Failure())
		}
	case changeDemoting:
		switch {
		case won:
			l.endChange(true, NoFailure)
		case !l.inRound:
			l.lose(LostQuorum)
		}
	}
}

// endChange tells how the first change of the list ended.
func (l *Lease) endChange(ok bool, why Failure) {
	r := l.asked
	c := r.changes[0]
	r.changes, r.step = r.changes[1:], changeWaits
	if !c.told {
		l.tell(Notice{Kind: NoticeChanged, Serial: c.serial, OK: ok, Failure: why})
	}
}

// dropChanges ends all changes with the lease.
func (l *Lease) dropChanges() {
	l.asked.step = changeWaits
	for _, c := range l.asked.changes {
		if !c.told {
			l.tell(Notice{Kind: NoticeChanged, Serial: c.serial})
		}
	}
	l.asked.changes = nil
}
