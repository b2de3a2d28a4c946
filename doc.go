// Package quorum holds a named lock in N independent stores at once: no single
// store's failure, restart or partition frees the lock or blocks it. Every lock
// carries a fencing token that only grows.
//
// # Use
//
// Make stores, put them together under a [Strategy], make a [Locker], and take
// locks with it:
//
//	stores, err := quorum.Combine(quorum.Consensus(), a, b, c)
//	locks, err := quorum.New(stores, quorum.TTL(15*time.Second))
//	defer locks.Close(context.Background())
//
//	lease, err := locks.Acquire(ctx, "report:2026-11")
//	switch {
//	case errors.Is(err, quorum.ErrHeld): // somebody else is at it
//	case err != nil:                     // outage, bad key, cancelled; never "maybe held"
//	}
//	defer func() { err = errors.Join(err, lease.Release(ctx)) }()
//	write(lease.Context(), lease.Token())
//
// [Locker.Do] does the last four steps at once. A lone store is a set of one,
// so that the same code serves one Redis, a directory of files or memory.
//
// # Guarantees and limits
//
// Tokens are ordered: a lock taken after another of its name was taken has a
// larger one, whatever clocks, pauses and networks do, as long as stores do not
// forget; one that may have forgotten is kept out until that is harmless again.
//
// At most one holder at a time believes that it holds an exclusive lock, as
// long as the clocks of holder and stores run at rates that differ by no more
// than the [Drift] setting, and the holder looks at [Lease.Err] or
// [Lease.Context] before it acts. A process may be paused between that look and
// its next write: no lock can prevent that, the resource can, see below.
//
// Where every store keeps a queue ([Limits]), processes are served in the order
// in which they asked, unless a message is lost. Every Acquire is its own holder, also within
// one process: there is no re-entrance.
//
// # Fencing
//
// Give [Lease.Token] along with every write, and have the resource refuse a
// token below the highest that it has seen. It keeps its value after a loss, so
// that a holder that does not know yet is refused.
//
// # Clocks
//
// Validity is counted from when a request left, by a clock that goes on while
// the machine sleeps ([clock.System]), minus the drift. Stores use their own
// clocks. No wall clock of a client decides anything.
//
// # Cancellation
//
// The context given to [Locker.Acquire] bounds the wait and not the lease; its
// values, and not its end, go on in [Lease.Context], which ends when the lease
// is lost or released, with the reason as its cause. [Lease.Release] works with
// a context that has ended. Whatever a failed acquisition left in the stores is
// taken back, on a time of its own.
//
// # Stores
//
// In stores/ are memory, files, SQLite, Redis, PostgreSQL, etcd, Consul and
// Kubernetes, and one that excludes nobody; what needs another module is one of
// its own. [Open] makes them from DSNs. A [CombinedStore] is a store too, so sets
// nest. One's own is three methods ([Store]), checked by package storetest.
package quorum
