module github.com/quorumlock/quorum

go 1.25.0

require pgregory.net/rapid v1.3.0 // tests only
