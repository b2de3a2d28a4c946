// Package bench measures quorum beside other lock libraries, on the same
// servers in the same run. It has no code but its benchmarks: run them with
//
//	make bench
package bench
