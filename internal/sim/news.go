package sim

import (
	"fmt"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
)

// noticed counts what a lease tells, and checks it.
func (w *World) noticed(l *Lease, n core.Notice) {
	r := w.report
	e := Event{Client: l.c.id, Store: -1, Lease: l.serial, Key: l.key, Mode: l.mode}
	switch n.Kind {
	case core.NoticeAcquired:
		r.Acquired++
		r.Taken.Count(w.now - l.began)
		w.checkWait(l)
		l.token = l.m.Quorum().Token()
		e.What, e.Token, e.Until = Acquires, l.token, l.until
		l.tenure = tenure{token: l.token, began: l.began, acquired: l.acquired}
		w.checkToken(l)
	case core.NoticeAttempt:
		e.What, e.Failure = Retries, n.Failure
		if n.Failure == core.ByHeld {
			r.Contended++
		}
	case core.NoticeFailed:
		e.What, e.Failure = Fails, n.Failure
		w.checkWait(l)
		r.Failed[n.Failure]++
	case core.NoticeRenewed:
		r.Renewed++
		e.What, e.Token, e.Until = Renews, l.token, l.until
	case core.NoticeRenewFailed:
		r.Missed++
		e.What = Misses
	case core.NoticeChanged:
		if n.OK {
			return // told when the client's belief changed
		}
		r.Stayed++
		e.What, e.Failure = Stays, n.Failure
	case core.NoticeLost:
		r.Lost[n.Reason]++
		e.What, e.Reason, e.Token = Loses, n.Reason, l.token
		r.Held.Count(w.now - l.acquired)
	case core.NoticeReleased:
		r.Released++
		e.What = IsFree
		if l.m.Stage() == core.Returned {
			r.Held.Count(w.now - l.acquired)
		}
	default:
		return
	}
	w.emit(e)
}

// unsettled says who has not come to rest.
func (w *World) unsettled() string {
	var parts []string
	for _, c := range w.clients {
		for _, l := range c.leases {
			parts = append(parts, fmt.Sprintf("lease %d of client %d is %s", l.serial, c.id, stageNames[l.m.Stage()]))
		}
		for s, r := range c.refills {
			if r != nil {
				parts = append(parts, fmt.Sprintf("client %d has not brought store %s back", c.id, StoreName(s)))
			}
		}
	}
	if len(parts) > 6 {
		parts = append(parts[:6], fmt.Sprintf("and %d more", len(parts)-6))
	}
	return strings.Join(parts, "; ")
}

var stageNames = [...]string{"waiting", "trying", "holding", "ending", "over", "lost", "given back"}
