package waitlist

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

func waiter(id byte, turn, client string) Waiter {
	return Waiter{
		Owner: core.Owner{ID: core.ID{id}, Attempt: uint32(id)}, Mode: core.Shared, Ticket: int64(id) * 10,
		Keep: time.Minute, Claim: 100 * time.Millisecond, Beat: 3, Turn: turn, Client: client,
	}
}

func TestTextIsReadAsItWasWritten(t *testing.T) {
	all := List{waiter(1, Answered+"7", ""), waiter(2, "7", "ABC"), waiter(3, None, "")}
	text := all.String()
	read, err := Parse(text)
	if err != nil || len(read) != len(all) {
		t.Fatalf("%v, %v", read, err)
	}
	for i, w := range read {
		if !strings.Contains(text, w.text) {
			t.Errorf("line %q is none of %q", w.text, text)
		}
		if w.text = ""; w != all[i] {
			t.Errorf("read %+v, want %+v", w, all[i])
		}
	}
	if counter, told := read[1].Told(); !told || counter != 7 {
		t.Errorf("the turn is told: %v, with %d", told, counter)
	}
	for _, i := range []int{0, 2} {
		if _, told := read[i].Told(); told {
			t.Errorf("the turn %q is told", read[i].Turn)
		}
	}
	if none, err := Parse(""); len(none) > 0 || err != nil || none.String() != "" {
		t.Errorf("nobody: %v, %v", none, err)
	}
	lines := strings.Split(text, "\n")
	for _, bad := range []string{
		"2\n" + lines[1], "1", "1\n", text + "\n", "1\n" + lines[1][1:], "1\n" + lines[1] + " a b",
		"1\n" + strings.Replace(lines[1], " 10 ", " x ", 1), "1\n" + strings.Replace(lines[1], " 10 ", " -10 ", 1),
	} {
		if _, err := Parse(bad); err == nil || strings.Contains(err.Error(), lines[1][:8]) {
			t.Errorf("%q: %v, want an error that shows no owner", bad, err)
		}
	}
}

// TestALineIsAsOldAsItWasSeen: what ends, ends by how long this client has seen
// a line as it is.
func TestALineIsAsOldAsItWasSeen(t *testing.T) {
	all := List{waiter(1, "7", ""), waiter(2, None, "")}
	var s Seen
	second := model.Time(time.Second.Microseconds())
	s.See("k", all.String(), 100*second)
	all[1].Beat++ // it asked again
	ages := s.See("k", all.String(), 130*second)
	read, _ := Parse(all.String())
	got := read.Entries(1000*second, ages)
	if want := 1000*second - 30*second; got[0].Until != want.Add(time.Minute) || got[0].Turn != want.Add(100*time.Millisecond) {
		t.Errorf("an old line's entry lasts until %d, its turn until %d", got[0].Until, got[0].Turn)
	}
	if got[1].Until != (1000*second).Add(time.Minute) || got[1].Turn != 0 {
		t.Errorf("a new line's entry lasts until %d, its turn until %d", got[1].Until, got[1].Turn)
	}
	line := func(s *Seen, i int, now model.Time) time.Duration { return s.Ages("k", now)[read[i].text] }
	if a, b := line(&s, 0, 140*second), line(&s, 1, 140*second); a != 40*time.Second || b != 10*time.Second {
		t.Errorf("ages %v and %v, want 40s and 10s", a, b)
	}
	if s.See("k", all.String(), 90*second); line(&s, 0, 91*second) != time.Second {
		t.Error("a clock that went back left a line of the future")
	}
	if s.See("k", "", 92*second); s.Has("k") {
		t.Error("a queue that is empty is remembered")
	}
}

func TestAfterTheModel(t *testing.T) {
	all := List{waiter(1, None, "x"), waiter(2, None, "y"), waiter(3, "5", "z")}
	ask := &Ask{Owner: core.Owner{ID: core.ID{4}, Attempt: 1}, Keep: time.Second, Client: "me"}
	name := model.Name{Known: true, Counter: 9}
	entry := func(id byte, turn model.Time) model.Entry {
		return model.Entry{Owner: core.Owner{ID: core.ID{id}, Attempt: uint32(id)}, Ticket: int64(id), Claim: time.Second, Turn: turn}
	}
	mine := entry(4, 1)
	mine.Owner = ask.Owner
	name.Queue = []model.Entry{mine, entry(2, 1), entry(3, 0)}
	var got []string
	for _, w := range all.After(&model.Record{}, &name, ask) {
		got = append(got, string('0'+rune(w.Owner.ID[0]))+w.Client+w.Turn)
	}
	if want := []string{"4me=9", "2y9", "3z-"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	name.Known = false
	if after := all.After(&model.Record{Step: 2}, &name, nil); after[1].Turn != "134217728" {
		t.Errorf("the counter of a name that is not known is %q, want the step's", after[1].Turn)
	}
	if last := all.Last(core.ID{9}); last != 30 {
		t.Errorf("the last ticket is %d, want 30", last)
	}
	if last := all.Last(core.ID{2}); last != 0 {
		t.Errorf("who waits comes after ticket %d, want 0", last)
	}
}
