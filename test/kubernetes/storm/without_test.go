// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// withoutRounds bounds the search for a failure of servers without the fence or the
// charge. Usually the first round has some.
const withoutRounds = 25

// TestStormWithoutFence checks that the same storm finds orphans if the server
// checks Namespaces only in its cache.
func TestStormWithoutFence(t *testing.T) {
	stormWithout(t, "fence", func(h *history) []string { return h.orphans })
}

// TestStormWithoutCharge checks that the same storm finds wrong usages if the charge is
// left out of the transactions.
func TestStormWithoutCharge(t *testing.T) {
	stormWithout(t, "charge", func(h *history) []string { return h.miscounts })
}

// stormWithout fails the test unless the storm finds something if a package of the
// storage is off.
func stormWithout(t *testing.T, off string, find func(h *history) []string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(harness.Root, "hack", "build.sh"), "-o", dir+"/")
	cmd.Env = append(cmd.Environ(), "GO_LDFLAGS=-X github.com/borough-io/borough/pkg/storage/"+off+".off=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a server without the %s: %v\n%s", off, err, out)
	}
	t.Setenv("BOROUGH_BIN", dir)

	s := newStorm(t)
	s.run(t, func() bool {
		s.round(t, nil)
		return len(find(s.history)) == 0 && s.rounds < withoutRounds
	})
	found := find(s.history)
	if len(found) == 0 {
		t.Fatalf("the storm finds nothing without the %s, so it can't detect a failure of it", off)
	}
	t.Logf("the first of %d findings: %s", len(found), found[0])
}
