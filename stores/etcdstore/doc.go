// Package etcdstore is a [quorum.Store] on one etcd cluster, 3.5.10 or newer,
// through a clientv3 client.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"10.0.0.1:2379"}})
//	store, err := etcdstore.New("a", client)
//
// A cluster of one member and a cluster of five are one store each: what a
// cluster does to survive its members' loss it does below, and a quorum of
// several clusters survives the loss of a whole cluster.
//
// # How it works
//
// Each owner has a lease of the server's own, and its vote is a key under it:
// when the owner's process dies, the server removes the vote. The decision is
// taken here, by the model that all stores are compared with, and written in
// one transaction that compares all that it rests on. A conflict is decided
// again, within the call's limit, and is no denial.
//
//   - Acquire: two round trips, one when it is refused
//   - Extend: one, the renewal of the lease beside a transaction; two where it
//     raises the token of a vote that another process took
//   - Release: one
//
// # Time
//
// TTLs are rounded up to whole seconds, and a server with default settings
// gives no less than two. The server removes a vote up to a second after its
// end. When the cluster elects another leader, every lease begins again in
// full: never early, and late by at most the TTL. Steps of tokens follow the
// clocks of the clients.
//
// # What it keeps
//
// All keys begin with the prefix and a slash:
//
//	quorum/record             what the store says of itself
//	quorum/name/NAME/vote     who holds NAME; deleting it by hand frees the name
//	quorum/name/NAME/read/ID  a reader
//	quorum/name/NAME/count    the name's last token; deleting it can repeat a token
//	quorum/name/NAME/queue    who waits for NAME, while somebody does
//
// and for a while a tombstone or the word of a take-over; / and % in a name are
// written %2F and %25. A counter that nobody needs is dropped ten to twenty
// minutes after its last use, by whoever uses the store then.
//
// # Backups
//
// etcd persists what it acknowledges, so a restart forgets nothing. A cluster
// that was emptied, or restored from a backup, has forgotten: a record that is
// missing shows, and a revision that falls, to every process that saw it
// higher. The store then stays in quarantine for MaxTTL, see
// [quorum.HighWater]. A process that starts after the restore sees nothing, nor
// does one if the revision was bumped: say so, by Raise with Forgotten.
package etcdstore
