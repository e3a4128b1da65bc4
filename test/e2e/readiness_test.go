// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// TestReadinessChecks checks that docs/operations.md has every check of a standalone
// server.
func TestReadinessChecks(t *testing.T) {
	t.Parallel()
	verbose := borough.Kubectl(t, "get", "--raw", "/readyz?verbose")
	missing, err := harness.UndocumentedChecks(verbose)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 || !strings.Contains(verbose, "[+]rbac-index ") {
		t.Errorf("docs/operations.md lacks the checks %q of\n%s", missing, verbose)
	}
}
