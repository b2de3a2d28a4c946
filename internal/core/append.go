package core

// What a machine has to say, into a slice of the caller's: a driver that is
// done with one event before the next needs one slice for all of them.

// Calls returns what to send now, and forgets it.
func (q *Quorum) Calls() []Call {
	calls := q.room.calls
	q.room.calls = nil
	return calls
}

// AppendCalls is Calls into a slice of the caller's.
func (q *Quorum) AppendCalls(calls []Call) []Call {
	calls = append(calls, q.room.calls...)
	q.room.calls = q.room.calls[:0]
	return calls
}

// AppendCalls is Calls into a slice of the caller's.
func (l *Lease) AppendCalls(calls []Call) []Call { return l.q.AppendCalls(calls) }

func (l *Lease) tell(n Notice) { l.q.room.notices = append(l.q.room.notices, n) }

// AppendNotices is Notices into a slice of the caller's.
func (l *Lease) AppendNotices(notices []Notice) []Notice {
	r := l.q.room
	notices = append(notices, r.notices...)
	r.notices = r.notices[:0]
	return notices
}

// AppendCalls is Calls into a slice of the caller's.
func (f *Refill) AppendCalls(calls []Call) []Call {
	calls = append(calls, f.out...)
	f.out = f.out[:0]
	return calls
}
