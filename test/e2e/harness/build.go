// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Version is the version of the binaries that the harness builds. It has the
// form of a release, because the libraries derive behavior from it.
const Version = "v0.1.0"

// Root is the directory of the repository.
var Root = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
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

// Binary returns the path of borough-apiserver or borough-controller-manager.
func Binary(name string) (string, error) {
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
	args := []string{"build", "-o", scratch + "/", "-ldflags", "-X k8s.io/component-base/version.gitVersion=" + Version}
	if RaceEnabled {
		args = append(args, "-race")
	}
	return scratch, goCommand(Root, append(args, "./cmd/...")...)
})

// KubectlPath returns the path of kubectl.
var KubectlPath = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("BOROUGH_KUBECTL"); path != "" {
		_, err := os.Stat(path)
		return path, err
	}
	if err := makeScratch(); err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "kubectl")
	out, err := exec.Command(filepath.Join(Root, "hack", "kubectl.sh"), path).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("hack/kubectl.sh: %w\n%s", err, out)
	}
	return path, nil
})

func goCommand(dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
		}
		return fmt.Errorf("go %s: %w", args[0], err)
	}
	return nil
}
