package core

// Bugs switches known mistakes on. It is zero in production; a test sets one
// to show that its checker would see the mistake, because a checker that
// nothing fails is no evidence.
type Bugs uint32

// The mistakes, each the leaving out of one rule.
const (
	BugNoWriteBack       Bugs = 1 << iota // hold at the plain maximum, unconfirmed
	BugWriteBackUnowned                   // a refused write-back counts as confirmed
	BugAnswerNotCompared                  // an Extend that answers another number still counts
	BugOneOwner                           // all attempts share one owner
	BugUnknownIsNo                        // a store that did not answer is not released
	BugCallersContext                     // cancelling stops the roll-back too
	BugValidityFromReply                  // validity counts from the answer
	BugNoDrift                            // clocks are taken to run alike
	BugEarlyStepRead                      // steps are read before the quarantine's time is over
	BugVoidCounts                         // an answer to an attempt that was rolled back counts
	BugLateGrantKept                      // a late grant above the token is left in place
	BugReviveLost                         // a late extension revives a lost lease
	BugUndoByRelease                      // a promotion that failed gives back what it asked for
	BugDemoteLate                         // a writer believes that it is alone until its demotion is confirmed
	BugChangeNoWait                       // a changing set does not wait for the leases of the old one
	BugChangeNoRaise                      // the new stores of a changing set are not raised
	BugNoYield                            // who waits in line keeps the votes that it has
	BugOwnTickets                         // every store gives a ticket of its own
	BugDenialUndoesWake                   // a turn that came during a call is undone by the call's denial
	BugYieldsInPlace                      // who waits in line does so in the attempt that failed
)

func (b Bugs) has(bug Bugs) bool { return b&bug != 0 }
