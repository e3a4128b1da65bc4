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
	direct := newDirect(t, cluster.AdminConfig())
	readyz := string(direct.Do(t, http.MethodGet, "/readyz?verbose", nil).Body)
	livez := string(direct.Do(t, http.MethodGet, "/livez?verbose", nil).Body)
	missing, err := harness.UndocumentedChecks(readyz, livez)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 || !strings.Contains(readyz, "[+]cluster-reached ") || !strings.Contains(livez, "[+]etcd ") {
		t.Errorf("docs/operations.md lacks the checks %q of\n%s\n%s", missing, readyz, livez)
	}
}
