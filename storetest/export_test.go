package storetest

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Names lists the checks of the suite.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Examine runs one check and returns its failures instead of telling t.
func Examine(t *testing.T, f Factory, name string) (failures []string, skipped string) {
	for _, c := range checks() {
		if c.name == name {
			r := c.examine(t, f)
			return r.failures, r.skipped
		}
	}
	t.Fatalf("no check is called %q", name)
	return nil, ""
}

// NewReference returns the model as a store.
func NewReference() quorum.Store {
	_, s := newReference(time.Now())
	return s
}
