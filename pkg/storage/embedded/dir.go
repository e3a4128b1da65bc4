// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// ErrInUse means that another process, or another Server in this process, uses the
// data directory.
var ErrInUse = errors.New("in use by another process")

const (
	// lockFile is the file in the data directory that is locked while the directory
	// is in use.
	lockFile = "lock"
	// newFile exists while a new member starts for the first time. A member that is
	// killed then may leave a log without members, and would never elect a leader.
	// No client has written to it, so the next start deletes its files.
	newFile = "new"
	// lockTimeout limits the wait for the lock on the database to one try.
	lockTimeout = time.Nanosecond
	// memberDir is where etcd keeps its files.
	memberDir = "member"
)

// dataDir is a locked data directory.
type dataDir struct {
	path      string
	lock      *fileutil.LockedFile
	ephemeral bool
}

// openDir prepares and locks the directory of an etcd member. It checks the
// directory because etcd would wait forever for a database that another process
// has locked, and would panic on a database that it cannot read.
func openDir(path string, ephemeral bool) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	// The directory may have existed before, with wider permissions.
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
	d := &dataDir{path: path, lock: lock, ephemeral: ephemeral}
	if err := d.prepare(); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// prepare ensures that the directory contains either an undamaged member or none, and no
// copies.
func (d *dataDir) prepare() error {
	_, err := os.Lstat(d.file(newFile))
	if err == nil {
		return os.RemoveAll(d.file(memberDir))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = os.Stat(d.file(memberDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		exists, err := checkMember(d.file(memberDir))
		if err == nil {
			err = d.removeCopies()
		}
		if exists || err != nil {
			return err
		}
	}
	if err := os.WriteFile(d.file(newFile), nil, 0o600); err != nil {
		return err
	}
	return d.sync()
}

// removeCopies removes what nothing reads and etcd does not remove: the unfinished copies of
// the database that a failed or killed defragmentation has left, which can be as large as the
// database, and the copies of files of the log that etcd has made before it repaired these.
func (d *dataDir) removeCopies() error {
	err := removeFiles(d.file(memberDir, "snap"), func(name string) bool { return strings.HasPrefix(name, "db.tmp.") })
	if err != nil {
		return err
	}
	return removeFiles(d.file(memberDir, "wal"), func(name string) bool { return strings.HasSuffix(name, ".wal.broken") })
}

// removeFiles removes the files of a directory, if it exists, whose names match.
func removeFiles(dir string, match func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if match(entry.Name()) {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// started records that the member has started, so that its files are kept.
func (d *dataDir) started() error {
	err := os.Remove(d.file(newFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// If the file reappeared after a power failure, the member would be deleted.
	return d.sync()
}

// sync makes the created and removed entries of the directory durable.
func (d *dataDir) sync() error {
	if d.ephemeral {
		return nil
	}
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}

// close unlocks the directory.
func (d *dataDir) close() error { return d.lock.Close() }

func (d *dataDir) file(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}
