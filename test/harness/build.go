// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Root is the directory of the repository.
var Root = func() string {
	_, file, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(file) {
		panic("the tests read the sources: run them without -trimpath in GOFLAGS")
	}
	return filepath.Join(filepath.Dir(file), "..", "..")
}()

// Cleanup removes the binaries that the harness has built. Call it at the end of
// TestMain.
func Cleanup() error {
	if scratch == "" {
		return nil
	}
	return os.RemoveAll(scratch)
}

// scratch is the directory of the binaries; empty if none were built.
var scratch string

var makeScratch = sync.OnceValue(func() (err error) {
	scratch, err = os.MkdirTemp("", "borough-e2e-")
	return err
})

// Binary returns the path of borough-apiserver, borough-controller-manager or
// borough-source.
func Binary(name string) (string, error) {
	if err := readSources(); err != nil {
		return "", fmt.Errorf("read the sources of %s: %w", name, err)
	}
	if dir := os.Getenv("BOROUGH_BIN"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	dir, err := buildBinaries()
	return filepath.Join(dir, name), err
}

var buildBinaries = sync.OnceValues(func() (string, error) {
	if err := makeScratch(); err != nil {
		return "", err
	}
	args := []string{"-o", scratch + "/"}
	if RaceEnabled {
		args = append(args, "-race")
	}
	return scratch, script("build.sh", args...)
})

// readSources opens the directories that the binaries are built from. Go repeats a
// test, instead of using its cached result, if an entry of a directory that it opened
// has changed. It does not see what is opened before testing.M.Run, so each way to a
// server calls this.
func readSources() error {
	for _, dir := range []string{"cmd", "pkg", "hack"} {
		err := filepath.WalkDir(filepath.Join(Root, dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return err
		}
	}
	_, err := os.Stat(filepath.Join(Root, "go.mod"))
	return err
}

// readSourcesInTest does so once, in a test.
var readSourcesInTest = sync.OnceValue(readSources)

// KubectlPath returns the path of kubectl.
var KubectlPath = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("BOROUGH_KUBECTL"); path != "" {
		return path, nil // without a look at the file: every build changes its time
	}
	if err := makeScratch(); err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "kubectl")
	return path, script("kubectl.sh", path)
})

// script runs a script of the directory hack.
func script(name string, args ...string) error {
	out, err := exec.Command(filepath.Join(Root, "hack", name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("hack/%s: %w\n%s", name, err, out)
	}
	return nil
}
