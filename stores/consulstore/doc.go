// Package consulstore is a [quorum.Store] on one Consul cluster, 1.13 or
// newer, through the client of Consul's own api package.
//
//	client, err := api.NewClient(&api.Config{Address: "consul-a:8500"})
//	...
//	store, err := consulstore.New("a", client)
//
// # Times
//
// A vote is a key under a session of its own, and a session's TTL is the vote's.
// Consul takes TTLs of 10 s to 24 h, see [MinTTL], and promises that no session
// ends before its TTL; in fact it ends one after twice that, counted again from
// a change of the leader. So the name of a holder that died is free after 2 TTL,
// and never early. A vote is never moved by a client's clock.
//
// # How a verb works
//
// Consul runs no code of ours, so the decision is taken here, by the table that
// is the model of all stores: read what there is of the record and the name in
// one consistent transaction, decide, and write in one transaction that fails
// if the record or the name's counter has changed since. A conflict is no
// denial; it is read and decided again within the call's limit. Every
// transaction writes the counter or the queue, so a request that is late or
// doubled fails.
//
// Acquire takes two round trips, and one when it is refused; Extend one, and
// two when it raises the token; Release one, and two where others wait in line.
// A session is made, or one that no vote used is renewed, beside the read.
//
// # What it keeps
//
// Under the prefix, "quorum" by default:
//
//	quorum/:set/record              what the store says of itself
//	quorum/:set/quarantine/SESSION  while a quarantine lasts
//	quorum/:set/last                written by every transaction, to notice a restored backup
//	quorum/:name/NAME/count         the name's last token; deleting it can repeat a token
//	quorum/:name/NAME/vote/SESSION  a vote; deleting it by hand frees the name
//	quorum/:name/NAME/tomb/SESSION  a released owner whose request may still come
//	quorum/:name/NAME/forced/SESSION  whose votes were removed by force
//	quorum/:name/NAME/queue         who waits for it, in order; deleting it costs them their places
//	quorum/:bell/NAME/CLIENT        how the waiters of one client stand, to tell them
//
// and beside it the key quorum-server, by which one cluster is known under two
// names. NAME is escaped as in a URL's query, with dots escaped too. Values are
// JSON, but for the last two. What has a session ends with it; a counter that
// nobody needs, and a queue whose waiters died, are deleted by the store, see
// [Store.Clean].
//
// # Permissions
//
// A token needs key_prefix "quorum/" and key "quorum-server" with policy write,
// and session_prefix "" with policy write.
//
// # Restarts
//
// Consul persists before it answers, so a restart forgets nothing. A store
// whose record is missing, or whose transactions' index fell, as after a backup
// was restored, does not vote for MaxTTL, see [quorum.HighWater]. Only a client
// that was running before notices a restored backup; an operator tells the
// others, by quorum.Raise with Forgotten.
package consulstore
