package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/quorumlock/quorum/internal/core"
)

// Format is the version of the encoding, its first byte. A change of what is
// kept needs another one, and a decoder that still reads this.
const Format = 1

// ErrCorrupt is what decoding something that was never encoded comes to.
var ErrCorrupt = errors.New("model: corrupt encoding")

// AppendBinary appends r in its one encoding: equal records encode equally.
func (r *Record) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, Format, byte(r.Standing), flag(r.Lost), r.Serving)
	for _, set := range r.Serves[:r.Serving] {
		b = binary.BigEndian.AppendUint64(b, set)
	}
	b = appendString(b, r.Member)
	b = appendString(b, r.Run)
	for _, n := range []int64{int64(r.End), r.Base, r.Step, int64(r.Moved)} {
		b = binary.AppendVarint(b, n)
	}
	return b, nil
}

// UnmarshalBinary makes r what AppendBinary was given.
func (r *Record) UnmarshalBinary(b []byte) error {
	d := decoder{rest: b}
	d.format()
	*r = Record{Standing: Standing(d.byte(byte(Quarantined))), Lost: d.byte(1) == 1, Serving: d.byte(byte(len(r.Serves)))}
	for i := range r.Serving {
		r.Serves[i] = d.uint64()
	}
	r.Member, r.Run = d.string(), d.string()
	r.End, r.Base, r.Step, r.Moved = Time(d.varint()), d.varint(), d.varint(), Time(d.varint())
	return d.end("record")
}

// AppendBinary appends n in its one encoding: equal names encode equally.
func (n *Name) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, Format, flag(n.Known)|flag(n.Writer)<<1, byte(n.Last))
	b = binary.AppendVarint(b, n.Counter)
	b = binary.AppendVarint(b, int64(n.Keep))
	b = binary.AppendUvarint(b, uint64(len(n.Votes)))
	for i := range n.Votes {
		v := &n.Votes[i]
		b = append(b, v.Owner.ID[:]...)
		b = binary.AppendUvarint(b, uint64(v.Owner.Attempt))
		b = append(b, byte(v.Mode))
		b = binary.AppendVarint(b, v.Token)
		b = binary.AppendVarint(b, int64(v.Since))
		b = binary.AppendVarint(b, int64(v.Until))
		b = appendString(b, v.Label)
	}
	b = binary.AppendUvarint(b, uint64(len(n.Tombs)))
	for i := range n.Tombs {
		t := &n.Tombs[i]
		b = append(b, t.ID[:]...)
		b = binary.AppendUvarint(b, uint64(t.Attempt))
		b = binary.AppendVarint(b, int64(t.Until))
	}
	b = binary.AppendUvarint(b, uint64(len(n.Forced)))
	for i := range n.Forced {
		f := &n.Forced[i]
		b = append(b, f.ID[:]...)
		b = appendString(b, f.Label)
		b = binary.AppendVarint(b, int64(f.Until))
	}
	return b, nil
}

// UnmarshalBinary makes n what AppendBinary was given.
func (n *Name) UnmarshalBinary(b []byte) error {
	d := decoder{rest: b}
	d.format()
	flags := d.byte(3)
	*n = Name{
		Known:   flags&1 != 0,
		Writer:  flags&2 != 0,
		Last:    core.Previous(d.byte(byte(core.PreviousExpired))),
		Counter: d.varint(),
		Keep:    Time(d.varint()),
	}
	for range d.count() {
		n.Votes = append(n.Votes, Vote{
			Owner: core.Owner{ID: d.id(), Attempt: d.uint32()},
			Mode:  core.Mode(d.byte(byte(core.Shared))),
			Token: d.varint(),
			Since: Time(d.varint()),
			Until: Time(d.varint()),
			Label: d.string(),
		})
	}
	for range d.count() {
		n.Tombs = append(n.Tombs, Tomb{ID: d.id(), Attempt: d.uint32(), Until: Time(d.varint())})
	}
	for range d.count() {
		n.Forced = append(n.Forced, Forced{ID: d.id(), Label: d.string(), Until: Time(d.varint())})
	}
	if !slices.IsSortedFunc(n.Votes, func(a, b Vote) int { return byVoter(a, b.Owner.ID) }) ||
		!slices.IsSortedFunc(n.Tombs, func(a, b Tomb) int { return byTomb(a, b.ID) }) ||
		!slices.IsSortedFunc(n.Forced, func(a, b Forced) int { return byForced(a, b.ID) }) {
		d.bad = true
	}
	return d.end("name")
}

// AppendBinary appends s in its one encoding, for a simulator that compares
// states. It is not meant to be read again.
func (s *Store) AppendBinary(b []byte) ([]byte, error) {
	b, _ = s.Record.AppendBinary(appendString(b, s.Server))
	for i := range s.names {
		b, _ = s.names[i].name.AppendBinary(appendString(b, s.names[i].key))
	}
	return b, nil
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads an encoding. Once something is bad all that follows reads as
// zero, so that only the end has to be checked.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.rest) {
		d.bad = true
		return make([]byte, 16)[:min(max(n, 0), 16)]
	}
	head := d.rest[:n]
	d.rest = d.rest[n:]
	return head
}

func (d *decoder) format() {
	if d.take(1)[0] != Format {
		d.bad = true
	}
}

// byte reads one that is at most limit.
func (d *decoder) byte(limit byte) byte {
	v := d.take(1)[0]
	if v > limit {
		d.bad = true
		return 0
	}
	return v
}

func (d *decoder) uint64() uint64 { return binary.BigEndian.Uint64(d.take(8)) }

func (d *decoder) id() core.ID { return core.ID(d.take(16)) }

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.bad = true
	}
	return uint32(v)
}

// count reads a length, which no list can have that is longer than the rest.
func (d *decoder) count() int {
	v := d.uvarint()
	if v > uint64(len(d.rest)) {
		d.bad = true
		return 0
	}
	return int(v)
}

func (d *decoder) string() string { return string(d.take(d.count())) }

func (d *decoder) end(what string) error {
	if d.bad || len(d.rest) > 0 {
		return fmt.Errorf("%w of a %s", ErrCorrupt, what)
	}
	return nil
}
