package quorum

import (
	"context"
	"net/url"
)

// Opener makes stores from DSNs. A store's package has a function that returns
// one; there is no global list of them, so a program contains the stores that
// it names and no others.
type Opener struct {
	// Schemes are the URL schemes it takes, in lower case: "redis", "rediss".
	Schemes []string
	// Open makes a store with a client of its own. The DSN's query always
	// carries "name", the store's name, which the store must take as it is.
	// ctx bounds Open and not the store's life. A store that is an io.Closer is
	// closed by who called [Open], see there. The error may quote the DSN: its
	// secrets are taken out again.
	Open func(ctx context.Context, dsn *url.URL) (Store, error)
}
