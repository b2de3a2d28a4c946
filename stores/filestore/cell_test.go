package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// disk is a file whose writer is killed after so many bytes.
type disk struct {
	text []byte
	left int
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	n := min(len(p), d.left)
	if n < len(p) && off == 0 {
		n = 0 // a header lies within a page: the kernel writes it or does not
	}
	if grow := int(off) + n - len(d.text); grow > 0 {
		d.text = append(d.text, make([]byte, grow)...)
	}
	copy(d.text[off:], p[:n])
	d.left -= n
	if n < len(p) {
		d.left = 0
		return n, errors.New("killed")
	}
	return n, nil
}

func TestCellKeepsOldOrNewValueWhereverItsWriterIsKilled(t *testing.T) {
	value := func(size int, b byte) []byte { return bytes.Repeat([]byte{b}, size) }
	for _, sizes := range [][]int{{5, 5, 5, 5}, {5, 50, 5, 50}, {50, 5, 5, 60}, {0, 1, 0, 2}, {1, 2, 3, 4}} {
		for left := range 250 {
			d := &disk{text: newCell(value(sizes[0], 'a')), left: left}
			last := value(sizes[0], 'a')
			for i, size := range sizes[1:] {
				_, at, err := openCell(d.text)
				if err != nil {
					t.Fatal(err)
				}
				next := value(size, byte('b'+i))
				touched, err := overwrite(d, at, len(last), next)
				got, _, broken := openCell(d.text)
				if broken != nil {
					t.Fatalf("sizes %v, killed after %d bytes: %v", sizes, left, broken)
				}
				want := next
				if err != nil {
					want = last
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("sizes %v, killed after %d bytes: value %q, want %q", sizes, left, got, want)
				}
				if err == nil && !touched {
					t.Fatal("a value was written and overwrite says that nothing changed")
				}
				if err != nil {
					break
				}
				last = next
			}
		}
	}
}

func TestCellStaysSmall(t *testing.T) {
	d := &disk{text: newCell(nil), left: 1 << 30}
	size := 0
	for i := range 1000 {
		_, at, err := openCell(d.text)
		if err != nil {
			t.Fatal(err)
		}
		next := i * 37 % 100
		if _, err := overwrite(d, at, size, make([]byte, next)); err != nil {
			t.Fatal(err)
		}
		size = next
	}
	if most := headerSize + 3*100; len(d.text) > most {
		t.Errorf("after 1,000 values of at most 100 bytes the file has %d, want at most %d", len(d.text), most)
	}
}

func TestCellWithAnyByteWrongIsDamaged(t *testing.T) {
	text := newCell([]byte("a value"))
	for i := range text {
		for _, wrong := range [][]byte{flip(text, i), text[:i]} {
			if v, _, err := openCell(wrong); !errors.Is(err, errDamaged) {
				t.Fatalf("byte %d: value %q, error %v, want damage", i, v, err)
			}
		}
	}
	if _, _, err := openCell(append(text, "left from an older value"...)); err != nil {
		t.Errorf("bytes after the value: %v", err)
	}
}

func flip(text []byte, i int) []byte {
	wrong := bytes.Clone(text)
	wrong[i] ^= 1
	return wrong
}

func FuzzOpenCell(f *testing.F) {
	f.Add(newCell([]byte("a value")))
	f.Add([]byte(cellMagic))
	f.Add(bytes.Repeat([]byte{255}, 40))
	f.Fuzz(func(t *testing.T, text []byte) {
		if v, at, err := openCell(text); err == nil && !bytes.Equal(text[at:at+len(v)], v) {
			t.Fatal(fmt.Sprint("value is not where it begins: ", at))
		}
	})
}
