// Package modelstore makes a quorum.Store of the model and a place to keep it.
// It is the one translation between the public contract and the model's
// messages.
package modelstore

import (
	"context"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// Backend keeps a store's record and names.
//
// An error means that the outcome is unknown, unless it is wrapped by
// quorum.Undelivered, which says that nothing was and will be kept. A backend
// honours ctx wherever it waits.
type Backend interface {
	// Update gives f the record and the name in one atomic, isolated step and
	// keeps what f made of them, durably if the backend is durable, before it
	// returns. A key never used has the zero Name. With an empty key the
	// record alone is meant, and name is nil. f keeps neither pointer. It may be
	// called again on what was read anew, and then its last call counts.
	Update(ctx context.Context, key string, f func(rec *model.Record, name *model.Name, now model.Time)) error
	// View is Update without keeping: f may change what it is given, and
	// nobody sees it.
	View(ctx context.Context, key string, f func(rec *model.Record, name *model.Name, now model.Time)) error
}

// Teller is the ability of a backend to tell those who watch a name. What it is
// given happened, and was kept.
type Teller interface {
	Tell(key string, wakes []quorum.Wake)
}
