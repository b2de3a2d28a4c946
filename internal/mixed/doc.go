// Package mixed holds the tests of quorums whose stores are of several kinds: a
// module of its own, since they need every client at once.
package mixed
