package sim

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// tenure is one time as a writer, which is what a fence compares.
type tenure struct {
	token    int64
	began    time.Duration // when it was asked for
	acquired time.Duration
}

// Promote asks to make a reader's lease a writer's; heard gets a NoticeChanged.
func (l *Lease) Promote(serial uint32) {
	if !l.dead && !l.over {
		k := l.c.w.keys[l.key]
		l.asked, l.aboveAny = l.c.w.now, k.any
		l.m.Promote(l.c.Now(), serial)
		l.settle()
	}
}

// Demote asks to make a writer's lease a reader's; heard gets a NoticeChanged.
func (l *Lease) Demote(serial uint32) {
	if !l.dead && !l.over {
		l.m.Demote(l.c.Now(), serial)
		l.settle()
	}
}

// Mode returns with whom the lease is shared at present.
func (l *Lease) Mode() core.Mode { return l.mode }

// modes looks whether the client believes to be a writer where it believed to
// be a reader, or the other way round.
func (l *Lease) modes() {
	mode := l.m.Mode()
	if l.m.Stage() != core.Holding || l.stage != core.Holding || mode == l.mode {
		return
	}
	w := l.c.w
	l.mode = mode
	e := Event{What: Demotes, Client: l.c.id, Store: -1, Lease: l.serial, Key: l.key, Mode: mode, Token: l.token, Until: l.until}
	if mode == core.Shared {
		w.report.Demoted++
		w.emit(e)
		return
	}
	// To the world a promotion is an acquisition that began when it was asked for.
	w.report.Promoted++
	l.token, l.above = l.m.Quorum().Token(), 0
	l.until = l.c.clock.due(l.m.Until())
	w.checkToken(l)
	l.tenure = tenure{token: l.token, began: l.asked, acquired: w.now}
	w.checkAlone(w.keys[l.key], l)
	e.What, e.Token, e.Until = Promotes, l.token, l.until
	w.emit(e)
}
