package core

import "github.com/quorumlock/quorum/clock"

// keepBack puts a release off until MinHold is over. Until then the votes stand
// by themselves, since MinHold is at most the TTL that they were given for: so
// they do as well when the process ends now.
func (l *Lease) keepBack() {
	l.keptBack = true
	l.q.Lose()
	l.tell(Notice{Kind: NoticeKept})
}

// settleKept sends the release that was kept back when its time has come.
func (l *Lease) settleKept(now clock.Instant) {
	if l.keptBack && now >= l.minAt {
		l.keptBack, l.returning = false, true
		l.q.Release(now)
	}
}
