// Package quorum holds a named lock in N independent stores at once.
package quorum
