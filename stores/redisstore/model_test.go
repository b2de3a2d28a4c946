package redisstore_test

import (
	"testing"

	"github.com/quorumlock/quorum/stores/redisstore/internal/trial"
)

func TestScriptsAgreeWithTheModel(t *testing.T) {
	node, clock := stoppedRedis(t)
	c := client(t, node.Addr)
	run := &trial.Run{Client: c, Clock: clock, Back: true, Life: runID(t, c)}
	run.Play(t, 3000)
}
