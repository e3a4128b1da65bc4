// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// recovery is the end of each message about damage.
const recovery = "restore this directory from a backup, as docs/backup.md describes, or remove it, which loses everything that was stored"

func damaged(path string, cause error) error {
	return fmt.Errorf("%s is damaged: %w; %s", path, cause, recovery)
}

// checkMember checks the files of a member before etcd reads them. It reports
// whether there are any.
//
// If the log ends before the last entry that the database has applied, acknowledged
// entries are lost. etcd does not compare the two. It starts, gives its first new
// entry the index of a lost entry, treats it as already applied, and waits for it
// forever. The same happens if there is no log.
func checkMember(dir string) (exists bool, err error) {
	if err := checkFiles(dir); err != nil {
		return false, err
	}
	dbPath, walDir := filepath.Join(dir, "snap", "db"), filepath.Join(dir, "wal")
	db, err := readDatabase(dbPath)
	if err != nil {
		return false, err
	}
	log, err := readWAL(walDir)
	if err != nil {
		return false, err
	}

	switch {
	case log.tail == "" && !db.exists:
		return false, nil
	case log.tail == "":
		return false, damaged(walDir, errors.New("it holds no log, but there is a database"))
	case log.snapshot > 0 && !db.exists:
		return false, damaged(dbPath, fmt.Errorf("it is missing or empty, and the log begins after entry %d", log.snapshot))
	case log.snapshot > db.index && db.exists:
		return false, damaged(dbPath, fmt.Errorf("it is too old: it is at entry %d, and the log begins after entry %d", db.index, log.snapshot))
	case log.last < db.index:
		return false, damaged(log.tail, fmt.Errorf("its end is missing: the last entry is %d, and the database is at entry %d", log.last, db.index))
	case db.index > 0 && !slices.Equal(db.members, []string{types.ID(log.node).String()}):
		return false, fmt.Errorf("%s names the members %v, but %s was written by member %s: a member of a cluster cannot run alone; %s", dbPath, db.members, walDir, types.ID(log.node), recovery)
	}
	return true, nil
}

// checkFiles opens every file below dir in the mode that etcd uses.
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

// databaseState is the state of the database.
type databaseState struct {
	// exists is also false for an empty file.
	exists bool
	// index is the index of the last log entry that the database has applied.
	index uint64
	// members are the IDs of the members of the cluster.
	members []string
}

// readDatabase reads the whole database. etcd reads it too, but in goroutines where
// a panic on damaged pages, or a fault in the memory map, ends the process.
func readDatabase(path string) (databaseState, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return databaseState{}, nil
	}
	if err != nil {
		return databaseState{}, err
	}
	state, err := walkDatabase(path, info.Size())
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return databaseState{}, ErrInUse // by a process that does not use lockFile, such as etcd
	case err != nil:
		return databaseState{}, damaged(path, err)
	}
	return state, nil
}

func walkDatabase(path string, size int64) (state databaseState, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return databaseState{}, err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r) // and the database stays open, with its locks
		} else {
			_ = db.Close()
		}
	}()
	state.exists = true
	err = db.View(func(tx *bolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("it is cut off after %d of %d bytes", size, tx.Size())
		}
		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			if index := meta.Get(schema.MetaConsistentIndexKeyName); len(index) == 8 {
				state.index = binary.BigEndian.Uint64(index)
			}
		}
		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			return bucket.ForEach(func(key, _ []byte) error {
				if string(name) == schema.Members.String() {
					state.members = append(state.members, string(key))
				}
				return nil
			})
		})
	})
	return state, err
}
