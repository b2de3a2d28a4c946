// Package testserver starts real servers for tests: each a process of its own
// on a free loopback port, in a directory that goes away with the test. A
// server can be killed, stalled and restarted, which is what the tests of a
// lock are about.
//
// A server that is not installed fails the test with the command that installs
// it. Only outside CI, and only with -short, the test is skipped instead.
//
// Each kind of server has a file of its own; all of them run on [process].
package testserver
