// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// ErrInUse says that another process, or another Server of this one, runs on
// the data directory.
var ErrInUse = errors.New("in use by another process")

// lockFile is the file in the data directory whose lock says that it is in use.
const lockFile = "lock"

// openDir makes dir ready for an etcd member and takes its lock. Everything
// that can be wrong with the directory is found here, because etcd itself would
// wait forever for a database that another process holds, and would panic on
// one that it cannot read.
func openDir(dir string) (lock *fileutil.LockedFile, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	// The directory may have been there before, open to others.
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	lock, err = fileutil.TryLockFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, ErrInUse
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	if err := checkFiles(filepath.Join(dir, "member")); err != nil {
		return nil, err
	}
	if err := checkDatabase(filepath.Join(dir, "member", "snap", "db")); err != nil {
		return nil, err
	}
	return lock, nil
}

// checkFiles opens every file below dir as etcd is going to.
func checkFiles(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a member that has not been started yet
	}
	return err
}

// checkDatabase looks for the damage that would end the process with a signal
// as soon as etcd reads the database through its memory map.
func checkDatabase(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil // etcd makes a new one
	}
	if err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("the database %s is damaged: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("the database %s is damaged: it is cut off after %d of %d bytes", path, info.Size(), tx.Size())
		}
		return nil
	})
}
