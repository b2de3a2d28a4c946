package etcdstore

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

func TestStepFollowsClocks(t *testing.T) {
	period := model.Time(core.StepPeriod / time.Microsecond)
	at := func(step int64) model.Time { return model.Time(step) * period }
	const g = 1_000_000
	for name, tc := range map[string]struct {
		now   model.Time
		moved model.Time
		want  int64
	}{
		"as it was":              {at(g), at(g), g},
		"a clock that is behind": {at(g - 1000), at(g), g},
		"the next step":          {at(g + 1), at(g), g + 1},
		"an hour ahead, though it has just moved": {at(g + 12), at(g + 12), g + 12},
		"as far as it goes at once":               {at(g + stepsAtOnce), at(g), g + stepsAtOnce},
		"further":                                 {at(g + stepsAtOnce + 1), at(g), g + 1},
		"further, and it has just moved":          {at(g + stepsAtOnce + 1), at(g + stepsAtOnce + 1), g},
	} {
		rec := model.Record{Standing: model.Voting, Step: g, Moved: tc.moved}
		if follow(&rec, tc.now); rec.Step != tc.want {
			t.Errorf("%s: step g%+d, want g%+d", name, rec.Step-g, tc.want-g)
		}
	}
	lost := model.Record{}
	if follow(&lost, at(g)); lost.Step != g {
		t.Errorf("a record that is missing starts at %d, want the clock's %d", lost.Step, g)
	}
}

// However often a clock that is years ahead asks, the step moves no faster than
// time does.
func TestWrongClockDoesNotRaiseTheStep(t *testing.T) {
	const g = 1_000_000
	rec := model.Record{Standing: model.Voting, Step: g, Serving: 1, Serves: [2]uint64{1}}
	name := model.Name{}
	far := model.Time((g + 1<<20) * int64(core.StepPeriod/time.Microsecond))
	for i := range uint32(1000) {
		apply(&rec, &name, core.Request{
			Verb: core.Acquire, Owner: core.Owner{Attempt: i + 1}, TTL: time.Second, MaxTTL: time.Second, Set: 1,
		}, far+model.Time(i))
	}
	if rec.Step > g+1 {
		t.Errorf("a thousand requests moved the step by %d", rec.Step-g)
	}
	rec.Standing = model.Quarantined
	o := core.RaiseOrder{Quarantine: rec.Quarantine(), Alone: true}
	if a := apply(&rec, nil, core.Request{Verb: core.Raise, MaxTTL: time.Second, Set: 1, Raise: o}, far); a.Outcome != core.Granted {
		t.Fatalf("raise: %+v", a)
	}
	if rec.Step > g+3 {
		t.Errorf("a raise alone moved the step by %d", rec.Step-g)
	}
}

func TestTextsAreReadBack(t *testing.T) {
	rec := model.Record{
		Standing: model.Quarantined, Lost: true, Step: 7, Moved: 8, Base: 9, Serving: 2, Serves: [2]uint64{1, 1<<64 - 1},
	}
	if got, lease, err := parseRecord([]byte(recordText(&rec, 0x7fab))); got != rec || lease != 0x7fab || err != nil {
		t.Errorf("record %+v, %x, %v", got, lease, err)
	}
	for _, label := range []string{"", " a  b ", "\"\n1 "} {
		vote := model.Vote{Owner: core.Owner{ID: core.ID{1, 255}, Attempt: 1<<32 - 1}, Token: 1 << 52, Since: 5, Label: label}
		if got, seconds, err := parseVote([]byte(voteText(vote, 15))); got != vote || seconds != 15 || err != nil {
			t.Errorf("vote %+v, %d, %v", got, seconds, err)
		}
	}
	for _, last := range []core.Previous{core.PreviousUnknown, core.PreviousReleased, core.PreviousExpired} {
		want := tally{counter: 1 << 52, writer: last == core.PreviousReleased, last: last, held: last == core.PreviousExpired}
		if got, err := parseTally([]byte(want.text())); got != want || err != nil {
			t.Errorf("tally %+v, %v", got, err)
		}
	}
	for _, wrong := range []string{"", "2 votes - 1 2 3 4 ", "1 votes", "1 sleeps - 1 2 3 4 ", "1 votes - 1 2 3 4 1,2,3", "x"} {
		if _, _, err := parseRecord([]byte(wrong)); err == nil {
			t.Errorf("%q is read as a record", wrong)
		}
		if _, _, err := parseVote([]byte(wrong)); err == nil {
			t.Errorf("%q is read as a vote", wrong)
		}
		if _, err := parseTally([]byte(wrong)); err == nil {
			t.Errorf("%q is read as a counter", wrong)
		}
	}
}
