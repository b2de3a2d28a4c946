// Package sim is a world in which the production protocol runs: clients drive
// core.Lease and core.Refill as the real driver does, nodes are model.Store,
// and a heap of events carries messages, timers and faults. Nothing stands in
// the protocol's place, no goroutine runs, no real clock is read, and whatever
// could be so or otherwise is asked of one [Choices]: a seed repeats exactly.
//
// A run has two phases. In the first the faults of a [Plan] happen, and the
// checkers look for what must never be. Then every fault stops, and whoever
// waits must get in, every store must vote and nothing may stay behind, all
// within a bound.
//
//	[Run]       one run: a Config and Choices give a Report
//	[World]     the same with a job of one's own in place of the workload
//	[Trace]     what happened, rich enough to draw it
//	[Shrink]    the smallest list of faults that still breaks a run
package sim
