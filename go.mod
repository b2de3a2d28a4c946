module github.com/quorumlock/quorum

go 1.25.0
