package filestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quorumlock/quorum/internal/model"
)

// A name's file is called by the SHA-256 of its key, so that any key of any
// length is a plain file name, in a file system that folds case too, and lies
// in one of 256 shards. Its suffix is the life it belongs to.
//
// The life before is asked for a name that has no file yet, just to know how
// its last holder ended. A file of it that cannot be read was torn by the power
// cut, and means nothing.

// named is what the store keeps of a key, and where.
type named struct {
	Key  string
	Name model.Name

	path  string   // of its file in this life, relative to the directory
	older string   // of the file of the life before, if Name came from there
	file  *os.File // open, or nil if there is none in this life
	at    int      // where its value begins
	value []byte   // what it holds
}

func fileOf(key string, life model.Time) string {
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])
	return hash[:2] + "/" + hash[2:] + "." + strconv.FormatInt(int64(life), 10)
}

// lifeOf returns whose life's a file in a shard is, and false for a file that
// is none of the store's.
func lifeOf(base string) (model.Time, bool) {
	hash, suffix, _ := strings.Cut(base, ".")
	life, err := strconv.ParseInt(suffix, 10, 64)
	return model.Time(life), err == nil && len(hash) == 2*sha256.Size-2 && isHex(hash)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// loadName reads what the store keeps of a key.
func (d *directory) loadName(key string, r *record, now model.Time) (*named, error) {
	path := fileOf(key, r.Life)
	n, err := d.readName(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d.loadOlder(key, path, r, now), nil
	}
	if err == nil && n.Key != key {
		n.close()
		err = fmt.Errorf("%w: it belongs to another key", errDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("the file %s of key %q cannot be used: %w; who holds the key cannot be told. "+
			"If it is beyond repair remove %s: the store then counts as one that forgot and is in quarantine for MaxTTL",
			filepath.Join(d.path, path), key, err, filepath.Join(d.path, recordName))
	}
	return n, nil
}

func (d *directory) loadOlder(key, path string, r *record, now model.Time) *named {
	if r.Before != 0 {
		older := fileOf(key, r.Before)
		if n, err := d.readName(older); err == nil {
			n.close()
			if n.Key == key {
				n.Name.Void(&r.Record, now)
				return &named{Key: key, Name: n.Name, path: path, older: older}
			}
		}
	}
	return &named{Key: key, path: path}
}

// readName reads a file and leaves it open.
func (d *directory) readName(path string) (*named, error) {
	f, text, err := d.read(path)
	if err != nil {
		return nil, err
	}
	n := &named{path: path, file: f}
	if n.value, n.at, err = openCell(text); err == nil {
		if err = json.Unmarshal(n.value, n); err == nil {
			return n, nil
		}
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	n.close()
	return nil, err
}

func (n *named) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}

// keepName writes what became of a name. touched is false as long as nothing
// changed for sure.
func (d *directory) keepName(n *named) (touched bool, err error) {
	if n.nothing() {
		if n.file == nil {
			return false, nil
		}
		return true, d.root.Remove(n.path)
	}
	value, err := json.Marshal(n)
	switch {
	case err != nil:
		return false, err
	case n.file == nil:
		return d.placeName(n, newCell(value))
	case bytes.Equal(value, n.value):
		return false, nil
	}
	return overwrite(n.file, n.at, len(n.value), value)
}

func (n *named) nothing() bool {
	return !n.Name.Known && n.Name.Last == 0 && len(n.Name.Votes)+len(n.Name.Tombs)+len(n.Name.Forced) == 0
}

// placeName makes a name's file, and its shard where it is the first.
func (d *directory) placeName(n *named, text []byte) (touched bool, err error) {
	err = d.place(n.path, text, false)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.makeShard(n.path[:2]); err == nil {
			err = d.place(n.path, text, false)
		}
	}
	if err != nil {
		return false, err
	}
	if n.older != "" {
		_ = d.root.Remove(n.older) // else the sweeper does
	}
	return true, nil
}

func (d *directory) makeShard(shard string) error {
	mode := d.mode | d.mode>>2&0o110 // who may read it may enter it
	err := d.root.Mkdir(shard, mode)
	if err != nil || d.group < 0 {
		return err
	}
	return errors.Join(d.root.Chown(shard, -1, d.group), d.root.Chmod(shard, mode))
}
