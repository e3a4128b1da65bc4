// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestKinds checks that the reference of the API has every namespaced kind.
func TestKinds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range tenancy.NamespacedKinds() {
		row := regexp.MustCompile("(?m)^\\| `" + kind.Resource + "` \\| " + kind.Kind + " \\| yes \\|")
		if !row.Match(text) {
			t.Errorf("the table of resources in docs/reference/api.md has no row for %s", kind.Kind)
		}
	}
}
