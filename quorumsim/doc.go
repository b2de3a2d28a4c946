// Package quorumsim runs a job of your own in a simulated world, to find out
// what it does when a lock goes wrong: the lease is lost in the middle of the
// work, a process pauses beyond its TTL, stores restart, forget, are cut off,
// their clocks jump. The protocol in it is the one that package quorum runs in
// production; the stores, the network, the clocks and the processes around it
// are simulated, and a minute of them takes some milliseconds.
//
// A job is a function over a [Job], which stands for one process, or a script
// of events ([Config.Script]). [Run] starts it once for each client, lets happen
// what [Config.Faults] says or what the seed draws ([Config.Swarm]), and
// returns a [Report]: counts, the [History], and what must not have been.
// [Overlap] judges a history by itself, also one that you recorded elsewhere.
//
// # Same seed, same bytes
//
// One job runs at a time, and the next one runs when it waits: in Acquire,
// Sleep, Write, Extend, Release. Between two of these no time passes. All that
// could be so or otherwise is drawn from the seed, so the same configuration
// and seed give the same history, byte for byte, on every machine. A job must
// not break that:
//
//   - no goroutines, channels, mutexes or contexts that others end: nobody else
//     runs while it waits for them;
//   - no real time (time.Now, time.Sleep, timers): use [Job.Now], [Job.Sleep];
//   - no real input or output: no files, sockets, servers; model what the job
//     changes as a resource ([Job.Write]) or as a variable;
//   - no randomness but [Job.Intn]: no math/rand, no crypto/rand;
//   - no order of a map: sort what you range over;
//   - no variables that outlive a run: what jobs share belongs into the function
//     that calls Run, made anew for each run. Jobs may share such variables
//     without locks, and a killed process leaves them as they are.
//
// A job that loops must wait in the loop, or the run never ends. A job may call
// t.Fatal: it ends the test.
//
// # Scripts
//
// A script has one event a line, and comments after #:
//
//	# when client what
//	  0s   0      acquire report wait=5s
//	  1s   0      write   report archive
//	  30s  0      release report
//
// An event happens at its time since the start of the run, or when the event of
// the same client before it is done. The verbs:
//
//	acquire KEY [wait=D] [ttl=D] [maxhold=D] [try] [shared] [norenew] [failonoutage]
//	extend  KEY TTL
//	write   KEY RESOURCE [anyway]   under the lease's token; anyway: also if it is lost
//	release KEY
//	log     TEXT
//
// What fails is logged, and the script goes on. What a killed process missed is
// not made up for.
//
// # What a run shows, and what not
//
// A run without a violation shows that this seed has none. The faults are those
// of [Fault]; disks, operating systems and the clients of real servers are not
// simulated, nor are sets of sets of stores, queues in stores, promotion and
// demotion.
package quorumsim
