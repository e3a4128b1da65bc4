// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/borough-io/borough/test/harness"
)

// Binary returns the path of a program of the cluster: etcd, etcdctl, etcdutl,
// kube-apiserver, kube-controller-manager or kubectl. The first call builds
// them if necessary.
func Binary(name string) (string, error) {
	dir, err := binaries()
	return filepath.Join(dir, name), err
}

var binaries = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("BOROUGH_KUBERNETES_BIN"); dir != "" {
		return dir, nil
	}
	cmd := exec.Command(filepath.Join(harness.Root, "hack", "kubernetes.sh"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("hack/kubernetes.sh: %w\n%s", err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
})
