// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/test/leaktest"
)

// logFileSize is the size of the files of the log outside of this test.
var logFileSize = wal.SegmentSizeBytes

func TestMain(m *testing.M) {
	// Logs of many segments, as after a long life.
	wal.SegmentSizeBytes = 1 << 20
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	leaktest.Main(m)
}

func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	return startConfig(t, embedded.Config{Dir: dir})
}

func startConfig(t *testing.T, config embedded.Config) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, client *clientv3.Client, key string) string {
	t.Helper()
	response, err := client.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 {
		return ""
	}
	return string(response.Kvs[0].Value)
}

func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	server := start(t, dir)
	put(t, server.Client(), "key", "value")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, start(t, dir).Client(), "key"); got != "value" {
		t.Errorf("got %q after a restart", got)
	}
}

// TestEphemeralRestart checks that an ephemeral member keeps its data, as long as the machine
// runs.
func TestEphemeralRestart(t *testing.T) {
	config := embedded.Config{Dir: t.TempDir(), Ephemeral: true}
	for want := range 3 {
		server := startConfig(t, config)
		client := server.Client()
		got, err := client.Get(t.Context(), "key/", clientv3.WithPrefix())
		if err != nil || got.Count != int64(want) {
			t.Errorf("start %d: got %v, %v", want, got, err)
		}
		put(t, client, fmt.Sprintf("key/%d", want), "value")
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLogFileSize checks that files of the log are smaller than etcd's own.
func TestLogFileSize(t *testing.T) {
	if logFileSize != 8<<20 {
		t.Errorf("a file of the log has %d bytes", logFileSize)
	}
}

// TestLogInMemory checks that values which were written do not stay in memory.
func TestLogInMemory(t *testing.T) {
	const values, size = 1_000, 100_000
	client := startConfig(t, embedded.Config{Dir: t.TempDir(), Ephemeral: true}).Client()
	value := strings.Repeat("x", size)
	before := heap()
	for range values {
		put(t, client, "key", value)
	}
	if grown := heap() - before; grown > values*size/2 {
		t.Errorf("after writes of %d bytes, %d bytes more are in use", values*size, grown)
	}
}

// heap returns the number of bytes that are in use.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestDirectoryIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	start(t, dir)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v", info.Mode().Perm())
	}
}

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
	if !errors.Is(err, embedded.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v, want ErrInUse with the directory", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

// TestInUseByEtcd opens the database in a program that does not use lockFile.
func TestInUseByEtcd(t *testing.T) {
	dir := t.TempDir()
	run(t, dir)
	db, err := bolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(t.Context(), embedded.Config{Dir: dir}); !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

func TestCloseEndsEverything(t *testing.T) {
	server := start(t, t.TempDir())
	client := server.Client()
	watch := client.Watch(context.Background(), "key")
	put(t, client, "key", "value")
	<-watch
	for range 2 {
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	<-server.Done()
	if status, err := server.Status(t.Context()); err == nil {
		t.Errorf("its status: %v", status)
	}
	for range watch { //nolint:revive // it ends
	}
	if _, err := client.Put(context.Background(), "key", "value"); err == nil {
		t.Error("a put after the close succeeded")
	}
}

// TestFull fills the database, and restarts after what may free space.
func TestFull(t *testing.T) {
	for name, test := range map[string]struct {
		free  func(*clientv3.Client) error
		quota int64 // after the restart
		full  bool  // after the restart
	}{
		"nothing, and a smaller quota": {func(*clientv3.Client) error { return nil }, 4 << 20, true},
		"deletes": {func(client *clientv3.Client) error {
			_, err := client.Delete(t.Context(), "", clientv3.WithPrefix())
			return err
		}, 16 << 20, false},
		"deletes that are compacted": {func(client *clientv3.Client) error {
			deleted, err := client.Delete(t.Context(), "", clientv3.WithPrefix())
			if err != nil {
				return err
			}
			_, err = client.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical())
			return err
		}, 16 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := embedded.Config{Dir: t.TempDir(), QuotaBytes: 16 << 20}
			server, err := embedded.Start(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			fill := func() (keys int) {
				for {
					_, err := server.Client().Put(t.Context(), fmt.Sprint(keys), strings.Repeat("v", 1<<20))
					if errors.Is(err, rpctypes.ErrNoSpace) {
						return keys
					}
					if err != nil || keys > 50 {
						t.Fatalf("after %d MiB: %v", keys, err)
					}
					keys++
				}
			}
			fill()
			if err := test.free(server.Client()); err != nil {
				t.Fatal(err)
			}
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			config.QuotaBytes = test.quota
			if server, err = embedded.Start(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			if written := fill(); test.full != (written == 0) {
				t.Errorf("after the restart there is space for %d values", written)
			}
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestStartIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	// Either is right: canceled, or ready before that was seen.
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err == nil {
		err = server.Close()
	} else if errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

// TestUnusableDirectory covers errors of the directory itself. TestDamage covers
// damage to the member's files.
func TestUnusableDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"file in its place": {func(t *testing.T, dir string) { write(t, dir, "file") }, "not a directory"},
		"file above":        {func(t *testing.T, dir string) { write(t, filepath.Dir(dir), "file") }, "not a directory"},
		"no database": {func(t *testing.T, dir string) {
			run(t, dir)
			write(t, filepath.Join(dir, "member", "snap", "db"), strings.Repeat("no database ", 10000))
		}, "snap/db is damaged: invalid database"},
		"database cut off": {func(t *testing.T, dir string) {
			run(t, dir)
			if err := os.Truncate(filepath.Join(dir, "member", "snap", "db"), 3*4096); err != nil {
				t.Fatal(err)
			}
		}, "snap/db is damaged: it is cut off after 12288 of"},
		"database is a directory": {func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, "member", "snap", "db"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "snap/db is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "above", "data")
			if err := os.MkdirAll(filepath.Dir(filepath.Dir(dir)), 0o700); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, dir)
			_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
			checkError(t, err, dir, test.want)
		})
	}
	_, err := embedded.Start(t.Context(), embedded.Config{})
	checkError(t, err, `""`, "no directory given")
}

func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want it to contain %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got more than one line: %q", err)
	}
}

// run starts and stops a member that leaves something behind.
func run(t *testing.T, dir string) {
	t.Helper()
	server := start(t, dir)
	client := server.Client()
	for range 100 {
		put(t, client, "key", strings.Repeat("value", 100))
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCloseOpenedWatchers closes a member while watches are open whose watchers are not closed.
func TestCloseOpenedWatchers(t *testing.T) {
	member := start(t, t.TempDir())
	opener, ok := member.Client().Watcher.(interface{ Open() clientv3.Watcher })
	if !ok {
		t.Fatal("the watcher of a client opens no others")
	}
	opened := opener.Open()
	watch := opened.Watch(t.Context(), "k", clientv3.WithCreatedNotify())
	<-watch
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
	response, open := <-watch
	if open && response.Canceled { // by the stream that has ended
		response, open = <-watch
	}
	if open {
		t.Errorf("after the member was closed, the watch got %v", response)
	}
	if response, open := <-opener.Open().Watch(t.Context(), "k"); open {
		t.Errorf("a watch of a closed member got %v", response)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}
