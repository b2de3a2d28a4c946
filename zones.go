package quorum

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Zones is a majority of zones, each with a majority of its own members. A
// member's zone is its [Limits.Domain], see [InDomain]; every member needs one.
// Of three zones of three nodes it needs two nodes in each of two zones, so that
// it survives the loss of a whole zone and of a node in each of the others.
//
// A [Consensus] of Consensus does the same with a round trip through each zone's
// own set; Zones asks the nodes themselves.
func Zones() Strategy { return zones{} }

// zones is Zones; the fields are set once it has met its members.
type zones struct {
	text    string
	members []Votes // of each zone
}

func (z zones) place(members []Store) (Strategy, error) {
	in := map[string]Votes{}
	list := map[string][]string{}
	for i, m := range members {
		zone := m.Limits().Domain
		if zone == "" {
			return nil, fmt.Errorf("%w: Zones with store %q, which is in none: say which with InDomain", ErrInvalidOption, m.Name())
		}
		in[zone] |= 1 << i
		list[zone] = append(list[zone], fmt.Sprintf("%q", m.Name()))
	}
	var parts []string
	z.members = nil
	for _, zone := range slices.Sorted(maps.Keys(in)) {
		slices.Sort(list[zone])
		parts = append(parts, fmt.Sprintf("%q: %s", zone, strings.Join(list[zone], " ")))
		z.members = append(z.members, in[zone])
	}
	z.text = "(" + strings.Join(parts, "; ") + ")"
	return z, nil
}

func (z zones) Met(v Votes, _ int) bool {
	agree := 0
	for _, zone := range z.members {
		if (v & zone).Len() > zone.Len()/2 {
			agree++
		}
	}
	return agree > len(z.members)/2
}

func (z zones) String() string { return "zones" + z.text }
