// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/test/poll"
)

// snapshotEvery is how many entries etcd applies between two snapshots.
const snapshotEvery = 1000

// value is so large that several files of the log have less than snapshotEvery of it.
var value = strings.Repeat("value", 1000)

// stopped returns the directory of a member that stored that many values, each
// under a different key, and was stopped.
func stopped(t *testing.T, values int) string {
	t.Helper()
	dir := t.TempDir()
	// Without syncs it ends before etcd removes files of the log, which it does at the
	// start and every 30 seconds.
	server := startConfig(t, embedded.Config{Dir: dir, Ephemeral: true})
	client := server.Client()
	for i := range values {
		put(t, client, fmt.Sprintf("key%d", i), value)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startCopy starts a member on a changed copy of a directory.
func startCopy(t *testing.T, from string, change func(t *testing.T, dir string)) (*embedded.Server, string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	change(t, dir)
	// A member that never becomes ready fails the test instead of stopping it.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err == nil {
		t.Cleanup(func() { _ = server.Close() })
	}
	return server, dir, err
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("the log has the files %v: %v", paths, err)
	}
	return paths
}

func database(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

func TestDamage(t *testing.T) {
	// young still has all entries in its log, old does not.
	const count = snapshotEvery * 9 / 10
	young, old := stopped(t, count), stopped(t, snapshotEvery+150)

	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	last := func(t *testing.T, dir string) string { return slices.Max(segments(t, dir)) }
	for name, test := range map[string]struct {
		dir    string
		damage func(t *testing.T, dir string)
		path   string // in the error; empty if nothing is lost
		want   string
	}{
		"none": {dir: old, damage: func(*testing.T, string) {}},

		"log is empty": {old, func(t *testing.T, dir string) {
			for _, path := range segments(t, dir) {
				do(os.Remove(path))
			}
		}, "member/wal", "it holds no log, but there is a database"},
		"log is missing": {old, func(_ *testing.T, dir string) {
			do(os.RemoveAll(filepath.Join(dir, "member", "wal")))
		}, "member/wal", "it holds no log, but there is a database"},
		"log is cut off": {young, func(t *testing.T, dir string) {
			do(os.Truncate(last(t, dir), 100_000))
		}, ".wal", "its end is missing: the last entry is"},
		"log is cut off within its header": {young, func(t *testing.T, dir string) {
			do(os.Truncate(last(t, dir), 10))
		}, ".wal", "at byte 0"},
		"log's last file is empty": {young, func(t *testing.T, dir string) {
			do(os.Truncate(last(t, dir), 0))
		}, ".wal", "it is empty"},
		"log's last file is missing": {young, func(t *testing.T, dir string) {
			do(os.Remove(last(t, dir)))
		}, ".wal", "its end is missing"},
		"log's only file is cut off": {young, func(t *testing.T, dir string) {
			for _, path := range segments(t, dir)[1:] {
				do(os.Remove(path))
			}
			do(os.Truncate(segments(t, dir)[0], 40))
			do(os.Remove(database(dir)))
		}, ".wal", "does not say where it begins"},
		"log is cut off in the middle": {old, func(t *testing.T, dir string) {
			do(os.Truncate(segments(t, dir)[2], 100_000))
		}, ".wal", "at byte"},
		"log lacks a file in the middle": {old, func(t *testing.T, dir string) {
			do(os.Remove(segments(t, dir)[2]))
		}, ".wal", "it does not continue the file before it"},
		"log lacks its first files": {young, func(t *testing.T, dir string) {
			do(os.Remove(segments(t, dir)[0]))
		}, ".wal", "does not say where it begins"},
		"log is rubbish": {young, func(t *testing.T, dir string) {
			overwrite(t, last(t, dir), 0, 1<<16)
		}, ".wal", "is damaged"},
		"log entry is changed": {young, func(t *testing.T, dir string) {
			overwrite(t, segments(t, dir)[0], 4000, 16)
		}, ".wal", "at byte"},

		"database is missing": {old, func(_ *testing.T, dir string) {
			do(os.Remove(database(dir)))
		}, "snap/db", "it is missing or empty"},
		"database is empty": {old, func(_ *testing.T, dir string) {
			do(os.Truncate(database(dir), 0))
		}, "snap/db", "it is missing or empty"},
		"database is cut off": {old, func(_ *testing.T, dir string) {
			do(os.Truncate(database(dir), 3*4096))
		}, "snap/db", "it is cut off after 12288 of"},
		"database is rubbish inside": {young, func(_ *testing.T, dir string) {
			overwrite(t, database(dir), 2*4096, 1<<20)
		}, "snap/db", "assertion failed"},
		"database is an older one": {old, func(t *testing.T, dir string) {
			content, err := os.ReadFile(database(young))
			do(err)
			do(os.WriteFile(database(dir), content, 0o600))
		}, "snap/db", "it is too old"},
		"database is of a cluster": {young, func(t *testing.T, dir string) {
			write := `{"id":1,"peerURLs":["http://other:2380"],"name":"other"}`
			edit(t, dir, schema.Members.Name(), []byte("1"), []byte(write))
		}, "snap/db", "a member of a cluster cannot run alone"},

		// Damage that etcd repairs itself is not an error.
		"database is missing, log has it all": {dir: young, damage: func(_ *testing.T, dir string) {
			do(os.Remove(database(dir)))
		}},
		"log lacks files that are not needed": {dir: old, damage: func(t *testing.T, dir string) {
			do(os.Remove(segments(t, dir)[0]))
		}},
		"log has other files next to it": {dir: young, damage: func(t *testing.T, dir string) {
			for _, name := range []string{"1.tmp", "0000000000000000-0000000000000000.wal.broken", "other.wal"} {
				write(t, filepath.Join(dir, "member", "wal", name), "rubbish")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir, err := startCopy(t, test.dir, test.damage)
			if test.path != "" {
				checkError(t, err, fmt.Sprintf("start etcd in data directory %q: ", dir), test.path, test.want, "restore this directory from a backup")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if copies, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.broken")); err != nil || len(copies) > 0 {
				t.Errorf("the copies %v of the log remain: %v", copies, err)
			}
			for _, n := range []int{0, count - 1} {
				if got := get(t, server.Client(), fmt.Sprintf("key%d", n)); got != value {
					t.Errorf("key%d holds %q", n, got)
				}
			}
		})
	}
}

// TestOldLogFilesAreRemoved checks that files of the log that a start does not need are
// removed.
func TestOldLogFilesAreRemoved(t *testing.T) {
	dir := stopped(t, snapshotEvery+150)
	if before := segments(t, dir); len(before) < 6 {
		t.Fatalf("the log has only %d files", len(before))
	}
	start(t, dir)
	poll.Eventually(t, func() string {
		if left := segments(t, dir); len(left) > 2 {
			return fmt.Sprintf("the log has the files %v", left)
		}
		return ""
	})
}

// TestOtherVersion starts with files of a newer etcd.
func TestOtherVersion(t *testing.T) {
	dir := stopped(t, 10)
	_, _, err := startCopy(t, dir, func(t *testing.T, dir string) {
		edit(t, dir, schema.Meta.Name(), schema.MetaStorageVersionName, []byte("3.99.0"))
	})
	checkError(t, err, "etcd cannot use its files", `version "3.99.0" is not supported`)
}

// TestTornLog kills a member and cuts off the end of its log, as a power failure
// does. The database is written after the log, so the member must start if, and only
// if, the log still contains all entries that the database has applied.
func TestTornLog(t *testing.T) {
	from := t.TempDir()
	p := startChild(t, from)
	// Fewer than fill a segment, even if the child is ahead of what is read: only the last
	// segment is cut off.
	for range 700 + rand.IntN(500) {
		if !p.next() {
			t.Fatal("the member has ended")
		}
	}
	p.kill(t)

	var started, rejected int
	for round := range 40 {
		var sound bool
		var what string
		_, _, err := startCopy(t, from, func(t *testing.T, dir string) {
			path := slices.Max(segments(t, dir))
			end := logEnd(t, path)
			header := min(end, 512)
			offset := max(header, end-rand.Int64N(1<<(2+round/2)))
			if round%2 == 0 {
				what = fmt.Sprintf("cut off at %d of %d", offset, end)
				if err := os.Truncate(path, offset); err != nil {
					t.Fatal(err)
				}
			} else {
				// Sectors that were not written, in space that was reserved.
				offset -= offset % 512
				what = fmt.Sprintf("zeros from %d of %d", offset, end)
				zero(t, path, offset)
			}
			sound = lastEntry(t, dir) >= databaseIndex(t, dir)
		})
		if sound != (err == nil) {
			t.Errorf("%s: the log reaches as far as the database: %v, and starting: %v", what, sound, err)
		}
		if sound {
			started++
		} else {
			rejected++
		}
	}
	t.Logf("%d started, %d rejected", started, rejected)
	if started == 0 || rejected == 0 {
		t.Error("the rounds do not have both")
	}
}

// logEnd returns where the records of a segment end.
func logEnd(t *testing.T, path string) int64 {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(strings.TrimRight(string(content), "\x00")))
}

func zero(t *testing.T, path string, offset int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{offset, info.Size()} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
}

// lastEntry returns the index of the last entry in the log, as etcd reads it; 0
// if it can't.
func lastEntry(t *testing.T, dir string) uint64 {
	t.Helper()
	log, err := wal.OpenForRead(nil, filepath.Join(dir, "member", "wal"), &walpb.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, entries, err := log.ReadAll()
	if err != nil || len(entries) == 0 {
		return 0
	}
	return entries[len(entries)-1].GetIndex()
}

func databaseIndex(t *testing.T, dir string) (index uint64) {
	t.Helper()
	withDatabase(t, dir, func(tx *bolt.Tx) error {
		index = binary.BigEndian.Uint64(tx.Bucket(schema.Meta.Name()).Get(schema.MetaConsistentIndexKeyName))
		return nil
	})
	return index
}

func edit(t *testing.T, dir string, bucket, key, value []byte) {
	t.Helper()
	withDatabase(t, dir, func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put(key, value) })
}

func withDatabase(t *testing.T, dir string, f func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(database(dir), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Update(f); err != nil {
		t.Fatal(err)
	}
}

// overwrite overwrites n bytes of a file with garbage.
func overwrite(t *testing.T, path string, offset int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("\xa5rubbish", n/8)); err != nil {
		t.Fatal(err)
	}
}
