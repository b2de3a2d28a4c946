package simpage

import (
	"fmt"

	"github.com/quorumlock/quorum/internal/sim"
)

// layout is what is drawn where, from top to bottom: the faults, the time, the
// resources, the clients, the stores.
type layout struct {
	*axis
	faults    float64 // top of the first fault's row
	time      float64
	resources [2]float64 // baselines: with a fence, without
	clients   []float64
	stores    []float64
	height    float64
	lanes     []Lane
}

// Lane names a row of the picture, for the column beside it.
type Lane struct {
	Name  string
	Top   float64
	Class string
}

const (
	faultRow    = 20.0
	timeRow     = 26.0
	resourceRow = 34.0
	clientRow   = 64.0
	storeRow    = 52.0
	barHeight   = 24.0
	margin      = 20.0
)

func newLayout(t *sim.Trace) *layout {
	l := &layout{axis: newAxis(t), faults: 4}
	y := l.faults + faultRow*float64(len(t.Plan.Faults)) + 4
	if len(t.Plan.Faults) > 0 {
		l.lanes = append(l.lanes, Lane{"faults", l.faults, ""})
	}
	l.time = y
	l.lanes = append(l.lanes, Lane{"true time", y + 4, "quiet"})
	y += timeRow
	for i, name := range []string{"fenced resource", "without a fence"} {
		l.resources[i] = y + resourceRow/2
		l.lanes = append(l.lanes, Lane{name, y + resourceRow/2 - 9, ""})
		y += resourceRow
	}
	y += 10
	for i := range t.Config.Clients {
		y += clientRow
		l.clients = append(l.clients, y)
		l.lanes = append(l.lanes, Lane{t.Who(i), y - barHeight - 1, fmt.Sprintf("c%d", i%colours)})
	}
	y += 34
	for i := range t.Config.Stores {
		l.stores = append(l.stores, y)
		l.lanes = append(l.lanes, Lane{"store " + sim.StoreName(i), y + 3, ""})
		y += storeRow
	}
	l.height = y
	return l
}

// colours is how many clients have a colour of their own.
const colours = 6
