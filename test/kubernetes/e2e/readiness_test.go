// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// TestReadinessChecks checks that docs/operations.md has every check of a server in a
// cluster.
func TestReadinessChecks(t *testing.T) {
	t.Parallel()
	verbose := string(newDirect(t, cluster.AdminConfig()).Do(t, http.MethodGet, "/readyz?verbose", nil).Body)
	missing, err := harness.UndocumentedChecks(verbose)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 || !strings.Contains(verbose, "[+]cluster-reached ") {
		t.Errorf("docs/operations.md lacks the checks %q of\n%s", missing, verbose)
	}
}
