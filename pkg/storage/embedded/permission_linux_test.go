// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

// TestPermission has files that may not be read or written. For a user who may
// do everything, the goroutine's thread gives that up.
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

// asNobody runs f without the rights of root on files, if the test has them. All
// that is above and in dir, and is not denied to its owner, is open to it.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
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
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// There is no way to see whether it worked but to use it.
	_ = syscall.Setfsuid(nobody)
	defer func() { _ = syscall.Setfsuid(0) }()
	f()
}
