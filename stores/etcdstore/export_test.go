package etcdstore

import (
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumlock/quorum/internal/model"
)

// SetClock makes a store's steps follow another clock.
func SetClock(s *Store, now func() time.Time) {
	s.now = func() model.Time { return model.Time(now().UnixMicro()) }
}

// AdviceOf is what a server's status makes Advice say.
func AdviceOf(status *etcdserverpb.StatusResponse) []string { return adviceOf(status) }

// The constants that the documents state.
const (
	StepsAtOnce = stepsAtOnce
	RestSteps   = restSteps
	SweepLimit  = sweepLimit
)
