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
	readyz, livez := borough.Kubectl(t, "get", "--raw", "/readyz?verbose"), borough.Kubectl(t, "get", "--raw", "/livez?verbose")
	missing, err := harness.UndocumentedChecks(readyz, livez)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 || !strings.Contains(readyz, "[+]rbac-index ") || !strings.Contains(livez, "[+]etcd ") {
		t.Errorf("docs/operations.md lacks the checks %q of\n%s", missing, readyz+livez)
	}
}
