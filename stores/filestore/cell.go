package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A cell is a file that holds one value and is overwritten in place, whole or
// not at all as far as other processes see it, also if the writer is killed
// at any instruction:
//
//	0   8  magic and version
//	8   4  where the value begins
//	12  4  its length
//	16  4  checksum of the value
//	20  4  checksum of these 20 bytes
//
// A new value goes where the old one does not lie, and then one write of the
// header makes it the value. A killed process leaves one header or the other,
// since the kernel finishes a write within one page that it has begun. So a
// bad checksum is never half a write: it is damage, and an error.
//
// Renaming a new file over the old one does the same, but ext4 then starts to
// write the file to disk within the call: 376 µs where this takes 4.
//
// A power cut may leave anything. That is dealt with in record.go.
const (
	cellMagic  = "quorum1\n"
	headerSize = 24
	maxCell    = 64 << 20
)

var errDamaged = errors.New("damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealCell returns the header for a value that begins at.
func sealCell(value []byte, at int) []byte {
	h := make([]byte, 0, headerSize)
	h = append(h, cellMagic...)
	h = binary.LittleEndian.AppendUint32(h, uint32(at))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(value)))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(value, castagnoli))
	return binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

// newCell returns the whole text of a cell that was never overwritten.
func newCell(value []byte) []byte { return append(sealCell(value, headerSize), value...) }

// openCell finds the value in the text of a cell, and where it begins.
func openCell(text []byte) (value []byte, at int, err error) {
	if len(text) < headerSize {
		return nil, 0, fmt.Errorf("%w: it has %d bytes, fewer than a header", errDamaged, len(text))
	}
	field := func(i int) uint32 { return binary.LittleEndian.Uint32(text[i:]) }
	switch {
	case string(text[:8]) != cellMagic:
		return nil, 0, fmt.Errorf("%w: it does not begin as this version's files do", errDamaged)
	case crc32.Checksum(text[:20], castagnoli) != field(20):
		return nil, 0, fmt.Errorf("%w: the header's checksum is wrong", errDamaged)
	}
	from, to := uint64(field(8)), uint64(field(8))+uint64(field(12))
	if from < headerSize || to > uint64(len(text)) {
		return nil, 0, fmt.Errorf("%w: the value lies beyond its %d bytes", errDamaged, len(text))
	}
	value = text[from:to]
	if crc32.Checksum(value, castagnoli) != field(16) {
		return nil, 0, fmt.Errorf("%w: the value's checksum is wrong", errDamaged)
	}
	return value, int(from), nil
}

// overwrite puts value into a cell whose value of size bytes begins at.
// committed is false as long as the old value certainly stands.
func overwrite(f io.WriterAt, at, size int, value []byte) (committed bool, err error) {
	to := headerSize
	if headerSize+len(value) > at {
		to = at + size
	}
	if _, err := f.WriteAt(value, int64(to)); err != nil {
		return false, err
	}
	_, err = f.WriteAt(sealCell(value, to), 0)
	return true, err
}
