// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

// TestPermission starts on files without read or write permission. If the test runs
// as root, the goroutine's thread drops its rights.
func TestPermission(t *testing.T) {
	for name, deny := range map[string]func(dir string) error{
		"directory above": func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.Chmod(filepath.Dir(dir), 0o500) //nolint:gosec // it has to be entered
		},
		"database": func(dir string) error { return os.Chmod(filepath.Join(dir, "member", "snap", "db"), 0) },
		"log":      func(dir string) error { return os.Chmod(filepath.Join(dir, "member", "wal"), 0) },
		"lock":     func(dir string) error { return os.Chmod(filepath.Join(dir, "lock"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "above", "data")
			run(t, dir)
			if err := deny(dir); err != nil {
				t.Fatal(err)
			}
			asNobody(t, dir, func() {
				_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
				checkError(t, err, dir, "permission denied")
			})
		})
	}
}

// TestFullDisk starts a member on a full disk.
func TestFullDisk(t *testing.T) {
	disk := mountDisk(t, "256m")
	dir := filepath.Join(disk, "data")
	run(t, dir)

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	// etcd allocates its next log file while it starts. Whether that fails before or
	// after it is ready depends on timing, but nothing may be lost.
	p := startChild(t, dir)
	if p.next() {
		p.kill(t)
	} else {
		_ = p.Wait()
		checkError(t, errors.New(strings.TrimSpace(p.stderr.String())), dir, "no space left on device")
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

// TestDiskFills fills the disk under a member that runs. Its process ends: it could not store
// anything, and a supervisor sees only processes that end.
func TestDiskFills(t *testing.T) {
	disk := mountDisk(t, "128m")
	dir := filepath.Join(disk, "data")
	p := startChild(t, dir)
	for range 100 {
		if !p.next() {
			t.Fatalf("the member has ended: %v, %s", p.Wait(), p.stderr.String())
		}
	}
	fill(t, filepath.Join(disk, "filler"))
	for p.next() { //nolint:revive // until the end
	}
	if err := p.Wait(); p.ProcessState.ExitCode() != 1 || !strings.Contains(p.stderr.String(), "no space left on device") {
		t.Errorf("the process has ended with %v, want the code 1, and the reason:\n%s", err, p.stderr.String())
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, file string) {
	t.Helper()
	filler, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoSpaceForCopy starts a member whose database is mostly free, on a disk without space for
// a copy of the rest, and then on one with space. The first start removes the copy of one that
// was killed.
func TestNoSpaceForCopy(t *testing.T) {
	disk := mountDisk(t, "512m")
	config := embedded.Config{Dir: filepath.Join(disk, "data"), QuotaBytes: 128 << 20}
	server := startConfig(t, config)
	client := server.Client()
	for i := range 80 {
		put(t, client, fmt.Sprintf("%02d", i), strings.Repeat("v", 1<<20))
	}
	deleted, err := client.Delete(t.Context(), "4", clientv3.WithFromKey())
	if err == nil {
		_, err = client.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		err = server.Close()
	}
	if err != nil {
		t.Fatal(err)
	}

	snap := filepath.Join(config.Dir, "member", "snap")
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(filepath.Join(snap, "db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	write(t, filepath.Join(snap, "db.tmp.1"), "a copy")
	var stat syscall.Statfs_t
	if err := syscall.Statfs(disk, &stat); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	write(t, filler, strings.Repeat("x", int(stat.Bavail)*int(stat.Bsize)-(32<<20)))
	server = startConfig(t, config)
	put(t, server.Client(), "a", "b")
	if after := size(); after != before {
		t.Errorf("the database has %d bytes, had %d", after, before)
	}
	if copies, _ := filepath.Glob(filepath.Join(snap, "db.tmp.*")); len(copies) != 0 {
		t.Errorf("there are %v", copies)
	}
	if err := errors.Join(server.Close(), os.Remove(filler)); err != nil {
		t.Fatal(err)
	}
	server = startConfig(t, config)
	if after := size(); after > before*3/4 || get(t, server.Client(), "a") != "b" {
		t.Errorf("with space, the database has %d bytes, had %d", after, before)
	}
}

// mountDisk mounts a small disk.
func mountDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// asNobody runs f without the rights of root on files, if the test has them. All
// that is above and in dir, and is not denied to its owner, is open to it.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const unprivileged = 65534 // user ID
	above := filepath.Dir(dir)
	for path := filepath.Dir(above); path != filepath.Clean(os.TempDir()); path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o711); err != nil { //nolint:gosec // for the test's time
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(above, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, unprivileged, unprivileged)
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Setfsuid reports no failure.
	_ = syscall.Setfsuid(unprivileged)
	defer func() { _ = syscall.Setfsuid(0) }()
	f()
}
