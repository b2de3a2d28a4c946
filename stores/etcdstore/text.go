package etcdstore

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Values are lines of text that begin with the version of their format, so that
// a person can read them by etcdctl, and another version is not misread.
const version = "1"

// fields reads the blank-separated fields of a value, one after the other. The
// first that is not what it should be leaves an error.
type fields struct {
	rest string
	err  error
}

func read(value []byte) *fields {
	f := &fields{rest: string(value)}
	if v := f.word(); v != version {
		f.err = fmt.Errorf("format %q of a value is not %q", v, version)
	}
	return f
}

func (f *fields) word() string {
	word, rest, _ := strings.Cut(f.rest, " ")
	f.rest = rest
	return word
}

func (f *fields) number(base, bits int) int64 {
	n, err := strconv.ParseInt(f.word(), base, bits)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("a number in a value: %w", err)
	}
	return n
}

func (f *fields) id() (id core.ID) {
	if n, err := hex.Decode(id[:], []byte(f.word())); (err != nil || n != len(id)) && f.err == nil {
		f.err = fmt.Errorf("an owner in a value has %d bytes", n)
	}
	return id
}

// vote: id, attempt, token, seconds of its lease, since in µs, label.
func voteText(v model.Vote, seconds int64) string {
	return fmt.Sprintf("%s %x %d %d %d %d %s", version, v.Owner.ID[:], v.Owner.Attempt, v.Token, seconds, v.Since, v.Label)
}

func parseVote(value []byte) (v model.Vote, seconds int64, err error) {
	f := read(value)
	v.Owner.ID = f.id()
	v.Owner.Attempt = uint32(f.number(10, 64))
	v.Token = f.number(10, 64)
	seconds = f.number(10, 64)
	v.Since = model.Time(f.number(10, 64))
	v.Label = f.rest
	return v, seconds, f.err
}

// tally is the counter's value.
type tally struct {
	counter int64
	writer  bool // it was last given to a writer
	last    core.Previous
	held    bool // a vote was given since a release left nobody
}

const (
	fates = "ure" // by core.Previous
	bits  = "-+"
)

func bit(b bool) byte {
	if b {
		return bits[1]
	}
	return bits[0]
}

func (t tally) text() string {
	return fmt.Sprintf("%s %d %c%c%c", version, t.counter, bit(t.writer), fates[t.last], bit(t.held))
}

func parseTally(value []byte) (t tally, err error) {
	f := read(value)
	t.counter = f.number(10, 64)
	flags := f.word()
	if len(flags) != 3 || !strings.Contains(fates, flags[1:2]) {
		return t, fmt.Errorf("flags %q of a counter", flags)
	}
	t.writer, t.held = flags[0] == bits[1], flags[2] == bits[1]
	t.last = core.Previous(strings.Index(fates, flags[1:2]))
	return t, f.err
}

// tomb: the youngest attempt that it refuses.
func tombText(t model.Tomb) string { return fmt.Sprintf("%s %d", version, t.Attempt) }

func parseTomb(value []byte) (uint32, error) {
	f := read(value)
	n := f.number(10, 64)
	return uint32(n), f.err
}

// forced: the label of who took the name.
func forcedText(by model.Forced) string { return version + " " + by.Label }

func parseForced(value []byte) (string, error) {
	f := read(value)
	return f.rest, f.err
}

// record: whether it votes, whether it was lost, step, when that moved, base,
// the lease of the quarantine, the sets it serves.
func recordText(r *model.Record, quarantine int64) string {
	standing := "votes"
	if r.Standing == model.Quarantined {
		standing = "quarantined"
	}
	var sets []string
	for _, set := range r.Serves[:r.Serving] {
		sets = append(sets, fmt.Sprintf("%016x", set))
	}
	return fmt.Sprintf("%s %s %c %d %d %d %x %s",
		version, standing, bit(r.Lost), r.Step, r.Moved, r.Base, quarantine, strings.Join(sets, ","))
}

func parseRecord(value []byte) (r model.Record, quarantine int64, err error) {
	f := read(value)
	switch f.word() {
	case "votes":
		r.Standing = model.Voting
	case "quarantined":
		r.Standing = model.Quarantined
	default:
		f.err = fmt.Errorf("the record's standing is not known")
	}
	r.Lost = f.word() == bits[1:]
	r.Step = f.number(10, 64)
	r.Moved = model.Time(f.number(10, 64))
	r.Base = f.number(10, 64)
	quarantine = f.number(16, 64)
	for _, text := range strings.FieldsFunc(f.rest, func(r rune) bool { return r == ',' }) {
		set, err := strconv.ParseUint(text, 16, 64)
		if err != nil || int(r.Serving) == len(r.Serves) {
			return r, 0, fmt.Errorf("the sets %q of the record", f.rest)
		}
		r.Serves[r.Serving] = set
		r.Serving++
	}
	return r, quarantine, f.err
}
