package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/model"
)

// Files of the directory. The names' files lie in shards, see name.go.
const (
	lockName   = "lock"   // locked during each call, empty, never removed
	recordName = "record" // what the store keeps of itself
	freshName  = "fresh"  // a file not yet in its place; only who holds the lock makes one
)

// prepareLimit bounds how long New waits for another process that is preparing
// the same directory.
const prepareLimit = 5 * time.Second

var errReplaced = errors.New("the directory was removed or replaced by another since it was opened; " +
	"locks in it can no longer be told: open the store again")

// directory is the store's directory and its files. All but opening and
// closing it needs the lock, see lock.go.
type directory struct {
	*machine
	store  string // the store's name
	path   string
	root   *os.Root
	self   fs.FileInfo // the directory as it was opened
	mode   fs.FileMode // of its files
	group  int         // of its files; -1 is whatever the system gives
	advice []string
	remote bool // other machines may use it

	turn   chan struct{} // held by the goroutine that uses what follows
	closed bool
	lock   *os.File
	known  known
	sweep  sweeper

	lockInfo fs.FileInfo
}

// openDirectory opens path, or makes it, and refuses one that others could
// tamper with.
func openDirectory(store, path string, m *machine) (d *directory, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	d = &directory{machine: m, store: store, path: path, self: fi, turn: make(chan struct{}, 1)}
	if d.mode, d.group, err = m.access(fi); err != nil {
		return nil, err
	}
	if d.root, err = os.OpenRoot(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if opened, err := d.root.Stat("."); err != nil || !os.SameFile(fi, opened) {
		return nil, errors.Join(errors.New("the directory was replaced while it was opened"), err)
	}
	return d, d.prepare()
}

// access says with which mode and group this user may keep files in the
// directory, and why not.
func (m *machine) access(fi fs.FileInfo) (mode fs.FileMode, group int, err error) {
	uid, gid := 0, 0
	if fi.IsDir() {
		uid, gid = m.owner(fi)
	}
	perm := fi.Mode().Perm()
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return 0, 0, errors.New("it is a symbolic link, which whoever may change it could turn to another directory; give its target")
	case !fi.IsDir():
		return 0, 0, errors.New("it is not a directory")
	case perm&0o002 != 0:
		return 0, 0, fmt.Errorf("everybody may write in it (mode %04o), and so take or free any lock; "+
			"name a directory of your own", perm)
	case uid == 0 && fi.Mode()&fs.ModeSticky != 0 && perm&0o020 != 0:
		return 0, 0, fmt.Errorf("its sticky bit keeps the members of its group %d from replacing each other's files; chmod -t it", gid)
	case uid == 0 && perm&0o070 == 0o070 && (m.user == 0 || slices.Contains(m.groups, gid)):
		return 0o660, gid, nil
	case uid == m.user:
		return 0o600, -1, nil
	case uid == 0:
		return 0, 0, fmt.Errorf("root owns it and gives its group %d access %03o (mode %04o); "+
			"user %d needs to be in that group and the group needs rwx", gid, perm&0o070, perm, m.user)
	}
	return 0, 0, fmt.Errorf("user %d owns it and this process is user %d; "+
		"use a directory of this user, or one that root made for a group", uid, m.user)
}

// prepare makes the record of a directory that is new, and opens the lock. Of
// several processes that start at once one does it: the kernel's lock on the
// directory itself is taken, because the lock file would not be new any more
// for the second.
func (d *directory) prepare() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	ctx, cancel := context.WithTimeout(context.Background(), prepareLimit)
	defer cancel()
	// Where directories cannot be locked (NFS), a start of several processes
	// at once in a directory without a record may count it as one that forgot.
	if err := d.await(ctx, dir, exclusive); err != nil && ctx.Err() != nil {
		return fmt.Errorf("another process is preparing the directory: %w", err)
	}
	if fsType := d.network(dir); fsType != "" {
		d.remote = true
		d.advice = append(d.advice, fmt.Sprintf("%s is on a network file system (%s): locks in it are for one machine; "+
			"with two it stays in quarantine, and after a reboot it is in quarantine for MaxTTL", d.path, fsType))
	}
	untouched, sure := d.untouched(dir)
	_, err = dir.ReadDir(1)
	empty := errors.Is(err, io.EOF)
	if !sure {
		d.advice = append(d.advice, fmt.Sprintf("the file system of %s keeps no time of birth: "+
			"if somebody empties the directory, the store does not notice that it forgot", d.path))
	}
	if empty && (untouched || !sure) {
		r := d.newLife(record{})
		r.Record = model.NewRecord(d.store, d.boot, r.Now(d.clock))
		if err := d.keepRecord(r); err != nil {
			return fmt.Errorf("write the first record: %w", err)
		}
		d.syncParent()
	}
	return d.openLock()
}

// openLock opens the lock file, and makes it where there is none.
func (d *directory) openLock() error {
	f, info, err := d.open(lockName)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = d.make(lockName); err == nil {
			info, err = f.Stat()
		} else if errors.Is(err, fs.ErrExist) {
			f, info, err = d.open(lockName)
		}
	}
	if err != nil {
		return err
	}
	if d.lock != nil {
		_ = d.lock.Close()
	}
	d.lock, d.lockInfo = f, info
	return nil
}

// open opens a file of the directory that exists. It follows no link: root
// follows none out of the directory, and one within it is not the file that
// was opened. A pipe or a device is refused before it is opened.
func (d *directory) open(name string) (*os.File, fs.FileInfo, error) {
	named, err := d.root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file but %s; somebody put it there: find out who, and remove it",
			filepath.Join(d.path, name), kindOf(named))
	}
	f, err := d.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err != nil || !os.SameFile(named, opened) {
		_ = f.Close()
		return nil, nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", filepath.Join(d.path, name)), err)
	}
	return f, opened, nil
}

func kindOf(fi fs.FileInfo) string {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return "a symbolic link"
	case fi.IsDir():
		return "a directory"
	}
	return "of type " + fi.Mode().Type().String()
}

// make makes a file of the directory that did not exist.
func (d *directory) make(name string) (*os.File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, d.mode)
	if err != nil || d.group < 0 {
		return f, err
	}
	// The umask and the group of this process must not keep the others out.
	if err := errors.Join(f.Chown(-1, d.group), f.Chmod(d.mode)); err != nil {
		_ = f.Close()
		return nil, errors.Join(fmt.Errorf("give %s to group %d: %w", filepath.Join(d.path, name), d.group, err),
			d.root.Remove(name))
	}
	return f, nil
}

// read opens a file of the directory and returns its text too.
func (d *directory) read(name string) (*os.File, []byte, error) {
	f, info, err := d.open(name)
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > maxCell {
		err = fmt.Errorf("%w: it is larger than %d bytes", errDamaged, maxCell)
	} else {
		text := make([]byte, info.Size())
		if _, err = io.ReadFull(f, text); err == nil {
			return f, text, nil
		}
	}
	_ = f.Close()
	return nil, nil, err
}

// place puts a file with this text at name, whole or not at all. With durable
// it is on disk before place returns.
func (d *directory) place(name string, text []byte, durable bool) error {
	// A process that was killed here left one.
	if err := d.root.Remove(freshName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.make(freshName)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if durable && err == nil {
		err = d.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.root.Rename(freshName, name); err != nil || !durable {
		return err
	}
	return d.syncNames()
}

// syncNames makes what the directory lists durable.
func (d *directory) syncNames() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.sync(dir), dir.Close())
}

// syncParent makes a new directory itself durable. Not everybody may read its
// parent; then a power cut within seconds may undo the directory, and tokens
// start again from the clock's step.
func (d *directory) syncParent() {
	if parent, err := os.Open(filepath.Dir(d.path)); err == nil {
		_ = d.sync(parent)
		_ = parent.Close()
	}
}

// close drops the descriptors.
func (d *directory) close() error {
	d.closed = true
	err := d.root.Close()
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return errors.Join(err, d.sweep.close())
}
