package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/modelstore"
)

// reference keeps the model in memory, on a clock that moves when told. It is
// what a store is compared with.
type reference struct {
	mu    sync.Mutex
	now   model.Time
	rec   model.Record
	names map[string]*model.Name
}

// newReference returns the store of the contract.
func newReference(now time.Time) (*reference, quorum.Store) {
	r := &reference{now: model.Time(now.UnixMicro()), names: map[string]*model.Name{}}
	r.rec = model.NewRecord("reference", "run", r.now)
	return r, modelstore.New("reference", quorum.Limits{Shares: true, Queues: true}, "reference", r)
}

func (r *reference) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// Update is the modelstore's.
func (r *reference) Update(ctx context.Context, key string, f func(*model.Record, *model.Name, model.Time)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return quorum.Undelivered(err)
	}
	name := r.names[key]
	if name == nil && key != "" {
		name = &model.Name{}
		r.names[key] = name
	}
	f(&r.rec, name, r.now)
	return nil
}

// View is Update on a copy.
func (r *reference) View(ctx context.Context, key string, f func(*model.Record, *model.Name, model.Time)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, name := r.rec, model.Name{}
	if n := r.names[key]; n != nil {
		name = n.Clone()
	}
	f(&rec, &name, r.now)
	return ctx.Err()
}
