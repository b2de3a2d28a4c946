// Command quorum runs a command while it holds a named lock in one store or in
// a quorum of independent ones, and shows who holds a lock.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }
