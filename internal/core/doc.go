// Package core is the protocol: small pure machines that take an event and a
// time and give back calls to make and a verdict. They know no goroutine,
// context, clock or socket, so the same code runs in production, under the
// simulator and in a test that tries every order of events.
//
//   - [Quorum] is the protocol in space: one owner ID put to N stores, attempt
//     after attempt, then extended, repaired and released.
//   - [Lease] is the protocol in time: one lock over its life. It owns a Quorum
//     and decides when an attempt, a renewal or the end is due.
//   - [Refill] carries one store out of quarantine.
//   - [SetChange] moves stores from one set to another while locks are held.
//
// A machine is driven by one caller at a time. Each event method takes now,
// which never goes back; Calls then drains what to send, and Next says when
// Wake is due. Machines can be cloned and encoded, so that a test can fork them.
//
// Invariants, cited by number in code and tests:
//
//	I1  At most one call to a store is in flight for one Quorum.
//	I2  A release to a store leaves after every earlier call to it has ended.
//	I3  Held only with a confirmed quorum: votes whose token is the lease's.
//	I4  An answer counts only for the attempt and round that asked.
//	I5  Once lost, a lease is never held again, and sends nothing by itself.
//	I6  Whatever may remember us is released, until the release limit.
//	I7  Remaining never exceeds TTL - time since the request left - drift.
package core
