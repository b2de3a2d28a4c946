package pgstore_test

import (
	"sync"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/pgstore"
	"github.com/quorumlock/quorum/storetest"
)

// TestConformance runs the suite in real time, all checks side by side on one
// server, each in a schema of its own.
func TestConformance(t *testing.T) {
	p := pool(t, shared(t).URL())
	var names sync.Map
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			schema := newSchema()
			s := store(t, p, pgstore.Schema(schema))
			names.Store(s, schema)
			return s
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			schema, _ := names.Load(first)
			return store(t, p, pgstore.Schema(schema.(string)))
		},
		Parallel: true,
	})
}
