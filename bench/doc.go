// Package bench measures quorum beside other lock libraries, on the same
// servers in the same run, and beside what the servers and the client could do
// at best. It has no code but its tests and benchmarks:
//
//	make bench        # everything, in about ten minutes; rewrites bench/results and the tables in docs
//	go test ./bench   # the counts that must not grow: commands, round trips, allocations
//
// Nothing in a test compares times: those that make bench writes down are for
// people, who compare rows of one run.
package bench
