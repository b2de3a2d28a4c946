// Package redisstore is a [quorum.Store] on one Redis server, 6.2 or newer, or
// one Redis Cluster, through a go-redis client.
//
//	store, err := redisstore.New("a", redis.NewClient(&redis.Options{
//		Addr: "10.0.0.1:6379", MaxRetries: -1, ContextTimeoutEnabled: true,
//	}))
//
// Every verb is one script that runs on the server, by the server's clock; a
// lock that is free is taken by one command and released by one. Calls of many
// goroutines to one server share round trips, and up to 64 usual ones of them one
// script: a server spends 7 µs on an acquire or extend and 4 on a release then,
// where they cost it 15 and 9 alone. A call that turns out to be unusual, such as
// one on a name that is held, has cost nothing in such a script, and follows by
// itself in another round trip. In a Cluster there are no shared scripts.
//
// # Restarts
//
// A Redis server may lose what it acknowledged, whatever its persistence. The
// store sees in its own operation that the server restarted, was promoted or
// was emptied, and then stays in quarantine for MaxTTL: it does not vote, see
// [quorum.HighWater]. For that the run id of the server's process is part of
// every script's text. A process that has just started knows no script and
// answers NOSCRIPT; only then is the run id read and the scripts are loaded, on
// one connection, which cannot outlive the process.
//
// # What it keeps
//
// All keys begin with the prefix in braces, so that those of a name share one
// slot:
//
//	{quorum}:record      what the server says of itself, one string
//	{quorum}:vote:NAME   who holds NAME; deleting it by hand frees the name
//	{quorum}:count:NAME  the name's last token; deleting it can repeat a token
//	{quorum}:read:NAME, {quorum}:ends:NAME    the readers, while there are any
//	{quorum}:tomb:OWNER:NAME                  a released owner whose request may still come
//	{quorum}:forced:NAME                      whose vote was removed by force
//	{quorum}:queue:NAME, and stay:, turn:, line:    who waits in line, while anybody does
//
// The Lua files say what stands in them. Each key but the record expires by
// itself, at latest MaxTTL and ten minutes after its last use.
//
// # Waking
//
// A release tells those who wait for the name by PUBLISH on the channel
// {quorum}:wake:NAME, if an Acquire with [quorum.WaitWatch] was refused before
// and somebody listens; without a waiter it costs nothing. All watches of a
// store share one connection. Those who queue are told their turns on a channel
// of their store's, so that the server sees who has died. A user with restricted
// channels needs the patterns {quorum}:wake:* and {quorum}:waiter:*; without the
// second a waiter that died holds the line up for its turn.
//
// That a vote was deleted by hand is told at once where the server tells of keys
// (notify-keyspace-events with K and g, and the pattern __keyspace@*__:* for a
// restricted user); else the holder's next renewal finds out. A Redis Cluster
// tells of keys only on their own node, so there it is always the renewal.
//
// # Redis Cluster
//
// A Cluster is one member, through [redis.ClusterClient]. Names are spread over
// 1,024 parts with tags of their own, {quorum:0} to {quorum:1023}, each with a
// record, so that a script touches one slot. The nodes' own clients are used,
// which send each request once. A node that takes over, by fail-over or by the
// migration of a slot, may have forgotten: the parts that it got stay out for
// MaxTTL, and the others go on. A name in a slot that is being migrated cannot
// be had meanwhile; such calls are refused as not sent. Members of one quorum
// that are nodes of one Cluster fail together: give each a server of its own
// instead, or make the Cluster one member of several.
//
// [WaitReplicas] lets a grant count only when replicas have it.
//
// # Clients
//
// A client that repeats requests by itself is taken as it is, and said so in
// Limits: set MaxRetries to -1. One that does not watch its context waits for
// its ReadTimeout: set ContextTimeoutEnabled. A Ring is refused. Behind a Sentinel the store follows the primary, and stays
// out for MaxTTL after each change of it.
package redisstore
