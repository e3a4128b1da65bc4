// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// ErrInUse says that another process, or another Server of this one, runs on
// the data directory.
var ErrInUse = errors.New("in use by another process")

const (
	// lockFile is the file in the data directory whose lock says that it is in
	// use.
	lockFile = "lock"
	// newFile is there while a new member starts for the first time. A member
	// that is killed then may be left with a log that names no members, and would
	// never elect a leader; nobody has written to it, so it is thrown away.
	newFile = "new"
	// lockTimeout is the time for which the lock on the database is tried: once.
	lockTimeout = time.Nanosecond
	// memberDir is where etcd keeps its files.
	memberDir = "member"
)

// dataDir is a data directory that is locked.
type dataDir struct {
	path string
	lock *fileutil.LockedFile
}

// openDir makes a directory ready for an etcd member and takes its lock.
// Everything that can be wrong with it is found here, because etcd itself would
// wait forever for a database that another process holds, and would panic on
// one that it cannot read.
func openDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	// The directory may have been there before, open to others.
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(path, 0o700); err != nil {
			return nil, err
		}
	}
	lock, err := fileutil.TryLockFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, ErrInUse
	}
	if err != nil {
		return nil, err
	}
	d := &dataDir{path: path, lock: lock}
	if err := d.prepare(); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

func (d *dataDir) prepare() error {
	_, err := os.Lstat(d.file(newFile))
	if err == nil {
		return os.RemoveAll(d.file(memberDir))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = os.Stat(d.file(memberDir))
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(d.file(newFile), nil, 0o600); err != nil {
			return err
		}
		return d.sync()
	}
	if err != nil {
		return err
	}
	if err := checkFiles(d.file(memberDir)); err != nil {
		return err
	}
	return checkDatabase(d.file(memberDir, "snap", "db"))
}

// started says that the member has started and is there to stay.
func (d *dataDir) started() error {
	err := os.Remove(d.file(newFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// Should the file come back after a power failure, the member would go.
	return d.sync()
}

// sync makes what has been created and removed in the directory last.
func (d *dataDir) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}

// close gives the directory free.
func (d *dataDir) close() error { return d.lock.Close() }

func (d *dataDir) file(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// checkFiles opens every file below dir as etcd is going to.
func checkFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// checkDatabase walks through the database. etcd does so too, but in goroutines
// where a panic over damaged pages, or a fault in the memory map, ends the
// process.
func checkDatabase(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil // etcd makes a new one, from its log
	}
	if err != nil {
		return err
	}
	switch err := walkDatabase(path, info.Size()); {
	case errors.Is(err, bolterrors.ErrTimeout):
		return ErrInUse // by something that does not know our lock, such as etcd
	case err != nil:
		return fmt.Errorf("the database %s is damaged: %w", path, err)
	}
	return nil
}

func walkDatabase(path string, size int64) (err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r) // and the database stays open, with its locks
		} else {
			_ = db.Close()
		}
	}()
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("it is cut off after %d of %d bytes", size, tx.Size())
		}
		return tx.ForEach(func(_ []byte, bucket *bolt.Bucket) error {
			return bucket.ForEach(func(_, _ []byte) error { return nil })
		})
	})
}
