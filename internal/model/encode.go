package model

import "encoding/binary"

// AppendBinary appends r in its one encoding: two records encode equally when
// they are equal. It serves simulators, which compare and hash states; it is no
// format to be stored.
func (r *Record) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, byte(r.Standing), flag(r.Lost), r.Serving)
	for _, set := range r.Serves {
		b = binary.BigEndian.AppendUint64(b, set)
	}
	b = appendString(b, r.Member)
	b = appendString(b, r.Run)
	for _, n := range []int64{int64(r.End), r.Base, r.Step, int64(r.Moved)} {
		b = binary.AppendVarint(b, n)
	}
	return b, nil
}

// AppendBinary appends n in its one encoding: two names encode equally when
// they are equal.
func (n *Name) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, flag(n.Known)|flag(n.Writer)<<1, byte(n.Last))
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
	b = binary.AppendUvarint(b, uint64(len(n.Queue)))
	for i := range n.Queue {
		e := &n.Queue[i]
		b = append(b, e.Owner.ID[:]...)
		b = binary.AppendUvarint(b, uint64(e.Owner.Attempt))
		b = append(b, byte(e.Mode))
		for _, v := range []int64{e.Ticket, int64(e.Until), int64(e.Claim), int64(e.Turn)} {
			b = binary.AppendVarint(b, v)
		}
	}
	return b, nil
}

// AppendBinary appends s in its one encoding.
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
