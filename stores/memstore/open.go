package memstore

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/quorumlock/quorum"
)

// Opener takes DSNs of the form memory://name, for [quorum.Open]. Of one Opener
// one name is one memory, so that all who open it there exclude each other; two
// Openers share nothing. A memory lives as long as its Opener. The query takes
// nothing but "name".
func Opener() quorum.Opener {
	var mu sync.Mutex
	made := map[string]*Store{}
	return quorum.Opener{
		Schemes: []string{"memory"},
		Open: func(_ context.Context, dsn *url.URL) (quorum.Store, error) {
			for field := range dsn.Query() {
				if field != "name" {
					return nil, fmt.Errorf("%w: a memory store has no setting %q; it takes name", quorum.ErrInvalidOption, field)
				}
			}
			name := dsn.Query().Get("name")
			mu.Lock()
			defer mu.Unlock()
			if made[name] == nil {
				made[name] = New(name)
			}
			return made[name], nil
		},
	}
}
