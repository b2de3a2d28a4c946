package consulstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// A token without the colon before it is a user's name to a URL: it would be
// left out of the calls, and shown.
func TestR63TokenInTheWrongPlaceIsRefused(t *testing.T) {
	_, err := quorum.Open(t.Context(), []string{"consul://hunter2@127.0.0.1:1"}, consulstore.Opener())
	if !errors.Is(err, quorum.ErrInvalidOption) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}
