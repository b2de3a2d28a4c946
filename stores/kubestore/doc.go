// Package kubestore is a [quorum.Store] on the Leases of one namespace of a
// Kubernetes cluster, coordination.k8s.io/v1, through client-go.
//
//	clientset, err := kubernetes.NewForConfig(config)
//	...
//	store, err := kubestore.New("a", clientset.CoordinationV1().RESTClient(), "locks")
//
// # Times
//
// No server ends a vote here, and nobody's clock but a client's own may: a vote
// is over for a client that has seen it unchanged for its whole TTL, on a clock
// that counts the machine's sleep. So the name of a holder that died is free
// after its TTL for a client that watched it all the time, and after up to twice
// that for one that came later, never early. Limits.Observe says so, and the
// refusal says how much is left.
//
// The same goes for a quarantine: whoever ends it has seen it for MaxTTL. A set
// that is only used by processes that live shorter than that has to be declared
// new, by quorum init.
//
// # How a verb works
//
// The API server runs no code of ours, so the decision is taken here, by the
// table that is the model of all stores: read the record and the name, decide,
// write the name's Lease if its resource version is the same, and read the
// record again. If that changed, the decision is taken once more. A conflict is
// no denial; it is read and decided again within the call's limit. Every write
// compares the resource version, so a request that is late or doubled fails.
//
// Acquire takes three round trips, and one when it is refused; Extend two;
// Release one. The first Acquire of a name takes two more.
//
// # What it keeps
//
// Leases of the namespace, where PREFIX is "quorum" by default:
//
//	PREFIX.set     what the store says of itself
//	PREFIX.DIGEST  a name, by a digest; the annotation quorumlock.github.io/name says which
//	quorum-server  by whose UID one cluster is known under two names
//
// What counts stands in annotations as JSON: .../count is the name's last token,
// and .../votes its holders. The spec shows people who holds a name; nothing is
// decided by it. A Lease that no name needs is deleted by the store, see
// [Store.Clean]. To free a name by hand, remove its annotation .../votes; to
// delete the Lease can repeat a token.
//
// # Permissions
//
// A service account needs get, list, watch, create, update and delete on leases
// of coordination.k8s.io in the one namespace.
//
// # Restarts
//
// An API server keeps nothing, and its etcd persists before it answers, so a
// restart forgets nothing. A store whose record is missing, or whose resource
// versions fell, as after a backup was restored, does not vote for MaxTTL, see
// [quorum.HighWater]. Only a client that was running before notices a restored
// backup of etcd, and a restore that bumps the revision, as etcd advises for
// Kubernetes, may hide it from that one too.
//
// A backup of objects, of Velero or by kubectl, is put back under fresh resource
// versions. The record keeps the UID of its own Lease, so one that was deleted
// and put back is noticed by every client. One that was written over in place is
// not, nor a name's Lease that was put back while the record stayed.
//
// What no client notices an operator tells the store, by quorum init --forgotten.
package kubestore
