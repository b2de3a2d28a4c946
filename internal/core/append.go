package core

// What a machine has to say, into a slice of the caller's: a driver that is
// done with one event before the next needs one slice for all of them.

// Calls returns what to send now, and forgets it.
func (q *Quorum) Calls() []Call {
	calls := q.out
	q.out = nil
	return calls
}

// AppendCalls is Calls into a slice of the caller's.
func (q *Quorum) AppendCalls(calls []Call) []Call {
	calls = append(calls, q.out...)
	q.out = q.out[:0]
	return calls
}

// Lend gives q the slice that what it says next goes to, until Calls returns it:
// a Quorum that has nothing to say keeps none.
func (q *Quorum) Lend(calls []Call) {
	if len(q.out) == 0 {
		q.out = calls[:0]
	}
}

// Lend does so for the Quorum beneath.
func (l *Lease) Lend(calls []Call) { l.q.Lend(calls) }

// AppendCalls is Calls into a slice of the caller's.
func (l *Lease) AppendCalls(calls []Call) []Call { return l.q.AppendCalls(calls) }

func (l *Lease) tell(n Notice) { l.notices = append(l.notices, n) }

// AppendNotices is Notices into a slice of the caller's.
func (l *Lease) AppendNotices(notices []Notice) []Notice {
	notices = append(notices, l.notices...)
	l.notices = l.notices[:0]
	return notices
}

// AppendCalls is Calls into a slice of the caller's.
func (f *Refill) AppendCalls(calls []Call) []Call {
	calls = append(calls, f.out...)
	f.out = f.out[:0]
	return calls
}
