// Package scenario reads descriptions of simulated worlds: what they are made
// of, what goes wrong, and what the clients do. The named failure modes are
// such files too, so that each is an example of one.
package scenario
