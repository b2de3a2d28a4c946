package core

import "slices"

// Room is what a machine needs during an event, and of a store while something
// is under way there. A driver of many leases lends it for each event, so that
// one at rest, as a held lease is most of the time, is small. A machine that
// nobody lends to has a room of its own.
type Room struct {
	calls   []Call
	notices []Notice
	trips   []*trip // nobody's at present, and zero
}

// roomTrips is how many trips a room keeps for the next events. Where answers
// come in bursts, many leases begin one after another, and then many end.
const roomTrips = 128

// Lend gives l the room for an event, until [Lease.Vacate]. It reports whether l
// was at rest: it then knows nothing of the stores' pace.
func (l *Lease) Lend(r *Room) (rested bool) { return l.q.lend(r) }

// Vacate ends the loan and returns what to send now: it is in the room, until
// that is lent again.
func (l *Lease) Vacate() []Call { return l.q.vacate() }

func (q *Quorum) lend(r *Room) (rested bool) {
	q.room = r
	if q.slots[0].trip != nil {
		return false
	}
	for i := range q.slots {
		if last := len(r.trips) - 1; last >= 0 {
			q.slots[i].trip, r.trips = r.trips[last], r.trips[:last]
		} else {
			q.slots[i].trip = &trip{}
		}
	}
	return true
}

func (q *Quorum) vacate() []Call {
	r := q.room
	if q.which((*slot).underWay) == 0 {
		for i := range q.slots {
			t := q.slots[i].trip
			if *t = (trip{}); len(r.trips) < roomTrips {
				r.trips = append(r.trips, t)
			}
			q.slots[i].trip = nil
		}
	}
	q.room = nil
	calls := r.calls
	r.calls, r.notices = calls[:0], r.notices[:0]
	return calls
}

// underWay reports whether the slot needs its trip.
func (s *slot) underWay() bool {
	return s.busy || s.owe || s.vote == pending || s.want != wantNothing
}

// notes is how many notices wait in the room.
func (r *Room) notes() int {
	if r == nil {
		return 0
	}
	return len(r.notices)
}

func (r *Room) clone() *Room {
	if r == nil {
		return nil
	}
	return &Room{calls: slices.Clone(r.calls), notices: slices.Clone(r.notices)}
}
