// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// childDir is an environment variable with a directory. If it is set, the test binary
// replaces the serving certificate in that directory, and fails in between.
const childDir = "BOROUGH_TEST_PKI_DIR"

// replaceInterrupted writes the key, but cannot write the certificate, because that is
// larger than a file may be.
func replaceInterrupted(dir string) int {
	const size = 400
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	_, err := EnsurePKI(dir, []string{"another.example"})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestPKIAfterAnInterruptedReplacement ends a process between the two files of a
// certificate that it replaces, as a kill or a full disk does. The next start replaces it.
func TestPKIAfterAnInterruptedReplacement(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ca := mustEnsure(t, dir, hosts).ca.Cert
	before := contents(t, dir)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.CombinedOutput()
	after := contents(t, dir)
	if err == nil || before["apiserver.key"] == after["apiserver.key"] || len(after["apiserver.crt"]) > 0 && before["apiserver.crt"] != after["apiserver.crt"] {
		t.Fatalf("the process did not end between the files: %v\n%s", err, out)
	}
	if !mustEnsure(t, dir, hosts).ca.Cert.Equal(ca) {
		t.Error("the CA has changed")
	}
}
